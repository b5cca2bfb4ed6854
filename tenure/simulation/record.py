"""A failing life as a file: what was chosen in it."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from tenure.backends.fake.faults import FaultKind


class RecordError(ValueError):
    """A file is no record of a life."""


class Recorded(BaseModel):
    """One life.

    Attributes:
        seed, life: where it came from.
        faults: the kinds that could happen.
        choices: among two or more, in order.
        found: what was wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: NonNegativeInt
    life: NonNegativeInt
    faults: tuple[FaultKind, ...]
    choices: tuple[NonNegativeInt, ...]
    found: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a file.

        Raises:
            RecordError: it cannot be read, or is something else.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}") from error
        except ValidationError as error:
            raise RecordError(f"{path} is no record of a life: {error.errors()[0]['msg']}") from error
