"""The rules of the join, each broken by hand: a check that cannot fail judges nothing."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tenure.core.blocks.values import AllocationRequested, LeaseFinished, LeasePreempted, PublishStored
from tenure.core.blocks.view import CachedCopy, PrivateCopy
from tenure.core.errors import InvariantViolation
from tenure.core.joined.values import BatchDropped, BatchStarted, CacheView, RequestId
from tenure.core.rows.answers import Done
from tenure.core.rows.events import ContentIdentity, CopyBegan, SavePublished
from tenure.core.rows.names import HIDDEN
from tenure.core.rows.view import ReadPhase
from tenure.spec.joined.rules import (
    RULES,
    STATE_CHECKS,
    TRANSITION_CHECKS,
    CacheObservation,
    broken_rules,
    broken_transition_rules,
    check_observation,
)
from tests.joined.site import Site
from tests.paths import ROOT


def good() -> CacheView:
    """Request a has ended and is cached, b shares its block and waits for its rows, c owes rows that are visible."""
    site = Site("scheduled")
    site.open("a", [1, 2, 3])
    site.allocate("a")
    site.materialize(site.step("a"), "a")
    site.tell(LeaseFinished("a"))
    site.start()
    site.drain()
    site.open("b", [1, 2, 9])
    site.allocate("b")
    site.step("b")
    site.open("c", [7, 8, 9])
    site.allocate("c")
    site.schedule("c")
    return site.view


def rows(view: CacheView, **changes: Any) -> CacheView:
    """With other rows."""
    return replace(view, rows=replace(view.rows, **changes))


def blocks(view: CacheView, **changes: Any) -> CacheView:
    """With other blocks."""
    return replace(view, blocks=replace(view.blocks, **changes))


def with_absent_rows(view: CacheView) -> CacheView:
    """The rows of a's visible block are gone."""
    return rows(view, newest={**view.rows.newest, HIDDEN: tuple(0 for _ in view.rows.newest[HIDDEN])})


def with_other_content(view: CacheView) -> CacheView:
    """A block holds something else than its hash says."""
    other = {block: ContentIdentity(1, each.group) for block, each in view.rows.identities.items()}
    return rows(view, identities=other)


def with_claimed_row(view: CacheView) -> CacheView:
    """A row that b's read still waits for was claimed again."""
    number, read = next((n, read) for n, read in view.rows.reads.items() if read.phase is ReadPhase.PLANNED)
    claims = list(view.rows.newest[read.name])
    claims[read.slots[0]] += 100
    assert number
    return rows(view, newest={**view.rows.newest, read.name: tuple(claims)})


def without_lease(view: CacheView) -> CacheView:
    """The lease of whoever owes rows is gone."""
    return blocks(view, leases={name: lease for name, lease in view.blocks.leases.items() if name != "c"})


def with_other_group(view: CacheView) -> CacheView:
    """Request b is of another group than the block it shares."""
    return replace(view, tracks={**view.tracks, "b": view.tracks["b"]._replace(group="red")})


BROKEN_STATES: list[tuple[str, Callable[[CacheView], CacheView]]] = [
    ("X01", with_absent_rows),
    ("X01", with_other_content),
    ("X03", with_claimed_row),
    ("X04", without_lease),
    ("X05", with_other_group),
]


@pytest.mark.parametrize(("rule", "spoil"), BROKEN_STATES, ids=lambda each: getattr(each, "__name__", each))
def test_spoiled_states_break_their_rule(rule: str, spoil: Callable[[CacheView], CacheView]) -> None:
    """And the state that was spoiled breaks none."""
    view = good()
    assert not broken_rules(view)

    assert rule in [name for name, _ in broken_rules(spoil(view))]


def with_hits(view: CacheView, **hits: int) -> CacheView:
    """With other tokens of hits that are to be announced."""
    tracks = {name: track._replace(hit=hits.get(str(name), track.hit)) for name, track in view.tracks.items()}
    return replace(view, tracks=tracks)


def with_announced(view: CacheView, *hits: tuple[RequestId, tuple[int, ...]]) -> CacheView:
    """The started step has other hits."""
    assert view.rows.pending is not None
    step = replace(view.rows.steps[view.rows.pending], hits=hits)
    return rows(view, steps={**view.rows.steps, view.rows.pending: step})


def two_hits() -> tuple[CacheObservation, CacheObservation, CacheObservation, CacheObservation]:
    """The second of two requests is granted its hit; then the step of both is started, and given up; one ends."""
    site = Site()
    site.open("old", [1, 2, 3])
    site.allocate("old")
    site.step("old")
    for name, token in (("a", 8), ("b", 9)):
        site.open(name, [1, 2, token])
    site.allocate("a")
    views = [site.view]
    answer = site.tell(AllocationRequested("b", 3, 1))
    views.append(site.view)
    site.schedule("a")
    site.schedule("b")
    views.append(site.view)
    site.start()
    views.append(site.view)
    site.drop()
    views.append(site.view)
    site.tell(LeasePreempted("b"))
    return (
        CacheObservation(views[0], AllocationRequested("b", 3, 1), views[1], answer, ()),
        CacheObservation(views[2], BatchStarted(), views[3], Done(), ()),
        CacheObservation(views[3], BatchDropped(), views[4], Done(), ()),
        CacheObservation(views[4], LeasePreempted("b"), site.view, Done(), ()),
    )


SPOILED_HITS: list[tuple[str, int, Callable[[CacheObservation], CacheObservation]]] = [
    ("granted and forgotten", 0, lambda seen: replace(seen, after=with_hits(seen.after, b=0))),
    ("another one granted", 0, lambda seen: replace(seen, after=with_hits(seen.after, a=0))),
    ("not announced", 1, lambda seen: replace(seen, after=with_announced(seen.after, ("a", (0, 1))))),
    ("announced in part", 1, lambda seen: replace(seen, after=with_announced(seen.after, ("a", (0, 1)), ("b", (0,))))),
    ("announced and owed", 1, lambda seen: replace(seen, after=with_hits(seen.after, b=2))),
    ("given up and forgotten", 2, lambda seen: replace(seen, after=with_hits(seen.after, b=0))),
    ("given up and announced", 2, lambda seen: replace(seen, after=replace(seen.after, announced={"b": 2}))),
    ("not known as announced", 1, lambda seen: replace(seen, after=replace(seen.after, announced={"a": 2}))),
    ("preempted and owed", 3, lambda seen: replace(seen, after=with_hits(seen.after, b=2))),
]


@pytest.mark.parametrize(("what", "place", "spoil"), SPOILED_HITS, ids=[what for what, *_ in SPOILED_HITS])
def test_x01_hit_that_is_lost_or_made_up_breaks_the_rule(
    what: str, place: int, spoil: Callable[[CacheObservation], CacheObservation]
) -> None:
    """A request is handed each row of its prompt, so a hit is announced, once, by a step that stays."""
    del what
    seen = two_hits()[place]
    assert not broken_transition_rules(seen)

    assert ["X01"] == [name for name, _ in broken_transition_rules(spoil(seen))]


def saved() -> CacheObservation:
    """The publication of a step that computes a block."""
    site = Site()
    site.open("a", [1, 2, 3])
    site.allocate("a")
    site.schedule("a")
    site.start()
    site.request_save()
    before = site.view
    site.publish()
    # The events themselves are not kept by the site: one Stored event told what is visible now.
    names = tuple(site.view.blocks.index)
    stored = PublishStored(0, 0, None, names, (0,) * len(names), None)
    return CacheObservation(before, SavePublished(1), site.view, Done(), (stored,))


def granted_at_a_save(seen: CacheObservation) -> CacheObservation:
    """A request is granted a hit by nothing that grants one."""
    return replace(seen, after=with_hits(seen.after, a=2))


def into_a_shared_block(seen: CacheObservation) -> CacheObservation:
    """The block that is computed was cached before."""
    copies = {block: CachedCopy(5, 1, 0) for block in seen.before.blocks.copies}
    return replace(seen, before=blocks(seen.before, copies=copies))


def into_a_foreign_block(seen: CacheObservation) -> CacheObservation:
    """The block that is computed is another request's."""
    assert any(isinstance(copy, PrivateCopy) for copy in seen.before.blocks.copies.values())
    return replace(seen, before=blocks(seen.before, leases={"b": seen.before.blocks.leases["a"]}))


def out_of_turn(seen: CacheObservation) -> CacheObservation:
    """A completion computes slots."""
    return replace(seen, event=CopyBegan(1))


def untold(seen: CacheObservation) -> CacheObservation:
    """A hash becomes visible, and nobody is told."""
    return replace(seen, commands=())


BROKEN_OBSERVATIONS: list[tuple[str, Callable[[CacheObservation], CacheObservation]]] = [
    ("X01", granted_at_a_save),
    ("X02", into_a_shared_block),
    ("X02", into_a_foreign_block),
    ("X02", out_of_turn),
    ("X04", untold),
]


@pytest.mark.parametrize(("rule", "spoil"), BROKEN_OBSERVATIONS, ids=lambda each: getattr(each, "__name__", each))
def test_spoiled_observations_break_their_rule(
    rule: str, spoil: Callable[[CacheObservation], CacheObservation]
) -> None:
    """And the one that was spoiled breaks none."""
    seen = saved()
    assert not broken_transition_rules(seen)
    spoiled = spoil(seen)

    assert rule in [name for name, _ in broken_transition_rules(spoiled)]
    with pytest.raises(InvariantViolation, match=rule):
        check_observation(spoiled)


def test_every_rule_is_checked_upheld_and_tested_by_name() -> None:
    """X01 to X05: words, a check, a line in the core, a test of its name."""
    core = "".join(file.read_text() for file in (ROOT / "core").rglob("*.py"))
    tests = "".join(file.read_text() for file in (ROOT / "tests" / "joined").glob("*.py"))
    checked = {name for name, _ in (*STATE_CHECKS, *TRANSITION_CHECKS)}

    assert [f"X0{number}" for number in range(1, 6)] == [rule.id for rule in RULES]
    assert {rule.id for rule in RULES} == checked
    assert {name for name, _ in STATE_CHECKS} == {name for name, _ in BROKEN_STATES}
    assert {name for name, _ in TRANSITION_CHECKS} == {name for name, _ in BROKEN_OBSERVATIONS}
    for rule in RULES:
        assert re.search(rf"\b{rule.id}\b", core), f"no line of core/ names {rule.id}"
        assert re.search(rf"def test_(\w+_)?{rule.id.lower()}_", tests), f"no test is named after {rule.id}"
