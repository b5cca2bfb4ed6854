"""What a replay counts of its rows, and what it hands to its builder."""

from dataclasses import dataclass
from typing import NamedTuple

from tenure.core.blocks.values import RequestId
from tenure.replay.row_values import Words


@dataclass(slots=True)
class RowCounters:
    """Everything but times. A row is what one name holds for one token, so a token of three names counts three times.

    Attributes:
        steps: steps saved.
        written: rows of tokens computed.
        discarded_steps: steps that the builder discarded.
        handed_out: rows that came back from materialize.
        from_hits: those of them that other requests, or other steps, had computed.
        same_step: those of them that another request of the same step computed.
        verified: rows compared, bit for bit, with what they should be.
        checked_states: states of the whole cache that were held against its rules.
    """

    steps: int = 0
    written: int = 0
    discarded_steps: int = 0
    handed_out: int = 0
    from_hits: int = 0
    same_step: int = 0
    verified: int = 0
    checked_states: int = 0


class Span(NamedTuple):
    """What one request is to get of one step.

    Attributes:
        first: the position of the first token whose rows are handed out.
        before: the position of the first token that the step computes; rows before it come from the request's hit.
        same_step: tokens of the hit that the step itself computes, for another request.
        words: the prefix words of all tokens whose rows are handed out, one a row.
    """

    request: RequestId
    first: int
    before: int
    same_step: int
    words: Words

    @property
    def computed(self) -> Words:
        """The prefix words of the tokens that the step computes."""
        return self.words[self.before - self.first :]


class SavedStep(NamedTuple):
    """A step that was saved, and what is to come back of it, in batch order."""

    step: int
    spans: tuple[Span, ...]
