"""Checks the joined cache while rows are replayed: KV events always, whole states now and then, and the end.

What a transition did (the rules of transitions) is not looked at here: several threads make them, and two views of a
large cache around each would cost far more than the replay. Wrong rows show in what comes back.
"""

import time
from typing import Final

import numpy as np

from tenure.core.blocks.values import Command
from tenure.core.errors import InvariantViolation
from tenure.core.joined.values import CacheView
from tenure.core.rows.names import HIDDEN
from tenure.joined_cache import JoinedCache
from tenure.replay.options import ReplayOptions
from tenure.replay.row_counters import RowCounters
from tenure.spec.blocks.mirror import KvMirror
from tenure.spec.blocks.rules import check_view as check_block_view
from tenure.spec.joined.rules import STATE_CHECKS as JOINED_CHECKS
from tenure.spec.judging import raise_first
from tenure.spec.rows.rules import STATE_CHECKS as ROW_CHECKS
from tenure.spec.rule import Finding
from tenure.stats import CacheStats

QUIET_TIMEOUT_S: Final = 60.0
"""How long writes may take to end when everybody is done."""
SLOTS_PER_STEP: Final = 2**10
"""A look at a whole state costs what the cache holds, so a cache of so many slots is looked at in each step, and one
of n times as many in every nth: the share of the replay's time stays about the same."""

CHECKED_SLOTS_MAX: Final = 2**22
"""A check lists every slot under every name, so it wants a cache of a size that can be listed."""
SLOT_BY_SLOT_MAX: Final = 2**12
"""The spec states R03 and X01 slot by slot, and searches open claims for each: in caches of more slots these two would
take minutes a look. X01 is stated by arrays here besides."""
SLOT_BY_SLOT: Final = ("R03", "X01")


def steps_between_checks(slots: int, every: int | None) -> int:
    """After how many steps a state is checked: as asked for, or as is affordable for so many slots."""
    return every or max(1, slots // SLOTS_PER_STEP)


class RowChecker:
    """Watches one joined cache; the first broken rule ends the replay."""

    def __init__(self, counters: RowCounters, options: ReplayOptions) -> None:
        self._counters = counters
        self._every = steps_between_checks(options.capacity * options.block_size, options.check_every)
        self._mirror = KvMirror()

    def hear(self, event: Command) -> None:
        """Follow one KV event.

        Raises:
            InvariantViolation: I25 or I26.
        """
        self._mirror.hear((event,))

    def observe(self, cache: JoinedCache) -> None:
        """Hold the state after a step, if it is this one's turn, against every rule of a state.

        Raises:
            InvariantViolation: a rule is broken.
        """
        if self._counters.steps % self._every:
            return
        self._check_state(cache)

    def _check_state(self, cache: JoinedCache) -> None:
        view = cache.view()
        is_small = view.rows.config.num_slots <= SLOT_BY_SLOT_MAX
        check_block_view(view.blocks)
        raise_first((rule, check(view.rows)) for rule, check in ROW_CHECKS if is_small or rule not in SLOT_BY_SLOT)
        raise_first((rule, check(view)) for rule, check in JOINED_CHECKS if is_small or rule not in SLOT_BY_SLOT)
        raise_first([("X01", visible_blocks_have_their_rows(view))])
        # X04: whoever heard the KV events alone knows exactly what is visible.
        self._mirror.compare(view.blocks)
        self._counters.checked_states += 1

    def check_end(self, cache: JoinedCache) -> None:
        """Check what must hold when every request has ended and every step is consumed.

        Raises:
            InvariantViolation: a rule is broken.
        """
        self._check_state(cache)
        # I31: when nobody holds anything, nothing is active.
        if active := cache.blocks.num_active:
            raise InvariantViolation("I31", f"{active} blocks are active after every request has ended")
        until = time.monotonic() + QUIET_TIMEOUT_S
        while left := what_is_left(cache.stats()):
            if time.monotonic() > until:
                raise InvariantViolation("R18", f"every request has ended, and there are still {left}")
            time.sleep(0.001)


def visible_blocks_have_their_rows(view: CacheView) -> Finding:
    """X01: a block that is visible holds that content, and no hidden row of it is absent, but those still owed."""
    copies = [
        (block, block_hash)
        for block_hash, found in view.blocks.index.items()
        for block in (found.primary, *found.duplicates)
        if block not in view.unsaved
    ]
    for block, block_hash in copies:
        identity = view.rows.identities.get(block)
        if identity is None or identity.hash != block_hash:
            return f"hash {block_hash} is visible with block {block}, which holds {identity}"
    if not copies or not view.rows.policy.hidden or view.rows.failure is not None:
        return None
    newest = np.array(view.rows.newest[HIDDEN], dtype=np.int64)
    since = np.maximum(np.array(view.rows.tenancy, dtype=np.int64), max(view.rows.floor, 1))
    is_present = (newest >= since).reshape(-1, view.config.rows.block_size)
    holes = [block for block, _ in copies if not is_present[block].all()]
    return f"blocks {holes} are visible, and hidden rows of them are absent" if holes else None


def what_is_left(stats: CacheStats) -> str:
    """What keeps a cache from being quiet, in words; empty if nothing does (R18)."""
    figures = {
        "live requests": stats.live_requests,
        "unconsumed steps": stats.unconsumed_steps,
        "open writes": stats.open_writes,
        "reads": stats.reads,
        "pages held": stats.pages_held,
        "bytes charged": stats.charged_bytes,
        "bytes of buffers held": stats.buffers_held_bytes,
    }
    return ", ".join(f"{count} {what}" for what, count in figures.items() if count)
