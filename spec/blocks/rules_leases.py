"""I15 to I19 and I32 to I35: what a lease may hold, and what its blocks and tokens may look like."""

from tenure.core.blocks.values import BlockId, LeaseFinished, LeasePreempted, RequestId
from tenure.core.blocks.view import BlockView, CachedCopy, LeaseView, PrefillCost, PrivateCopy
from tenure.spec.blocks.rule import Observation
from tenure.spec.rule import Finding


def held_blocks_are_hidden_until_computed(view: BlockView) -> Finding:
    """I15."""
    for request, lease in view.leases.items():
        if len(lease.pending_cache) != len(lease.copies):
            return f"{len(lease.pending_cache)} flags for {len(lease.copies)} blocks of request {request!r}"
        is_shared = view.config.prefix_caching and lease.caching
        for position, (block, waits) in enumerate(zip(lease.copies, lease.pending_cache, strict=True)):
            copy = view.copies.get(block)
            name = lease.hashes[position] if position < len(lease.hashes) else None
            if waits:
                if not isinstance(copy, PrivateCopy) or name is None:
                    return f"{_where(block, position, request)} waits to be computed, is {copy} and has hash {name}"
                if not is_shared:
                    return f"{_where(block, position, request)} waits to become visible with prefix caching off"
                continue
            if not is_shared:
                if isinstance(copy, CachedCopy):
                    return f"{_where(block, position, request)} is {copy}, and its request takes no part in caching"
                continue
            if name is None:
                continue
            if not isinstance(copy, CachedCopy) or copy.block_hash != name:
                return f"{_where(block, position, request)} is computed, has hash {name} and is {copy}"
    return None


def _where(block: BlockId, position: int, request: RequestId) -> str:
    return f"block {block} at position {position} of request {request!r}"


def pending_writes_are_listed(view: BlockView) -> Finding:
    """I16."""
    for request, lease in view.leases.items():
        pending = lease.pending_writes
        listed = range(0) if pending is None else range(pending.start, pending.stop)
        if pending is not None and not 0 <= pending.start < pending.stop <= len(lease.copies):
            return f"{pending} of request {request!r} is outside its {len(lease.copies)} blocks"
        for position, block in enumerate(lease.copies):
            tag = view.tags.get(block)
            if position in listed:
                where = _where(block, position, request)
                if not isinstance(view.copies.get(block), PrivateCopy) or block in view.authorized:
                    return f"{where} waits for an authorization and is {view.copies.get(block)}, or authorized"
                if pending is not None and tag is not None and tag not in pending.dependencies:
                    return f"{where} is read by dependency {tag}, its lease waits for {pending.dependencies}"
                continue
            if tag is None or block in view.authorized:
                continue
            # With caching off a store may read a private block that its own lease holds; then nobody waits.
            is_shared = view.config.prefix_caching and lease.caching
            if is_shared and isinstance(view.copies.get(block), PrivateCopy):
                return f"{_where(block, position, request)} is read by dependency {tag} and waits for no authorization"
    return None


def pending_lists_are_proper(view: BlockView) -> Finding:
    """I17, of a state."""
    for request, lease in view.leases.items():
        pending = lease.pending_writes
        if pending is None:
            continue
        if not pending.dependencies or len(set(pending.dependencies)) != len(pending.dependencies):
            return f"{pending.dependencies} is what request {request!r} waits for"
        if pending.stop != len(lease.copies):
            return f"{len(lease.copies)} blocks of request {request!r}, but the pending ones end at {pending.stop}"
    return None


def pending_leases_do_not_grow(seen: Observation) -> Finding:
    """I17, of a transition."""
    for request, then in seen.before.leases.items():
        now = seen.after.leases.get(request)
        if then.pending_writes is None or now is None:
            continue
        if len(now.copies) > len(then.copies):
            return f"request {request!r} grew to {len(now.copies)} blocks while {then.pending_writes} waited"
        if now.pending_writes is None:
            continue
        left = [each for each in then.pending_writes.dependencies if each in now.pending_writes.dependencies]
        if now.pending_writes.dependencies != tuple(left):
            return f"{then.pending_writes} of request {request!r} became {now.pending_writes} without growth"
    return None


def held_blocks_match_the_watermark(view: BlockView) -> Finding:
    """I18."""
    size = view.config.block_size
    for request, lease in view.leases.items():
        if len(lease.copies) != -(-lease.allocated_tokens // size) or len(lease.copies) > len(lease.hashes):
            return (
                f"{len(lease.copies)} blocks are held by request {request!r} for {lease.allocated_tokens} tokens "
                f"in a table of {len(lease.hashes)}"
            )
    return None


def watermark_only_rises(seen: Observation) -> Finding:
    """I19."""
    for request, then in seen.before.leases.items():
        now = seen.after.leases.get(request)
        gone = isinstance(seen.event, LeaseFinished) and seen.event.request == request
        if now is None:
            if not gone:
                return f"request {request!r} lost its lease without finishing"
            continue
        reset = isinstance(seen.event, LeasePreempted) and seen.event.request == request
        if reset and now.allocated_tokens != 0:
            return f"{now.allocated_tokens} tokens are still allocated to request {request!r} after its preemption"
        if not reset and now.allocated_tokens < then.allocated_tokens:
            return f"allocation of request {request!r} fell from {then.allocated_tokens} to {now.allocated_tokens}"
    return None


def only_uncomputed_blocks_are_unresolved(view: BlockView) -> Finding:
    """I32, of a state."""
    size = view.config.block_size
    for request, lease in view.leases.items():
        resolved = resolved_blocks(lease)
        if lease.hashes.count(None) != len(lease.hashes) - resolved:
            return f"{lease.hashes} of request {request!r} has a hash behind an unresolved block"
        if resolved < lease.prompt_tokens // size:
            return f"only {resolved} blocks of request {request!r} are resolved, its prompt fills more"
        if resolved * size > lease.length:
            return f"{resolved} blocks of request {request!r} are resolved, but only {lease.length} tokens known"
    return None


def resolved_hashes_stay(seen: Observation) -> Finding:
    """I32, of a transition."""
    for request, then in seen.before.leases.items():
        now = seen.after.leases.get(request)
        if now is None or (now.hashes == then.hashes and now.local_hashes == then.local_hashes):
            continue
        resolved = resolved_blocks(then)
        if now.hashes[:resolved] != then.hashes[:resolved]:
            return f"{then.hashes} of request {request!r} became {now.hashes}"
        if now.local_hashes[:resolved] != then.local_hashes[:resolved]:
            return f"local hashes {then.local_hashes} of request {request!r} became {now.local_hashes}"
    return None


def tables_match_their_sequences(view: BlockView) -> Finding:
    """I33."""
    size = view.config.block_size
    for request, lease in view.leases.items():
        wanted = -(-lease.length // size)
        if len(lease.hashes) != wanted or len(lease.local_hashes) != wanted:
            return (
                f"{len(lease.hashes)} hashes and {len(lease.local_hashes)} local hashes of request {request!r} "
                f"stand for {lease.length} tokens"
            )
        if lease.length != lease.prompt_tokens + lease.generated or lease.generated > lease.max_output:
            return (
                f"{lease.length} tokens of request {request!r}: {lease.prompt_tokens} of the prompt and "
                f"{lease.generated} generated of at most {lease.max_output}"
            )
    return None


def kept_tokens_are_enough(view: BlockView) -> Finding:
    """I34."""
    size = view.config.block_size
    for request, lease in view.leases.items():
        start = lease.window_start
        if start % size or start < 0 or (lease.emit_token_ids and start):
            return f"{start} is where the tokens kept of request {request!r} begin"
        if start > resolved_blocks(lease) * size:
            return f"tokens before {start} of request {request!r} are gone, its blocks before that unresolved"
        if len(lease.window) != lease.length - start:
            return f"{len(lease.window)} tokens of request {request!r} are kept for [{start}, {lease.length})"
    return None


def resident_prefixes_fit(view: BlockView) -> Finding:
    """I35, of a state: a resident prefix covers no more tokens than are known."""
    for request, lease in view.leases.items():
        overlap, _ = overlap_blocks(view, lease)
        if overlap * view.config.block_size > lease.length:
            return f"{overlap} resident blocks of request {request!r} cover more than its {lease.length} tokens"
    return None


def broken_cost(view: BlockView, request: RequestId, cost: PrefillCost) -> Finding:
    """I35, of an answer: what a prefill cost contradicts in the state it was asked of."""
    lease = view.leases[request]
    size = view.config.block_size
    overlap, active = overlap_blocks(view, lease)
    if cost.new_tokens + cost.cached_tokens != lease.length:
        return f"{cost} of request {request!r} does not add up to its {lease.length} tokens"
    if not 0 <= cost.active_cached_tokens <= cost.cached_tokens:
        return f"{cost} of request {request!r} has more tokens active than cached"
    if cost.new_blocks + overlap != len(lease.hashes):
        return f"{cost} of request {request!r}, of whose {len(lease.hashes)} blocks {overlap} are resident"
    expected = (min(overlap * size, lease.length), min(active * size, lease.length))
    if (cost.cached_tokens, cost.active_cached_tokens) != expected:
        return f"{cost} of request {request!r}, which has {expected[0]} cached and {expected[1]} active tokens"
    return None


def resolved_blocks(lease: LeaseView) -> int:
    """How many leading blocks of a lease have a hash."""
    return lease.hashes.index(None) if None in lease.hashes else len(lease.hashes)


def overlap_blocks(view: BlockView, lease: LeaseView) -> tuple[int, int]:
    """How many leading blocks of a lease are resident, and of how many of these the primary is in use."""
    overlap = active = 0
    if not (view.config.prefix_caching and lease.caching):
        return 0, 0
    for name in lease.hashes:
        if name is None or name not in view.index:
            break
        overlap += 1
        active += view.index[name].primary not in view.lru
    return overlap, active
