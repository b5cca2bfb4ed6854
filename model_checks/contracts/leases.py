"""Contracts on leases, fences, names and KV events. All of them run the production code."""

from typing import Final

from tenure.core.blocks import computed, leases, publish, tags
from tenure.core.blocks.hashing import IdentityKeys, MediaKey
from tenure.core.blocks.sequence import tail_may_be_unresolved
from tenure.core.blocks.tables import Attachment, Edit, Lease, Tables
from tenure.core.blocks.values import PublishStored
from tenure.core.config import U32_MAX, BlockConfig
from tenure.core.errors import (
    AllocationBeyondTableError,
    DependencyRangeError,
    NegativeCountError,
    OutputExhaustedError,
    TokenRangeError,
)

SIZE: Final = 2
_NEW: Final = Tables(BlockConfig(capacity=4, block_size=SIZE, kv_events=True))


def _lease(entries: int, prompt: int = 0, generated: int = 0, output: int = 0) -> Lease:
    """A lease whose table has so many entries."""
    lease = Lease()
    lease.request, lease.uuid, lease.number = "a", bytes(16), 1
    lease.hashes = [100 + place for place in range(entries)]
    lease.local_hashes = [200 + place for place in range(entries)]
    lease.copies, lease.allocated, lease.pending = [], 0, None
    lease.prompt_tokens, lease.max_output, lease.planned = prompt, output, ()
    lease.caching, lease.retain_local_hashes, lease.emit_token_ids, lease.keys = True, True, False, None
    lease.start, lease.window = prompt + generated, []
    return lease


# --- Slot and span arithmetic -------------------------------------------------------------------------------------


def blocks_of_tokens_hold_them(tokens: int) -> int:
    """I18: the blocks that tokens take hold all of them, and one block fewer would not.

    pre: 0 <= tokens <= 8
    post: (_ - 1) * 2 < tokens <= _ * 2
    """
    return leases.check_table(_NEW, _lease(4), tokens)


def tokens_beyond_the_table_are_refused(tokens: int) -> bool:
    """I18: no watermark stands above the table.

    pre: tokens > 8
    post: _
    """
    try:
        leases.check_table(_NEW, _lease(4), tokens)
    except AllocationBeyondTableError:
        return True
    return False


def counts_are_not_negative(count: int) -> bool:
    """A count below nothing is refused, any other is not.

    post: _ == (count >= 0)
    """
    try:
        leases.check_count("a", "tokens", count)
    except NegativeCountError:
        return False
    return True


def tail_of_a_prompt_has_a_name(length: int, computed_tokens: int) -> bool:
    """I32: without output, the last block has no name exactly if it is partial.

    pre: 0 <= computed_tokens <= length
    post: _ == (length % 4 != 0)
    """
    return tail_may_be_unresolved(length, 4, 0, computed_tokens)


def computed_tail_has_a_name(length: int, generated: int) -> bool:
    """Edge 7: when all is computed, the last block has no name exactly if it is partial.

    pre: 0 <= generated <= length
    post: _ == (length % 4 != 0)
    """
    return tail_may_be_unresolved(length, 4, generated, length)


def tail_of_output_waits_for_its_last_token(length: int, generated: int, computed_tokens: int) -> bool:
    """Edge 7: output that is not computed may leave its block without a name.

    pre: 0 < generated <= length and 0 <= computed_tokens < length
    post: _
    """
    return tail_may_be_unresolved(length, 4, generated, computed_tokens)


def given_tokens_are_taken_as_they_are(token: int) -> int:
    """A token that fits 32 bits is the next one.

    pre: 0 <= token < 2**32
    post: _ == token
    """
    return computed.next_token(_lease(1, prompt=2, output=1), token)


def tokens_that_do_not_fit_are_refused(token: int) -> bool:
    """A token that were cut would be another one's prefix hit.

    post: _ == (0 <= token < 2**32)
    """
    try:
        return computed.next_token(_lease(1, prompt=2, output=1), token) <= U32_MAX
    except TokenRangeError:
        return False


def output_ends_where_it_must(generated: int, output: int) -> bool:
    """A request generates no more than it may.

    pre: 0 <= generated and 0 <= output
    post: _ == (generated < output)
    """
    try:
        computed.next_token(_lease(1, prompt=2, generated=generated, output=output), 5)
    except OutputExhaustedError:
        return False
    return True


# --- Fences -------------------------------------------------------------------------------------------------------


def an_id_used_anew_is_another_transfer(number: int, now: int) -> bool:
    """I20: an answer to an earlier use of a dependency's id means nothing for the later one.

    post: _ == (number == now)
    """
    tables = _NEW.clone()
    tables.dependencies = {5: Attachment(now, (0,))}
    return leases.is_current(tables, (5, number))


def pending_dependencies_come_once_in_order(first: int, second: int) -> bool:
    """I16: of two blocks the transfers that read them, in order, each once; 0 stands for none.

    pre: 0 <= first <= 2 and 0 <= second <= 2
    post: _
    """
    tables = _NEW.clone()
    tables.tags = {block: tag for block, tag in ((0, first), (1, second)) if tag}
    expected = [tag for tag in (first, second) if tag]
    return list(tags.pending_dependencies(tables, (0, 1))) == expected[: 1 if first == second else 2]


def a_block_is_read_by_one_transfer(first: int, second: int, tagged: int) -> bool:
    """I20: sources are distinct copies that no transfer reads yet.

    pre: 0 <= first <= 3 and 0 <= second <= 3 and 0 <= tagged <= 2
    post: _ == (first != second and first < 3 and second < 3 and tagged not in (first, second))
    """
    tables = _NEW.clone()
    tables.copies, tables.tags = [1, 1, 1], {tagged: 9}
    return tags.can_attach(tables, (first, second))


def dependency_ids_fit_64_bits(dependency: int) -> bool:
    """An id that does not fit is refused.

    post: _ == (0 <= dependency < 2**64)
    """
    tables = _NEW.clone()
    tables.copies = [1]
    try:
        tags.check_attachable(tables, (0,), dependency)
    except DependencyRangeError:
        return False
    return True


def satisfying_frees_its_own_blocks_only(dependency: int) -> tuple[bool, bool]:
    """I23: the tags of a transfer that ended are gone, those of another stay.

    pre: 1 <= dependency <= 3
    post: _ == (dependency != 1, dependency != 2)
    """
    edit = Edit(_NEW.clone())
    edit.tables.copies = [1, 1]
    tags.attach(edit, (0,), 1)
    tags.attach(edit, (1,), 2)
    tags.satisfy(edit, dependency)
    return 0 in edit.tables.tags, 1 in edit.tables.tags


def authorized_are_those_that_wait(tagged: bool, other: bool) -> tuple[bool, bool]:
    """I21: only a write that waits for a transfer is allowed by name.

    post: _ == (tagged, other)
    """
    edit = Edit(_NEW.clone())
    edit.tables.tags = {block: 9 for block, is_tagged in ((0, tagged), (1, other)) if is_tagged}
    tags.authorize(edit, (0, 1))
    return 0 in edit.tables.authorized, 1 in edit.tables.authorized


# --- KV events ----------------------------------------------------------------------------------------------------


def _stored(visible: tuple[bool, ...], named: tuple[bool, ...]) -> list[PublishStored]:
    edit, lease = Edit(_NEW.clone()), _lease(len(visible))
    lease.local_hashes = [200 + place if named[place] else None for place in range(len(named))]
    publish.publish_stored(edit, lease, list(range(len(visible))), visible)
    return [each for each in edit.commands if isinstance(each, PublishStored)]


def stored_events_tell_what_is_visible(first: bool, second: bool, third: bool, named: bool) -> bool:
    """I25, I26: every hash that became visible is told once, in order, and no other.

    post: _
    """
    told = [name for event in _stored((first, second, third), (True, named, True)) for name in event.block_hashes]
    return told == [100 + place for place, seen in enumerate((first, second, third)) if seen]


def stored_groups_are_as_long_as_can_be(first: bool, second: bool, third: bool, named: bool) -> int:
    """I27: a group ends where a block is left out, and where local hashes begin or end; nowhere else.

    post: _ == first + (second and not (first and named)) + (third and not (second and named))
    """
    return len(_stored((first, second, third), (True, named, True)))


def stored_groups_follow_their_parent(first: bool, second: bool, third: bool) -> bool:
    """I27: a group's parent is the block in front of it.

    post: _
    """
    events = _stored((first, second, third), (True, True, True))
    return all(
        each.parent_hash == (each.block_hashes[0] - 1 if each.block_hashes[0] > 100 else None) for each in events
    )


def event_ids_are_consecutive(next_id: int, first: bool, second: bool) -> bool:
    """I24: ids go up by one, from whatever number on.

    pre: 0 <= next_id
    post: _
    """
    edit, lease = Edit(_NEW.clone()), _lease(3)
    edit.tables.next_event_id = next_id
    visible = (first, False, second)
    publish.publish_stored(edit, lease, [0, 1, 2], visible)
    ids = [each.event_id for each in edit.commands if isinstance(each, PublishStored)]
    return ids == [next_id, next_id + 1][: first + second] and edit.tables.next_event_id == next_id + first + second


# --- Identity keys ------------------------------------------------------------------------------------------------


def media_count_where_they_reach(offset: int, length: int, position: int) -> bool:
    """X05: a media item names exactly the blocks that it reaches into.

    pre: 0 <= offset <= 4 and 1 <= length <= 3 and 0 <= position <= 2
    post: _ == (offset < (position + 1) * 2 and position * 2 < offset + length)
    """
    keys = IdentityKeys(media=(MediaKey(b"m", offset, length),))
    return keys.encode(position * SIZE, (position + 1) * SIZE) != b""


def groups_are_told_apart(first: int, second: int) -> bool:
    """X05: no two isolation groups give the same bytes, nor does an adapter of a group's name.

    pre: 0 <= first <= 2 and 0 <= second <= 2
    post: _ == (first == second)
    """
    kinds = (IdentityKeys(isolation_group="g"), IdentityKeys(adapter="g"), IdentityKeys(isolation_group="h"))
    return kinds[first].encode(0, SIZE) == kinds[second].encode(0, SIZE)


CONDITIONS: Final = (
    blocks_of_tokens_hold_them,
    tokens_beyond_the_table_are_refused,
    counts_are_not_negative,
    tail_of_a_prompt_has_a_name,
    computed_tail_has_a_name,
    tail_of_output_waits_for_its_last_token,
    given_tokens_are_taken_as_they_are,
    tokens_that_do_not_fit_are_refused,
    output_ends_where_it_must,
    an_id_used_anew_is_another_transfer,
    pending_dependencies_come_once_in_order,
    a_block_is_read_by_one_transfer,
    dependency_ids_fit_64_bits,
    satisfying_frees_its_own_blocks_only,
    authorized_are_those_that_wait,
    stored_events_tell_what_is_visible,
    stored_groups_are_as_long_as_can_be,
    stored_groups_follow_their_parent,
    event_ids_are_consecutive,
    media_count_where_they_reach,
    groups_are_told_apart,
)
