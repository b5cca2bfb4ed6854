"""What a search of the block machine is about: the machine's configuration, and the requests there are.

Every request's tokens are fixed beforehand, output too, so that one can say what stands in a block: the tokens
computed into it and all before them. The names of blocks are worked out here once more with the oracle's digests.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.sequence import BlockIdentity, RequestSequence, new_sequence
from tenure.core.blocks.tables import Lease
from tenure.core.blocks.values import BlockHash, RequestId
from tenure.core.config import BlockConfig
from tenure.spec.blocks.naming import local_name, sequence_name

Content: TypeAlias = tuple[str | int, ...]
"""What stands in a block: whose (the isolation group, or the request where it shares nothing), then the tokens."""
FIRST_OUTPUT: Final = 8
"""Output tokens are 8, 9, 10, ...: no prompt has them."""


class World:
    """A configuration and the sequences that requests may come with.

    Attributes:
        config: what the machine is built with.
        sequences: all that a lease may be opened with; an event names one by its index.
        requests: the requests of these, in order.
    """

    def __init__(self, config: BlockConfig, sequences: Sequence[RequestSequence]) -> None:
        """Fix what there is.

        Raises:
            ValueError: two sequences of one request are told apart by their tokens alone.
        """
        self.config = config
        self.sequences = tuple(sequences)
        self.requests: tuple[RequestId, ...] = tuple(dict.fromkeys(each.request for each in sequences))
        self._index = {_constants(each): index for index, each in enumerate(sequences)}
        if len(self._index) < len(self.sequences):
            msg = f"{len(self.sequences)} sequences have only {len(self._index)} different settings: vary the output"
            raise ValueError(msg)
        self._tokens = [(*_prompt(each), *each.planned) for each in sequences]
        self._name_of: dict[Content, BlockHash] = {}
        for index, sequence in enumerate(self.sequences):
            if sequence.caching and not sequence.identities_given:
                self._name_blocks(index, sequence)

    @property
    def names(self) -> Mapping[Content, BlockHash]:
        """The hash that each full block's content goes by."""
        return MappingProxyType(self._name_of)

    def _name_blocks(self, index: int, sequence: RequestSequence) -> None:
        size, tokens = self.config.block_size, self._tokens[index]
        parent: int | None = None
        for stop in range(size, len(tokens) + 1, size):
            parent = sequence_name(parent, local_name(tokens[stop - size : stop]), sequence.keys, stop - size, stop)
            self._name_of[self.content(index, stop // size - 1, stop)] = parent

    def of(self, request: RequestId) -> tuple[int, ...]:
        """The indices of a request's sequences."""
        return tuple(index for index, each in enumerate(self.sequences) if each.request == request)

    def sequence_of(self, lease: Lease) -> int:
        """The index of the sequence that a lease was opened with."""
        return self._index[_constants(lease)]

    def content(self, index: int, position: int, computed: int) -> Content:
        """What stands in the block at `position` of a sequence of which `computed` tokens are computed."""
        sequence, stop = self.sequences[index], min(computed, (position + 1) * self.config.block_size)
        if sequence.identities_given and position < len(sequence.hashes) and sequence.hashes[position] is not None:
            return ("given", sequence.hashes[position] or 0, stop - position * self.config.block_size)
        group = "" if sequence.keys is None else repr(sequence.keys)
        whose = group if sequence.caching else f"request {sequence.request}"
        return (whose, *self._tokens[index][:stop])


def _prompt(sequence: RequestSequence) -> list[int]:
    data = sequence.prompt
    return [int.from_bytes(data[start : start + 4], "little") for start in range(0, len(data), 4)]


def _constants(each: RequestSequence | Lease) -> tuple[Any, ...]:
    """What of a sequence never changes in its lease."""
    return (
        each.request,
        each.prompt_tokens,
        each.max_output,
        each.planned,
        each.caching,
        each.retain_local_hashes,
        each.emit_token_ids,
        each.keys,
    )


def request(
    name: str,
    prompt: Sequence[int],
    output: int = 0,
    *,
    block_size: int = 2,
    caching: bool = True,
    local_hashes: bool = True,
    token_ids: bool = False,
    group: str | None = None,
    given: Sequence[tuple[int, int | None]] | None = None,
) -> RequestSequence:
    """A request of a few tokens; `given` are `(hash, local hash)` of its full blocks, in place of the tokens' own."""
    identities = None
    if given is not None:
        identities = [BlockIdentity(*each) for each in given]
        identities += [BlockIdentity(None, None)] * (len(prompt) % block_size != 0)
    return new_sequence(
        name,
        prompt,
        output,
        block_size,
        caching=caching,
        retain_local_hashes=local_hashes,
        emit_token_ids=token_ids,
        planned=range(FIRST_OUTPUT, FIRST_OUTPUT + output),
        keys=None if group is None else IdentityKeys(isolation_group=group),
        identities=identities,
    )
