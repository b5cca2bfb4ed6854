"""Every error makes its own sentence: value first, then the rule, then what to do."""

import dataclasses
from typing import Any, get_type_hints

import pytest

from tenure.core import errors
from tenure.core.errors import BackendError, CapacityError, ContractError, InvariantViolation, Scope, TenureError

NAMED: list[Any] = [getattr(errors, name) for name in errors.__all__]
CONCRETE: list[Any] = [each for each in NAMED if issubclass(each, TenureError) and dataclasses.is_dataclass(each)]

SAMPLES: dict[str, Any] = {"request": "the-request", "owner": "the-owner", "found": 4711, "is_full": True}


def make(error: type[Any], **changes: Any) -> TenureError:
    """An instance with a recognizable value in every field."""
    hints = get_type_hints(error)
    values: dict[str, Any] = {}
    for number, field in enumerate(dataclasses.fields(error)):
        hint = str(hints[field.name])
        if field.name in changes:
            values[field.name] = changes[field.name]
        elif "tuple" in hint or "Sequence" in hint:
            values[field.name] = ("8001", "8002") if "Sequence[str]" in hint else (8001, 8002)
        elif "str" in hint and field.name not in SAMPLES:
            values[field.name] = f"text-{number}"
        else:
            values[field.name] = SAMPLES.get(field.name, 9001 + number)
    raised = error(**values)
    assert isinstance(raised, TenureError)
    return raised


@pytest.mark.parametrize("error", CONCRETE, ids=lambda error: error.__name__)
def test_every_error_names_its_fields_in_a_sentence(error: type[TenureError]) -> None:
    """A message without the numbers cannot be acted on."""
    raised = make(error)
    sentence = str(raised)
    for field in dataclasses.fields(raised):  # type: ignore[arg-type]
        # A tuple's repr without its punctuation is how a message lists numbers, but for the commas.
        value = str(getattr(raised, field.name)).strip("()").replace(",", "").replace("'", "")
        assert value in ("True", "False") or value in sentence.replace(",", "").replace("'", ""), field.name

    assert isinstance(raised, ContractError | CapacityError | BackendError)
    assert isinstance(raised.scope, Scope)
    assert sentence == raised.sentence()
    assert "  " not in sentence


def test_sentences_that_depend_on_their_fields() -> None:
    """Another cause, another sentence."""
    assert "at least 2" in str(errors.SequenceBlockSizeError("r", 1))
    assert "the machine's 16" in str(errors.SequenceBlockSizeError("r", 4, 16))
    assert "must not have one" in str(errors.IdentityLayoutError("r", 1, is_full=False))
    assert str(errors.NegativeCountError(None, "blocks", -1)).startswith("blocks is -1")
    assert "earlier lease" in str(errors.ReservationOwnerError(1, "r", "r"))
    assert str(errors.UnauthorizedWriteError(None, 3, (1,))).startswith("block 3")
    assert "write 1 of step 2 failed, and" in str(errors.WriteFailedError(1, 2, ""))
    assert "could not be gathered; " in str(errors.ReadFailedError(1, "r", "m", ""))
    assert "hidden states are not a tensor" in str(errors.HiddenRowsError(None, 2))
    assert "content of unknown identity" in str(errors.IsolationError("r", 1, (7, "red"), None))
    assert "(declared)" in str(errors.NameClassError("m", "a leftover", None, (1, 2), 3))


def test_a_number_too_long_to_be_written_still_has_a_sentence() -> None:
    """Python refuses to print it; the error must not fail on that."""
    assert str(errors.AllocationBeyondTableError("r", 10**5000, 4)).startswith("AllocationBeyondTableError")


def test_the_root_of_the_hierarchy_is_abstract() -> None:
    """Nobody raises it."""
    with pytest.raises(NotImplementedError):
        str(TenureError())


def test_an_invariant_violation_is_no_error_a_caller_handles() -> None:
    """It is an AssertionError with a rule's id."""
    violation = InvariantViolation("I07", "hash 3 has no copy")

    assert not isinstance(violation, TenureError)
    assert isinstance(violation, AssertionError)
    assert violation.rule == "I07"
    assert str(violation) == "I07: hash 3 has no copy"
