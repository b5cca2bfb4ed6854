"""One request of a trace, whatever format it came from, and the limits that every format shares."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from tenure.core.config import U64_MAX
from tenure.replay.errors import Place

REQUEST_TOKENS_MAX: Final = 2**24
"""Limit of the tokens of one prompt, and of one output: 16 Mi, well above any model's context."""
TRACE_BLOCK_MAX: Final = 2**20
"""Limit of the tokens that one hash id of a trace stands for."""

PromptTokens: TypeAlias = Annotated[int, Field(ge=1, le=REQUEST_TOKENS_MAX)]
OutputTokens: TypeAlias = Annotated[int, Field(ge=0, le=REQUEST_TOKENS_MAX)]
HashId: TypeAlias = Annotated[int, Field(ge=0, le=U64_MAX)]
Seconds: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class StrictModel(BaseModel):
    """What is read is taken as it stands: no text for a number, no number for a truth; fields not named are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


@dataclass(frozen=True, slots=True, eq=False)
class TraceRequest:
    """One request as a trace describes it: how much of its prompt it shares, but no tokens.

    Attributes:
        place: where it stands.
        namespace: hash ids mean the same prefix only within one namespace.
        entry: its number in its source, from 0; tokens that no hash id covers are named by it.
        block_size: tokens that one hash id stands for.
        input_tokens: tokens of the prompt.
        output_tokens: tokens it generates.
        hash_ids: one id per trace block; each names its block and everything before it. A partial last block may
            have none.
        progress: how much of its source was read with it, from 0 to 1.
    """

    place: Place
    namespace: str
    entry: int
    block_size: int
    input_tokens: int
    output_tokens: int
    hash_ids: npt.NDArray[np.uint64]
    progress: float


def describe(error: ValidationError) -> str:
    """The first thing that a model found wrong, in a few words and on one line."""
    details = error.errors(include_url=False)[0]
    if details["type"] == "json_invalid":
        return f"not valid JSON: {_json_problem(details)}"
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in details["loc"]).removeprefix(".")
    if details["type"] == "missing":
        return f"{field} is missing"
    message = _SHOULD_BE.get(details["type"]) or details["msg"].replace("Input should be", "should be")
    return f"{field} {message}, found {shown(details['input'])}".lstrip()


def shown(value: object) -> str:
    """How messages show what was found: on one line, and never much of it."""
    # Printing a number of many digits takes long, and past some thousand Python refuses.
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


# JSON's own words, whatever Python type a text or a parsed object was to become.
_SHOULD_BE: Final = {"list_type": "should be a list", "model_type": "should be an object"}


def _json_problem(details: ErrorDetails) -> str:
    problem = str(details.get("ctx", {}).get("error", details["msg"])).replace("at line 1 column", "at column")
    return f"{problem} (cut off?)" if problem.startswith("EOF") else problem
