"""The rules of the block machine in words: what holds, what would go wrong without it, where it comes from."""

from typing import Final, Literal

from tenure.spec.rule import Rule

POOL: Final = "block pool under the G1 block manager of aisimulate-core 0.12.0"
MANAGER: Final = "G1 block manager of aisimulate-core 0.12.0"
TABLES: Final = "`core/blocks/lifecycles.py`, drawn from the same manager"
STRICT: Final = "the same, made strict: what the seed asserts in debug builds, or leaves to its callers"


def _predicate(name: str, sentence: str, reason: str, source: str) -> Rule:
    return _rule(name, sentence, reason, source, "predicate")


def _transition(name: str, sentence: str, reason: str, source: str) -> Rule:
    return _rule(name, sentence, reason, source, "transition")


def _rule(name: str, sentence: str, reason: str, source: str, kind: Literal["predicate", "transition"]) -> Rule:
    return Rule(id=name, sentence=sentence, reason=reason, source=source, kind=kind)


RULES: Final[tuple[Rule, ...]] = (
    _predicate(
        "I01",
        "Blocks with content, fresh blocks in reservations and free blocks are together the capacity.",
        "Otherwise capacity leaks, or more is given out than there is.",
        POOL,
    ),
    _predicate(
        "I02",
        "What is reserved is exactly the fresh blocks of live reservations, each in one reservation, none of them "
        "free or with content.",
        "Otherwise two parties are promised one block.",
        POOL,
    ),
    _predicate(
        "I03",
        "The LRU order is one line: every block in it once, at ascending positions.",
        "Otherwise eviction can go in circles or miss a block.",
        POOL,
    ),
    _predicate(
        "I04",
        "A block is in the LRU order exactly if it is cached and neither referenced nor pinned.",
        "Otherwise a block in use is evicted, or an unused one never.",
        POOL,
    ),
    _predicate(
        "I05",
        "A block that is not inactive has no place in the LRU order.",
        "Otherwise a place left behind comes to life when the block is used again.",
        POOL,
    ),
    _predicate(
        "I06",
        "Every cached copy is indexed once, under its own hash; no private copy is indexed.",
        "Otherwise a lookup finds the wrong content, or content that is not computed.",
        POOL,
    ),
    _predicate(
        "I07",
        "A hash is in the index exactly if it has a cached copy, and its copies are distinct.",
        "Otherwise a hit is granted that nobody can serve.",
        POOL,
    ),
    _transition(
        "I08",
        "The primary of a hash is its oldest surviving copy, and the duplicates follow in the order they were cached.",
        "Otherwise the same history gives different hits, and replicas of the cache disagree.",
        POOL,
    ),
    _predicate(
        "I09",
        "A copy has as many pins as live reservations list it in their prefixes.",
        "Otherwise a promised prefix is evicted, or a copy can never be evicted again.",
        POOL,
    ),
    _predicate(
        "I10",
        "A cached copy has as many references as lease entries hold it; a private copy is held by exactly one.",
        "Otherwise a block is evicted under its user, or two requests write one block.",
        MANAGER,
    ),
    _predicate(
        "I11",
        "Active, inactive and free blocks are together the capacity.",
        "Otherwise the occupancy that schedulers act on is wrong.",
        POOL,
    ),
    _predicate(
        "I12",
        "The number of active blocks is between 0 and the capacity.",
        "Otherwise the occupancy that schedulers act on is wrong.",
        POOL,
    ),
    _transition(
        "I13",
        "An event that finds no capacity changes nothing and commands nothing.",
        "Otherwise trying again is not the same as trying once.",
        MANAGER,
    ),
    _transition(
        "I14",
        "A refused event changes nothing.",
        "Otherwise an engine's mistake corrupts the cache of all requests.",
        STRICT,
    ),
    _predicate(
        "I15",
        "A held block that waits to be computed is private and has a hash; a held block that has a hash and does not "
        "wait is cached under it.",
        "Otherwise content is visible before it is computed, or never.",
        MANAGER,
    ),
    _predicate(
        "I16",
        "A private block that a transfer still reads is authorized, or listed among its lease's pending writes.",
        "Otherwise it is written under the reader and nobody asks.",
        MANAGER,
    ),
    _transition(
        "I17",
        "Pending writes name at least one dependency, each once, and a lease that has some does not grow.",
        "Otherwise an authorization does not cover the blocks that wait for it.",
        MANAGER,
    ),
    _predicate(
        "I18",
        "The blocks of a lease are the leading ones of its table, as many as its allocated tokens reach into.",
        "Otherwise a hole in the table is computed into a block that nobody holds.",
        STRICT,
    ),
    _transition(
        "I19",
        "Allocated tokens never fall, except to 0 when their request is preempted or finishes.",
        "Otherwise blocks are held that the watermark denies, and are allocated twice.",
        MANAGER,
    ),
    _transition(
        "I20",
        "A block carries at most one fence; it comes with an attachment to a block that had none and goes only when "
        "that transfer is satisfied.",
        "Otherwise a reader loses its protection on the way through release, eviction or a reservation.",
        POOL,
    ),
    _predicate(
        "I21",
        "An authorized block is private and fenced.",
        "Otherwise the authorization of one tenancy serves a later one.",
        POOL,
    ),
    _transition(
        "I22",
        "No block becomes visible while a transfer that its write is not ordered behind reads it.",
        "Otherwise the transfer reads the new content under the old name.",
        POOL,
    ),
    _transition(
        "I23",
        "There are no fences before the first attachment, and attachments are counted for good.",
        "Otherwise a pool forgets that its capacity may be read.",
        POOL,
    ),
    _transition(
        "I24",
        "KV events of one machine carry consecutive ids from 0, used only by events that are sent.",
        "Otherwise a router believes that it missed an event.",
        MANAGER,
    ),
    _transition(
        "I25",
        "Replaying the KV events from the start gives exactly the visible hashes.",
        "Otherwise routers send requests to caches that lack their prefix.",
        MANAGER,
    ),
    _transition(
        "I26",
        "No hash is named twice in one event, nor stored while it is visible.",
        "Otherwise one removal leaves a router with a hash that is gone.",
        MANAGER,
    ),
    _transition(
        "I27",
        "A Stored event tells consecutive blocks of one lease, as many as can share it, behind the block it names as "
        "parent, with their own local hashes and tokens.",
        "Otherwise a router hangs blocks under the wrong prefix.",
        MANAGER,
    ),
    _transition(
        "I28",
        "Within one operation Removed events come before Stored ones, each directly behind its trace record.",
        "Otherwise a router over-counts the cache in between.",
        MANAGER,
    ),
    _transition(
        "I29",
        "Only inactive blocks are evicted, and only by events that reserve capacity.",
        "Otherwise content vanishes under a request that counts on it.",
        POOL,
    ),
    _transition(
        "I30",
        "Blocks are evicted in the order in which they became inactive; a release lets go of a leaf before its parent.",
        "Otherwise a parent is evicted first and its children can never be hit again.",
        POOL,
    ),
    _predicate(
        "I31",
        "When no lease holds a block and no reservation lives, nothing is active.",
        "Otherwise capacity leaked.",
        POOL,
    ),
    _transition(
        "I32",
        "Only the tail of a table, or generated and uncomputed blocks, are unresolved; a resolved hash never changes.",
        "Otherwise a block is named without the tokens before it, or two names share one content.",
        MANAGER,
    ),
    _predicate(
        "I33",
        "A table has one entry for every block that its sequence's tokens reach into.",
        "Otherwise tokens have no block to stand in.",
        MANAGER,
    ),
    _predicate(
        "I34",
        "The tokens kept begin at a block boundary, no later than the first unresolved block, and end with the last.",
        "Otherwise a block cannot be named when it is computed.",
        MANAGER,
    ),
    _predicate(
        "I35",
        "A prefill cost covers every token and block once, and has no more active than cached tokens.",
        "Otherwise a scheduler computes too little or waits for too much.",
        MANAGER,
    ),
    _predicate(
        "I36",
        "With prefix caching off nothing is visible, nothing inactive, and nothing is told.",
        "Otherwise a switch that users turn off for isolation is not off.",
        MANAGER,
    ),
    _transition(
        "L01",
        "A block moves between free, reserved, private, in use and inactive as the table of its life says.",
        "Otherwise a block is given out, shown or emptied by something that has no business with it.",
        TABLES,
    ),
    _transition(
        "L02",
        "A lease is opened, filled, fenced, emptied and closed as the table of its life says, by events that name it.",
        "Otherwise one request's event changes another's lease.",
        TABLES,
    ),
)
