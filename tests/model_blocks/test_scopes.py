"""The scopes of the block machine, and what they claim."""

import dataclasses
from collections.abc import Callable
from typing import cast

import pytest

from tenure.model_checks.blocks import antecedents, wanted
from tenure.model_checks.blocks.block_model import BlockSituation
from tenure.model_checks.blocks.calls import COMMAND_NAMES, EVENT_NAMES
from tenure.model_checks.blocks.engine import Engine, Habits
from tenure.model_checks.blocks.nodes import Nodes
from tenure.model_checks.blocks.scopes import CLAIMS, FREE, SCOPES
from tenure.model_checks.blocks.scripts import lives
from tenure.model_checks.blocks.stories import STORIES, Story, given
from tenure.model_checks.explorer.scopes import check_scope
from tenure.model_checks.explorer.search import explore
from tenure.model_checks.explorer.verdicts import Verdict
from tenure.model_checks.model import Model, Scope
from tenure.spec.blocks.goals import GOALS, RUN_GOALS
from tenure.spec.blocks.rules import RULES

BY_NAME = {each.name: each for each in SCOPES}
SMOKE = sorted(each.name for each in SCOPES if "smoke" in each.sets)


@pytest.mark.parametrize("name", SMOKE)
def test_smoke_scope_is_proved(name: str) -> None:
    """Every push: the machine as it ships breaks no rule in the small."""
    result = check_scope(BY_NAME[name])

    assert result.verdict is Verdict.PROVED, (result.reasons, result.counterexamples)


def test_claims_name_every_rule_event_command_and_goal() -> None:
    """A rule that no scope has to exercise could be dropped from the machine and nobody would see."""
    wanted_marks = {f"rule {each.id}" for each in RULES}
    wanted_marks |= {f"event {each}" for each in EVENT_NAMES} | {f"command {each}" for each in COMMAND_NAMES}
    wanted_marks |= {f"goal {each.name}" for each in GOALS} | {f"goal {each.name}" for each in RUN_GOALS}

    assert not wanted_marks - CLAIMS


def test_claims_are_what_the_scopes_of_ci_expect_together() -> None:
    """A claim that no scope answers for would fail every run; one that is not claimed could fall away unseen."""
    expected = frozenset[str]().union(*(each.expects for each in SCOPES if "ci" in each.sets))

    assert expected == CLAIMS


def test_scopes_have_names_of_their_own_and_expect_something() -> None:
    """Expectations are looked up by name, and a name without any would prove things by seeing nothing."""
    assert len(SCOPES) == len(BY_NAME) == len(FREE) + len(STORIES)
    assert not [each.name for each in SCOPES if "ci" in each.sets and not each.expects]
    assert not [each.name for each in SCOPES if "smoke" in each.sets and "ci" not in each.sets]


def test_every_rule_has_an_antecedent() -> None:
    """I14 has none of its own: a refused event is one."""
    judged = {*antecedents.STATE_ANTECEDENTS, *antecedents.SEEN_ANTECEDENTS, "I14"}

    assert judged == {each.id for each in RULES}


def test_every_goal_is_sought_where_it_can_be_reached() -> None:
    """A goal sought at the wrong events is never found; a snapshot may go stale by almost any."""
    assert set(wanted.REACHED_BY) == {goal.name for goal in GOALS} - {"stale_snapshot"}
    assert {name for names in wanted.REACHED_BY.values() for name in names} <= set(EVENT_NAMES)


def test_too_small_scope_proves_nothing() -> None:
    """An engine that never preempts leaves marks unseen, and silence must not pass for proof."""
    free = next(each for each in FREE if each.name == "two-requests")
    idle = dataclasses.replace(free, plays=Habits(1, misses=True))

    result = check_scope(idle.scope())

    assert result.verdict is Verdict.BAD_MODEL
    assert "event LeasePreempted" in result.missing


@pytest.mark.parametrize("name", ["one-fence", "two-requests", "lawless-one-fence"])
def test_memo_changes_nothing_but_time(name: str) -> None:
    """What was worked out once must be what would be worked out again."""
    free = next(each for each in FREE if each.name == name)
    keeping, forgetting = free.make(), free.make()
    forgetting.nodes = Nodes(forgetting.nodes.world, lawless=forgetting.nodes.lawless, remembering=False)

    assert explore(keeping).counts() == explore(forgetting).counts()


def test_state_of_another_process_is_the_same_state() -> None:
    """Numbers of nodes are a process's own; what is sent and encoded must not be."""
    free = next(each for each in FREE if each.name == "one-fence")
    one, other = free.make(), free.make()
    ahead = next(iter(one.initial()))
    for _ in range(3):
        led_to = one.take(ahead, one.events(ahead)[0]).state
        assert isinstance(led_to, BlockSituation)
        ahead = led_to
    twin = other.unpack(one.pack(ahead))

    assert one.encode(ahead) == other.encode(twin)
    assert one.events(ahead) == other.events(twin)
    assert one.judge(ahead) == other.judge(twin)


def test_i31_actor_that_asks_for_too_much_is_found_by_progress() -> None:
    """Waiting for ever must not count as being done."""
    story = Story("too-much", "", 1, [given("A", 1, 2)], {"A": lives("A", 0)})
    scope = Scope(
        "blocks/too-much",
        "scenario",
        frozenset(),
        {},
        frozenset(),
        cast("Callable[[], Model[object]]", story.make),
        progress=True,
    )

    result = check_scope(scope)

    assert result.verdict is Verdict.REFUTED
    assert [example.rule for example in result.counterexamples] == ["I31"]


def test_engine_offers_nothing_that_is_used_up() -> None:
    """Arrivals bound the search; an arrival too many would make the bound a lie."""
    free = next(each for each in FREE if each.name == "two-requests")
    model = free.make()
    engine = Engine(model.nodes.world, Habits(1))
    thawed = model.nodes.thawed(model.nodes.first())
    offers = engine.offers(thawed.view, thawed.ghost)

    assert [("B", "LeaseOpened", 1)] == [each for each in engine.allowed((0, 1), offers) if each[1] == "LeaseOpened"]
    assert not engine.allowed((0, 0), offers)
