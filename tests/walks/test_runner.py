"""Walks at volume: what they find is found again from the seed, made short, and told; what they miss is told too."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest
from click.testing import CliRunner

from tenure.core.errors import InvariantViolation
from tenure.model_checks.explorer import Verdict
from tenure.model_checks.explorer.toys import Counting, Slots
from tenure.model_checks.model import Event, Taken
from tenure.model_checks.walks import MACHINES, Fault, Machine, ModelMachine, OracleMachine, runner, shorten
from tenure.model_checks.walks.__main__ import main
from tenure.model_checks.walks.codes import CRASH
from tenure.model_checks.walks.machines import Walked
from tenure.model_checks.walks.shortening import fault_of, left_out
from tenure.spec.goals import Goals

FEW: Final = Walked(1, 40, 100)


class Falling(Counting):
    """Falls over where it should count on."""

    def take(self, state: int, event: Event) -> Taken:
        if state == 4:
            raise ZeroDivisionError("nothing is divided by nothing")
        return super().take(state, event)


def quiet_machine() -> Machine:
    return ModelMachine("quiet", FEW, partial(Slots, 2, 2, 1))


def wrong_machine() -> Machine:
    return ModelMachine("wrong", FEW, partial(Counting, 60, 55))


def odd_walk(data: Iterable[int], watch: Callable[[Any], None]) -> Counter[str]:
    """A machine that differs from its oracle when it is told 7 and later 9."""
    del watch
    told: list[int] = []
    for number in data:
        told.append(number)
        if number == 9 and 7 in told:
            raise InvariantViolation("AGREEMENT", "7 before 9")
    return Counter({"Told": len(told)})


def odd_machine() -> Machine:
    return OracleMachine("odd", FEW, odd_walk, lambda: Goals[Any]((), ()))


def test_walks_by_one_seed_are_the_same_and_by_another_are_not() -> None:
    """A failure must be the same tomorrow."""
    one, same, other = (runner.run_walks(500, seed=seed, machines=[quiet_machine()]).machines[0] for seed in (1, 1, 2))

    assert (one.events, one.states, one.seen) == (same.events, same.states, same.seen)
    assert 500 <= one.events
    assert one.states
    batch = runner.Batch(quiet_machine(), 0, 100, 1)
    assert runner.walk_bytes(batch, 0) != runner.walk_bytes(batch._replace(seed=2), 0)
    assert runner.walk_bytes(batch, 0) != runner.walk_bytes(batch, 1)
    assert 0 != other.events


def test_events_are_shared_out_and_all_are_told() -> None:
    """A million events of which a machine got none would say nothing of it."""
    twice = ModelMachine("twice", FEW._replace(share=2), partial(Slots, 2, 2, 1))
    result = runner.run_walks(900, machines=[quiet_machine(), twice])

    assert [300, 600] == [each.wanted for each in result.machines]
    assert all(each.wanted <= each.events for each in result.machines)
    assert 0 == result.exit_code


def test_fault_in_a_model_is_found_shortened_and_told() -> None:
    """A walk of forty events is no explanation."""
    result = runner.run_walks(5000, machines=[wrong_machine()])
    (fault,) = result.machines[0].faults

    assert Verdict.REFUTED is result.verdict
    assert 1 == result.exit_code
    assert ("N01", 28) == (fault.rule, len(fault.story))
    found = fault_of(wrong_machine(), fault.data)
    assert found is not None
    assert "N01" == found.rule


def test_fault_beside_an_oracle_is_shortened_to_what_it_needs() -> None:
    """Numbers that do not matter hide those that do."""
    result = runner.run_walks(50_000, machines=[odd_machine()])
    (fault,) = result.machines[0].faults

    assert bytes([7, 9]) == fault.data
    assert "AGREEMENT" == fault.rule


def test_crash_is_a_fault() -> None:
    """A machine that falls over is found like one that is wrong."""
    machine = ModelMachine("falling", FEW, partial(Falling, 60))
    result = runner.run_walks(500, machines=[machine])

    assert [CRASH] == [fault.rule for fault in result.machines[0].faults]
    assert "ZeroDivisionError" in result.machines[0].faults[0].found
    assert 3 == len(result.machines[0].faults[0].story)
    assert 1 == result.exit_code


def test_time_that_is_over_is_told_and_is_no_success() -> None:
    """What was not walked has not been shown."""
    result = runner.run_walks(5000, seconds=1e-9, machines=[quiet_machine()])

    assert result.is_cut
    assert 3 == result.exit_code


def test_mechanism_that_is_never_met_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks that meet nothing must not pass for walks that found nothing."""
    monkeypatch.setattr(runner, "ENOUGH", 500)
    wanting = ModelMachine("wanting", FEW._replace(must_see=frozenset({"goal never"})), partial(Slots, 2, 2, 1))
    result = runner.run_walks(500, machines=[wanting])

    assert {"wanting": frozenset({"goal never"})} == result.missed
    assert 4 == result.exit_code


def test_shortening_stops_when_its_time_is_over() -> None:
    """A slow machine must not make a failure wait for ever."""
    assert [1, 2, 3] == list(left_out([1, 2, 3], lambda some: 2 in some, seconds=0))
    assert [2] == list(left_out([1, 2, 3], lambda some: 2 in some))


def test_fault_that_does_not_come_again_keeps_its_bytes() -> None:
    """A machine that is not deterministic leaves nothing but the bytes to look at."""
    fault = Fault("N01", "it was wrong once", bytes(10))

    assert fault == shorten(quiet_machine(), fault)


@pytest.mark.parametrize("name", MACHINES)
def test_each_machine_goes_a_walk_and_meets_something(name: str) -> None:
    """A machine that cannot begin would be missed only at night."""
    walker = MACHINES[name].walker()
    walker.walk(runner.walk_bytes(runner.Batch(MACHINES[name], 0, 0, 3), 0)[:120])

    assert walker.events >= 10
    assert len(walker.seen) >= 8


def test_shares_are_a_thousand_and_more_than_a_fifth_is_beside_oracles() -> None:
    """The oracles know what no rule says."""
    shares = {each.name: each.how.share for each in MACHINES.values()}

    assert 1000 == sum(shares.values())
    assert 220 <= sum(share for name, share in shares.items() if "oracle" in name)


def test_command_line_shows_a_line_for_each_machine() -> None:
    """What was walked is read, not guessed."""
    ran = CliRunner().invoke(main, ["--events", "300", "--workers", "1", "--machine", "blocks-lawless"])

    assert 0 == ran.exit_code, ran.output
    assert "blocks-lawless" in ran.output
    assert "mechanisms" in ran.output


def test_command_line_tells_the_story_of_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs it must be able to go on from what it prints."""
    name = "blocks-lawless"
    wrong = replace(ModelMachine(name, FEW, partial(Counting, 60, 55)))
    monkeypatch.setattr("tenure.model_checks.walks.__main__.MACHINES", {name: wrong})
    ran = CliRunner().invoke(main, ["--events", "3000", "--workers", "1", "--machine", name])

    assert 1 == ran.exit_code
    assert "breaks N01" in ran.output
    assert "bytes.fromhex(" in ran.output


def test_two_workers_count_what_one_counts() -> None:
    """Who walks must not matter."""
    lawless = MACHINES["blocks-lawless"]
    machine = (
        ModelMachine(lawless.name, Walked(1, 400, 300), lawless.make) if isinstance(lawless, ModelMachine) else None
    )
    assert machine is not None
    one, two = (runner.run_walks(1200, workers=workers, machines=[machine]).machines[0] for workers in (1, 2))

    assert (one.events, one.states, one.seen) == (two.events, two.states, two.seen)
