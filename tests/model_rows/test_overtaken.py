"""What is overtaken by something else: failures of one command alone, and a reset of what was shut down."""

from typing import cast

from tenure.core.errors import ShutDownError
from tenure.model_checks.rows.breaking import BreakingModel
from tenure.model_checks.rows.histories_overtaken import OVERTAKEN
from tenure.model_checks.rows.stage import State
from tests.model_rows.runs import rows_model, wander


def test_failures_of_a_history_are_those_that_it_names() -> None:
    """A history about one failure is lost among the others of its device."""
    failed: set[str] = set()
    for seed in range(12):
        model = OVERTAKEN["partial-materialize-overtaken"].model()
        for state, _, _ in wander(model, seed, 100):
            failed |= {str(event[3]) for event in model.events(state) if event[1] == "fail"}

    assert {"scatter of write 2"} == failed


def test_r15_cache_that_was_shut_down_stays_so_when_it_is_reset() -> None:
    """A reset makes a failed cache serve again; whoever shut it down meant it."""
    model = rows_model("protocol-breaking-and-shutdown")
    assert isinstance(model, BreakingModel)
    resets = refused = 0
    for seed in range(20):
        for state, event, taken in wander(model, seed, 60):
            after = cast("State", taken.state)
            if event[1] != "reset":
                continue
            resets += 1
            assert state.env.is_down, "this scope resets only what was shut down"
            assert after.env.is_down
            answers = [
                model.cores.step(after.core, mistake.event, ("mistake", mistake.token))
                for mistake in model._mistakes(after)  # pyright: ignore[reportPrivateUsage]
            ]
            refused += sum(isinstance(answer.error, ShutDownError) for answer in answers)

    assert resets > 0
    assert refused >= resets
