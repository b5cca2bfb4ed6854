"""Turns small numbers into events: what could be told to a block machine in a given state, sensible or not.

A history is thus a row of numbers, which a random generator, a fuzzer or a shrinking test library can provide; the
first option of every choice is the most ordinary one, so that smaller numbers mean plainer histories. Nothing here
decides whether an event is legal: about one in four is not, on purpose.
"""

from collections.abc import Callable, Sequence
from typing import Final

from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.sequence import BlockIdentity, RequestSequence, new_sequence
from tenure.core.blocks.values import RequestId
from tenure.core.blocks.view import BlockView, LeaseView
from tenure.spec.choices import Choices

REQUESTS: Final[tuple[RequestId, ...]] = (1, 2, 3, "four")
STRANGER: Final[RequestId] = 99
DEAD_ID: Final = 9999
TOKENS_MAX: Final = 2**32


def some_request(view: BlockView, choices: Choices) -> RequestId:
    """An open request, rarely one that is not."""
    return choices.often(sorted(view.leases, key=str) or [STRANGER], STRANGER)


def some_lease(
    view: BlockView, choices: Choices, fits: Callable[[LeaseView], object] = bool
) -> tuple[RequestId, LeaseView | None]:
    """An open request whose lease fits, rarely another or one that is not open."""
    fitting = [request for request in sorted(view.leases, key=str) if fits(view.leases[request])]
    stranger = some_request(view, choices)
    request = choices.often(fitting or [stranger], stranger)
    return request, view.leases.get(request)


def is_hidden(lease: LeaseView) -> bool:
    """Whether a held block waits to be computed."""
    return True in lease.pending_cache


def is_readable(lease: LeaseView) -> bool:
    """Whether a held block is computed and named."""
    return any(name is not None and not waits for name, waits in zip(lease.hashes, lease.pending_cache, strict=False))


def is_empty(lease: LeaseView) -> bool:
    """Whether no block is held."""
    return not lease.copies


def is_waiting(lease: LeaseView) -> bool:
    """Whether writes wait for an authorization."""
    return lease.pending_writes is not None


def can_generate(lease: LeaseView) -> bool:
    """Whether output is left."""
    return lease.generated < lease.max_output


def can_step(lease: LeaseView) -> bool:
    """Whether a decode step could have computed the last token."""
    return can_generate(lease) and 0 < lease.length <= lease.allocated_tokens


def some_id(live: Sequence[int], choices: Choices) -> int:
    """A live id, rarely a dead one."""
    return choices.often(sorted(live) or [DEAD_ID], DEAD_ID)


def some_sequence(view: BlockView, choices: Choices) -> RequestSequence:
    """A request of a few tokens, which often begins as others do and sometimes has strange identities."""
    size = view.config.block_size
    closed = [each for each in REQUESTS if each not in view.leases]
    request = choices.often(closed or REQUESTS, REQUESTS[0])
    length = choices.pick([size, 2 * size, size + 1, 3 * size, 2 * size - 1, 1, 3 * size + 1, 0])
    alike = choices.pick([length, size, length - 1, 0])
    prompt = [0] * max(0, min(alike, length))
    prompt += [choices.pick([1, 2])] * (length - len(prompt))
    planned = choices.pick([(0,) * 2 * size, (), (0,), (1, 0)])
    wanted_size = choices.often([size], size + 1)
    identities = some_identities(length, size, choices) if wanted_size == size else None
    return new_sequence(
        request,
        prompt,
        choices.pick([2 * size, size, 3 * size, 1, 0]),
        wanted_size,
        caching=choices.often([True], False),
        retain_local_hashes=choices.often([True], False),
        emit_token_ids=choices.pick([False, True]),
        planned=planned,
        keys=choices.often([None], IdentityKeys(isolation_group="a")),
        identities=identities,
    )


def some_identities(length: int, size: int, choices: Choices) -> list[BlockIdentity] | None:
    """Mostly none; else ones that repeat a hash, or retain only some local hashes."""
    style = choices.often(["hashed"], "repeated", "mixed")
    if style == "hashed":
        return None
    full = length // size
    if style == "repeated":
        identities = [BlockIdentity(7, 70) for _ in range(full)]
    else:
        identities = [BlockIdentity(8 + position, None if position % 2 else 80) for position in range(full)]
    if length % size:
        identities.append(BlockIdentity(None, None))
    return identities


def resident_prefix(view: BlockView, lease: LeaseView) -> int:
    """How many leading blocks of a lease are visible."""
    count = 0
    for name in lease.hashes:
        if name is None or name not in view.index:
            break
        count += 1
    return count


def some_allocation(view: BlockView, lease: LeaseView | None, choices: Choices) -> tuple[int, int]:
    """Tokens to hold, and blocks to share."""
    if lease is None:
        return 4, 0
    size = view.config.block_size
    table = len(lease.hashes) * size
    held = len(lease.copies) * size
    usual = [lease.length, min(held + size, table), lease.length, min(lease.allocated_tokens + 1, table), held, table]
    tokens = choices.often(usual, 0, table + 1, -1)
    resident = resident_prefix(view, lease)
    shared = min(resident, -(-tokens // size))
    return tokens, choices.often([shared, shared, 0, min(shared, 1)], resident + 1, 9, -1)


def some_range(view: BlockView, lease: LeaseView | None, choices: Choices) -> tuple[int, int]:
    """Tokens from the first hidden block on, mostly; rarely a range that cannot be."""
    if lease is None:
        return 0, 4
    size = view.config.block_size
    hidden = next((place for place, waits in enumerate(lease.pending_cache) if waits), len(lease.copies))
    unresolved = next((place for place, name in enumerate(lease.hashes) if name is None), len(lease.hashes))
    first = min(hidden, unresolved) * size
    before = choices.often([first, first, first, 0], max(0, lease.length - 1), lease.length, first + 1, -1)
    held = min(lease.length, len(lease.copies) * size)
    ends = [max(before, held), max(before, held), before + size, max(before, held - 1)]
    return before, choices.often(ends, lease.length, before + 1, before, 4 * size, before - 1)


def some_positions(lease: LeaseView | None, choices: Choices) -> tuple[int, ...]:
    """Positions of computed blocks, mostly."""
    if lease is None:
        return (0,)
    ready = tuple(place for place, waits in enumerate(lease.pending_cache) if not waits)
    ready = tuple(place for place in ready if lease.hashes[place] is not None)
    last = len(lease.hashes)
    usual = [ready or (0,), ready[:1] or (0,), ready[-1:] or (0,), ready[1:] or (0,)]
    return choices.often(usual, (0,), (0, 1), (), (1, 0), (last,), (-1,), (0, 0))


def some_suffix(view: BlockView, lease: LeaseView | None, choices: Choices) -> tuple[int, tuple[int, ...]]:
    """How much of a lease's prefix is resident, and the blocks behind it that a transfer brings."""
    if lease is None:
        return 0, (1,)
    resident = resident_prefix(view, lease)
    prefix = choices.often([min(resident, max(0, len(lease.hashes) - 1)), 0], resident, resident + 1, -1)
    names = [name for name in lease.hashes[max(0, prefix) :] if name is not None]
    whole = tuple(names)
    return prefix, choices.often([whole or (5,), whole[:1] or (5,)], (), (*whole, 5), (5,))


def some_dependencies(view: BlockView, lease: LeaseView | None, choices: Choices) -> tuple[int, ...]:
    """What a lease waits for, mostly."""
    stored = () if lease is None or lease.pending_writes is None else lease.pending_writes.dependencies
    pending = tuple(each for each in stored if each in view.dependencies)
    return choices.often([pending], stored, stored[::-1], (), (1,), (*stored, 6))


def some_batch(view: BlockView, choices: Choices, fits: Callable[[LeaseView], object] = bool) -> tuple[RequestId, ...]:
    """Some requests whose leases fit, rarely one twice or one that is not open."""
    open_requests = tuple(request for request in sorted(view.leases, key=str) if fits(view.leases[request]))
    start = choices.pick(range(len(open_requests) + 1))
    usual = open_requests[start:] + open_requests[:start]
    return choices.often([usual[:1], usual[:2], usual], usual + usual[:1], (), (*usual, STRANGER))


def some_token(choices: Choices) -> int | None:
    """No token, a small one, or one that is none."""
    return choices.often([None, 0, 1], TOKENS_MAX, -1)


def some_tokens(count: int, choices: Choices) -> tuple[int, ...] | None:
    """Tokens for a batch: none given, one a request, or wrong ones."""
    return choices.often([None, (0,) * count, (1,) * count], (0,) * (count + 1), (TOKENS_MAX,) * count)
