"""The oracle's lease: one request's table of blocks, and the tokens it still knows."""

from dataclasses import dataclass, field

from tenure.core.blocks.sequence import RequestSequence
from tenure.core.blocks.values import BlockHash, BlockId, DependencyId
from tenure.core.blocks.view import LeaseView, PendingWrites
from tenure.core.config import U32_MAX
from tenure.core.errors import OutputExhaustedError, TokenRangeError
from tenure.spec.blocks.naming import local_name, sequence_name, substitute_name, synthetic_token


@dataclass(slots=True)
class OracleEntry:
    """One position of a block table."""

    sequence_hash: BlockHash | None
    local_hash: int | None
    copy: BlockId | None = None
    pending_cache: bool = False
    write_pending: bool = False


@dataclass(slots=True)
class OracleLease:
    """One request's lease and sequence; two are equal exactly if nothing in the lease changed.

    Attributes:
        number: which lease this is, of all that were ever opened.
        window: the tokens `[window_start, length)`.
        pending: `(dependency, attachment)` of the transfers whose authorization is awaited; None where none is.
            The attachment's number tells an id from the same id attached anew.
    """

    number: int
    sequence: RequestSequence
    entries: list[OracleEntry]
    window: list[int]
    window_start: int
    length: int
    generated: int = 0
    allocated: int = 0
    pending: list[tuple[DependencyId, int]] | None = None
    # Made when it is asked for, which is when the lease is what its event made of it: what changes later is a clone.
    _view: LeaseView | None = field(default=None, compare=False, repr=False)

    def clone(self) -> "OracleLease":
        """An independent twin."""
        return OracleLease(
            self.number,
            self.sequence,
            [
                OracleEntry(each.sequence_hash, each.local_hash, each.copy, each.pending_cache, each.write_pending)
                for each in self.entries
            ],
            list(self.window),
            self.window_start,
            self.length,
            self.generated,
            self.allocated,
            None if self.pending is None else list(self.pending),
        )

    # --- The table ----------------------------------------------------------------------------------------------

    @property
    def block_size(self) -> int:
        """Tokens per block."""
        return self.sequence.block_size

    @property
    def held(self) -> list[BlockId]:
        """The blocks held, in position order."""
        return [entry.copy for entry in self.entries if entry.copy is not None]

    def blocks_for(self, tokens: int) -> int:
        """How many entries `tokens` tokens reach into."""
        return min(-(-tokens // self.block_size), len(self.entries))

    def hash_before(self, position: int) -> BlockHash | None:
        """The name of the block in front of a position."""
        return self.entries[position - 1].sequence_hash if position > 0 else None

    def pending_positions(self) -> list[int]:
        """Positions whose capacity may not be written yet."""
        return [position for position, entry in enumerate(self.entries) if entry.write_pending]

    def clear_pending(self) -> None:
        """Nothing waits for an authorization any more."""
        self.pending = None
        for entry in self.entries:
            entry.write_pending = False

    def stored_dependencies(self) -> tuple[DependencyId, ...]:
        """The dependencies whose authorization is awaited, satisfied ones that nobody pruned included."""
        return tuple(dependency for dependency, _ in self.pending or [])

    # --- The tokens ---------------------------------------------------------------------------------------------

    def append_token(self, given: int | None) -> tuple[int, bool]:
        """The next output token, and whether it begins a block.

        Raises:
            OutputExhaustedError: all output is generated.
            TokenRangeError: the given token is no unsigned 32-bit number.
        """
        sequence = self.sequence
        if self.generated >= sequence.max_output:
            raise OutputExhaustedError(sequence.request, sequence.max_output)
        if given is not None and not 0 <= given <= U32_MAX:
            raise TokenRangeError(sequence.request, given)
        if given is not None:
            token = given
        elif self.generated < len(sequence.planned):
            token = sequence.planned[self.generated]
        else:
            token = synthetic_token(sequence.request, self.generated)
        opened = self.length % self.block_size == 0
        if opened:
            self.entries.append(OracleEntry(None, None))
        self.window.append(token)
        self.length += 1
        self.generated += 1
        return token, opened

    def tokens_of(self, position: int) -> list[int] | None:
        """The tokens of a full block, if all of them are still kept and known."""
        start = position * self.block_size - self.window_start
        stop = start + self.block_size
        return self.window[start:stop] if start >= 0 and stop <= len(self.window) else None

    def resolve(self, position: int) -> bool:
        """Name a block by its tokens; False if they are not all there."""
        tokens = self.tokens_of(position)
        if tokens is None:
            return False
        sequence, entry = self.sequence, self.entries[position]
        if not sequence.caching:
            entry.sequence_hash = substitute_name(sequence.request, position)
            entry.local_hash = None
            return True
        local = local_name(tokens)
        start = position * self.block_size
        entry.sequence_hash = sequence_name(
            self.hash_before(position), local, sequence.keys, start, start + self.block_size
        )
        entry.local_hash = local if sequence.retain_local_hashes else None
        return True

    def discard_tokens(self, position: int) -> None:
        """Forget the tokens up to the end of a computed block, unless KV events want them."""
        stop = (position + 1) * self.block_size
        if not self.sequence.emit_token_ids and stop > self.window_start:
            self.window = self.window[stop - self.window_start :]
            self.window_start = stop

    # --- The view -----------------------------------------------------------------------------------------------

    def view(self) -> LeaseView:
        """The lease as plain data."""
        if self._view is None:
            self._view = self._make_view()
        return self._view

    def _make_view(self) -> LeaseView:
        waiting = self.pending_positions()
        held = [entry for entry in self.entries if entry.copy is not None]
        pending = None
        if self.pending is not None:
            pending = PendingWrites(waiting[0], waiting[-1] + 1, self.stored_dependencies())
        return LeaseView(
            hashes=tuple(entry.sequence_hash for entry in self.entries),
            local_hashes=tuple(entry.local_hash for entry in self.entries),
            copies=tuple(self.held),
            pending_cache=tuple(entry.pending_cache for entry in held),
            allocated_tokens=self.allocated,
            pending_writes=pending,
            prompt_tokens=self.sequence.prompt_tokens,
            max_output=self.sequence.max_output,
            generated=self.generated,
            length=self.length,
            window_start=self.window_start,
            window=tuple(self.window),
            planned=self.sequence.planned,
            caching=self.sequence.caching,
            emit_token_ids=self.sequence.emit_token_ids,
        )


def open_lease(number: int, sequence: RequestSequence) -> OracleLease:
    """An empty lease over the prompt of a request, its blocks named anew unless the caller named them."""
    size = sequence.block_size
    prompt = [
        int.from_bytes(sequence.prompt[start : start + 4], "little") for start in range(0, len(sequence.prompt), 4)
    ]
    lease = OracleLease(number, sequence, [], prompt, 0, len(prompt))
    if sequence.identities_given:
        lease.entries = [OracleEntry(each.sequence_hash, each.local_hash) for each in sequence.identities]
    else:
        lease.entries = [OracleEntry(None, None) for _ in range(-(-len(prompt) // size))]
        for position in range(len(prompt) // size):
            lease.resolve(position)
    if not sequence.emit_token_ids:
        lease.window_start = len(prompt) - len(prompt) % size
        lease.window = prompt[lease.window_start :]
    return lease
