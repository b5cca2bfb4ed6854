"""Whether the core that is there refuses an event, beside what the trace that tells it says of that."""

from tenure.backends.conformance.rig import CheckFailedError


def require_refusal(expected: str, found: str) -> None:
    """Hold what the core does with an event against its trace; both are names of errors, empty where it is taken.

    Raises:
        CheckFailedError: they are not the same.
    """
    if expected != found:
        said, does = (f"is refused with {each}" if each else "is taken" for each in (expected, found))
        raise CheckFailedError(f"the trace says that it {said}, and by the core here it {does}")
