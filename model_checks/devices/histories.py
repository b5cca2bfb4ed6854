"""Histories in which the executor has more to do than in those of the row machine: several reads at a time, holes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.rows.scopes import HISTORIES
from tenure.model_checks.rows.scripts import ALL, C, D, H, History, M, arrive, ends, goes_on, last, step

OF_DEVICES: Final[Mapping[str, History]] = MappingProxyType(
    {
        # Of two reads one runs and one waits while their slot is claimed anew: one is ordered before, one set aside.
        "one-runs-one-waits": History(
            "W8",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, M)),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(H, M), to=[ALL]),
                step(*ends("b"), arrive("x"), rows="x:0:9", emits=(H, M)),
                last(*ends("x")),
            ),
            blocks=2,
        ),
        # The same of two slots, of which one is claimed anew, so that a read is served from two places.
        "set-aside-in-part": History(
            "W8",
            (
                step(arrive("a", 2), rows="a:0:1 a:1:2", emits=(H, M)),
                step(*ends("a"), arrive("b", 1, 0, 1, nodes=(1, 2)), rows="b:2:3", emits=(H, M), to=[ALL]),
                step(*ends("b"), arrive("x"), rows="x:1:9", emits=(H, M)),
                last(*ends("x")),
            ),
            blocks=3,
        ),
        # A name that the first step did not emit: of two rows of a hit under it one is absent.
        "absent-among-rows": History(
            "R14",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, M)),
                step(goes_on("a"), rows="a:1:2", emits=(H,)),
                step(*ends("a"), arrive("b", 1, 0, 1, nodes=(1, 2)), rows="b:2:3", emits=(H, M), to=[ALL]),
                last(*ends("b")),
            ),
            blocks=3,
        ),
        # Slots in odd orders, so that rows are picked one by one, through scratch memory.
        "slots-in-odd-order": History(
            "R16",
            (
                step(arrive("a", 3), rows="a:2:1 a:0:2 a:3:3", emits=(H, C, D)),
                step(goes_on("a", 2), rows="a:1:4 a:4:5", emits=(C, H)),
                step(*ends("a"), arrive("b", 1, 2, 1, 4, nodes=(1, 4, 5)), rows="b:5:7", emits=(H, C), to=[ALL]),
                step(*ends("b"), arrive("x", 2), rows="x:4:8 x:2:9", emits=(H, C)),
                last(*ends("x")),
            ),
            blocks=6,
        ),
    }
)
"""By name."""
ALL_HISTORIES: Final[Mapping[str, History]] = MappingProxyType({**HISTORIES, **OF_DEVICES})
"""These and those of the row machine."""
