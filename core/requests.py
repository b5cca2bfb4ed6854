"""What both machines know of requests."""

from collections.abc import Iterable


def sorted_requests(requests: Iterable[int | str]) -> list[int | str]:
    """Request ids in an order that does not depend on history: numbers first."""
    return sorted(requests, key=lambda request: (isinstance(request, str), request))


def request_ids(requests: Iterable[int | str]) -> tuple[int | str, ...]:
    """Request ids as a tuple of their own.

    Raises:
        TypeError: an id is neither an int nor a str, or `requests` is a single str.
    """
    named = tuple(requests)
    if isinstance(requests, str) or not {int, str}.issuperset(map(type, named)):
        msg = f"expected request ids, each an int or a str, found {requests!r}"
        raise TypeError(msg)
    return named
