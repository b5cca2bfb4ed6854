"""A short way to write down marks: what a scope must have seen fits a few lines."""

from collections.abc import Iterator

from tenure.model_checks.model import Marks


def marks(
    rules: str = "", events: str = "", commands: str = "", errors: str = "", goals: str = "", *, family: str = "I"
) -> Marks:
    """Marks from names with spaces between them.

    `rules` are numbers and ranges of numbers, `1-3 7`, for I01 to I03 and I07 (of the family I); what is no number
    stands for itself. Names of errors leave `Error` out.
    """
    return frozenset(
        [
            *(f"rule {each}" for each in _rules(rules, family)),
            *(f"event {each}" for each in events.split()),
            *(f"command {each}" for each in commands.split()),
            *(f"error {each}Error" for each in errors.split()),
            *(f"goal {each}" for each in goals.split()),
        ]
    )


def _rules(text: str, family: str) -> Iterator[str]:
    for each in text.split():
        if not each[0].isdigit():
            yield each
            continue
        first, _, last = each.partition("-")
        yield from (f"{family}{number:02}" for number in range(int(first), int(last or first) + 1))


def goals_among(expects: Marks) -> frozenset[str] | None:
    """The goals that are expected; None, for all, where nothing is."""
    if not expects:
        return None
    return frozenset(mark.removeprefix("goal ") for mark in expects if mark.startswith("goal "))
