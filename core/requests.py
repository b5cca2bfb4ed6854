"""What both machines know of requests."""

from collections.abc import Iterable


def sorted_requests(requests: Iterable[int | str]) -> list[int | str]:
    """Request ids in an order that does not depend on history: numbers first."""
    return sorted(requests, key=lambda request: (isinstance(request, str), request))
