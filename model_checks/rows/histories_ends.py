"""Histories of pages, holes, failures and resets: each case, defect or wrong reading with its calls fixed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.rows.plans import NOTE
from tenure.model_checks.rows.scripts import (
    ALL,
    AT_ONCE_BEGUN,
    C,
    D,
    H,
    History,
    M,
    arrive,
    ends,
    faults,
    goes_on,
    last,
    step,
)

PAGES_AND_ENDS: Final[Mapping[str, History]] = MappingProxyType(
    {
        # --- Pages, consumers ------------------------------------------------------------------------------------
        "page-under-a-reader": History(
            "W7, A07",
            (
                step(arrive("a"), rows="a:0:1", emits=(M, NOTE), to=[ALL]),
                step(goes_on("a"), rows="a:1:2", emits=(M,), to=[ALL, "discard"]),
                step(goes_on("a"), rows="a:2:3", emits=(M,), to=["discard"]),
                last(*ends("a")),
            ),
            blocks=3,
            pages=2,
            more=faults(abandons=1, tells_copied=True),
            heavy=7_000,
        ),
        "waits-again": History(
            "D04, D11",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,), to=["discard"]),
                step(*ends("a"), arrive("c"), rows="c:0:2", emits=(C,), to=["discard"], dropped=None),
                step(arrive("e"), rows="e:1:3", emits=(C,), to=["discard"], dropped=None),
                last(*ends("c", "e")),
            ),
            blocks=2,
            pages=2,
            more=AT_ONCE_BEGUN,
            heavy=2_700,
        ),
        "builder-lag": History(
            "W14",
            (
                step(arrive("a"), rows="a:0:1", to=["discard"]),
                step(goes_on("a"), rows="a:1:2", to=["discard"]),
                step(goes_on("a"), rows="a:2:3", to=["discard"]),
                step(goes_on("a"), rows="a:3:4", to=["discard"]),
                last(*ends("a")),
            ),
            more=MappingProxyType({"lag": 2}),
        ),
        "over-budget": History(
            "A09",
            (
                step(arrive("a"), arrive("b"), rows="a:0:1 b:1:2", emits=(C,)),
                step(goes_on("a"), goes_on("b"), rows="a:2:3 b:3:4", emits=(C, D), dropped=None),
                step(*ends("a"), arrive("a"), rows="a:0:5", emits=(NOTE,), to=[ALL]),
                last(*ends("a", "b")),
            ),
            budget=3,
        ),
        "asked-for-ever": History(
            "R11",
            (
                step(arrive("a"), rows="a:0:1", to=[ALL]),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", to=[ALL]),
                last(*ends("b")),
            ),
            blocks=2,
            pages=2,
            more=faults(abandons=-1),
        ),
        "consumed-in-part": History(
            "A19",
            (
                step(arrive("a"), rows="a:0:1"),
                step(arrive("b", 1, 0, nodes=(1,)), goes_on("a"), rows="b:1:2 a:2:3", to=[("a",), ("b",), ("a", "b")]),
                last(*ends("a", "b")),
            ),
            blocks=3,
            more=faults(abandons=1),
        ),
        # --- Names that are not emitted, steps given up, hits with holes -----------------------------------------
        "name-not-emitted": History(
            "D02",
            (
                step(arrive("x"), rows="x:0:1", emits=(H, M)),
                step(*ends("x"), arrive("a"), rows="a:0:2", emits=(H,)),
                step(arrive("b", 1, 0, nodes=(2,)), rows="b:1:3", emits=(H, M), to=[ALL]),
                last(*ends("a", "b")),
            ),
            blocks=2,
        ),
        "hidden-not-emitted": History(
            "D02",
            (
                step(arrive("x"), rows="x:0:1"),
                step(*ends("x"), arrive("a"), rows="a:0:2", emits=(M,)),
                step(arrive("b", 1, 0, nodes=(2,)), rows="b:1:3", to=[ALL, "discard"]),
                last(*ends("a", "b")),
            ),
            blocks=2,
        ),
        "step-given-up": History(
            "W9, D05",
            (
                step(arrive("c"), rows="c:1:1"),
                step(*ends("c"), arrive("a"), rows="a:1:2", dropped=True),
                step(arrive("b", 1, 1), rows="b:0:3", to=[ALL, "discard"]),
                last(*ends("a", "b")),
            ),
            blocks=2,
            more=MappingProxyType({"is_honest": False}),
        ),
        "hit-with-a-hole": History(
            "D09, W15",
            (
                step(arrive("a"), rows="a:0:1"),
                step(arrive("b", 1, 2), goes_on("a"), rows="b:1:2 a:3:3", to=[("a",), ("a", "b"), "discard"]),
                step(arrive("d"), rows="d:2:4"),
                step(arrive("f", 1, 3, nodes=(3,)), rows="f:4:5", to=[ALL]),
                last(*ends("a", "b", "d", "f")),
            ),
            blocks=5,
            pages=4,
            more=MappingProxyType({"is_honest": False}),
        ),
        "named-blocks": History(
            "R14",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, M), computes=((0, 1),)),
                step(*ends("a"), arrive("b"), rows="b:0:2", emits=(H, M), computes=((0, 2),), dropped=None),
                step(
                    arrive("c", 1, 0, nodes=(1,), named=True),
                    arrive("d", 1, 0, nodes=(2,), named=True),
                    rows="c:1:3 d:2:4",
                    emits=(H, M),
                    to=[("c",), ("d",), "discard"],
                ),
                last(*ends("b", "c", "d")),
            ),
            blocks=3,
            more=MappingProxyType({"is_honest": False}),
        ),
        "named-blocks-of-one-hit": History(
            "R14",
            (
                step(arrive("a", 2), rows="a:0:1 a:1:2", emits=(M,), computes=((0, 1), (1, 2))),
                step(*ends("a"), arrive("b"), rows="b:1:3", emits=(M,), computes=((1, 3),)),
                step(
                    arrive("c", 1, 0, 1, nodes=(1, 2), named=True),
                    arrive("d", 1, 1, 0, nodes=(2, 1), named=True),
                    rows="c:2:4 d:3:5",
                    emits=(M,),
                    to=[ALL, "discard"],
                ),
                last(*ends("b", "c", "d")),
            ),
            pages=2,
            more=MappingProxyType({"is_honest": False, "begins_apart": False}),
        ),
        # --- Failures, resets, shutdown --------------------------------------------------------------------------
        "failed-write": History(
            "A10",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL, "discard"]),
                last(*ends("b")),
            ),
            blocks=2,
            pages=2,
            more=faults(failures=1),
            resume=3,
            heavy=20_000,
        ),
        "failed-immediate-write": History(
            "A10",
            (
                step(arrive("a"), rows="a:0:1", to=[ALL, "discard"]),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", to=[("b",), "discard"]),
                last(*ends("b")),
                step(arrive("z"), rows="z:0:5", to=[ALL]),
                last(*ends("z")),
            ),
            blocks=2,
            pages=2,
            more=faults(failures=1),
            resume=3,
            heavy=24_000,
        ),
        "failed-read": History(
            "R13",
            (
                step(arrive("a"), rows="a:0:1"),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", to=[ALL, "discard"]),
                step(arrive("c"), rows="c:0:3"),
                last(*ends("b", "c")),
            ),
            blocks=2,
            more=faults(failures=1),
        ),
        "reset-behind-a-write": History(
            "A16, W10",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                last(*ends("a")),
                step(arrive("b"), rows="b:0:2", emits=(C,), to=[ALL]),
                last(*ends("b")),
            ),
            blocks=1,
            pages=2,
            more=faults(failures=1, resets=1),
            resume=2,
            heavy=12_000,
        ),
        "reset-with-a-step": History(
            "W11, A16",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, C), to=[ALL, "discard"]),
                last(*ends("a")),
            ),
            blocks=1,
            pages=2,
            more=faults(resets=1, abandons=1),
            resume=2,
        ),
        "reset-under-a-builder": History(
            "R24",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL, "discard"]),
                last(*ends("b")),
            ),
            blocks=2,
            pages=2,
            more=faults(failures=1, abandons=1, tells_copied=True),
            resume=3,
            heavy=21_000,
        ),
        "shut-down": History(
            "R15",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,), to=[ALL]),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL, "discard"]),
                last(*ends("b")),
            ),
            blocks=2,
            pages=2,
            more=faults(shutdowns=1, **AT_ONCE_BEGUN),
            heavy=18_000,
        ),
    }
)
"""Every scenario of pages and ends, by name."""
