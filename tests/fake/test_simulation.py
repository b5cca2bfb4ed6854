"""Simulations on the emulated device, and planted faults that they must notice."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tenure.backends.fake import FAULT_KINDS, FakeDevice, Seeded
from tenure.cli import main
from tenure.model_checks.devices.histories import OF_DEVICES
from tenure.model_checks.devices.orders import drawn_orders
from tenure.simulate_cli import as_dict, as_table
from tenure.simulation import Simulation
from tenure.simulation.life import Life
from tests.fake.race_mutants import MUTANTS

CHOICES = 45_000
RUNS = 30


def test_r02_r18_r20_histories_without_faults_are_clean() -> None:
    """Rows, races, leaks: a few lives, and that they did something."""
    summary = Simulation(7, ()).run(12_000)

    assert summary.failure is None
    assert 12_000 <= summary.choices
    assert 1 < summary.lives
    for what in ("steps", "rows", "hit_rows", "preempted", "discarded"):
        assert summary.figures[what], summary
    assert summary.orders > summary.figures["steps"] // 2
    assert not summary.faults


def test_r12_r18_r24_histories_with_every_fault_are_clean() -> None:
    """Typed errors, resets, and nothing left; every kind of fault strikes."""
    summary = Simulation(4, FAULT_KINDS).run(55_000)

    assert summary.failure is None
    assert {*FAULT_KINDS} == {*summary.faults}
    for what in ("resets", "dropped", "rows"):
        assert summary.figures[what], summary
    assert summary.stuck


def found_in_histories() -> str:
    """What goes wrong in some orders of the histories of devices, which have little else to do."""
    for history in OF_DEVICES.values():
        try:
            explored = drawn_orders(history, Seeded(1), RUNS)
        except AssertionError as error:
            return repr(error)
        if explored.found:
            return explored.found
    return ""


def test_r11_life_whose_last_builder_lost_its_step_to_a_reset_comes_to_rest() -> None:
    """A builder that was at a step when a write failed is at none behind the reset; it counted as busy for ever."""
    chooser = Simulation(1, FAULT_KINDS).chooser(165)
    life = Life(chooser, FAULT_KINDS)
    figures = life.run()

    assert 1 == figures.resets
    assert not figures.is_stuck


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_race_is_noticed(name: str) -> None:
    """Each by one of the words that were named for it beforehand."""
    mutant = MUTANTS[name]
    with mutant.plant():
        found = found_in_histories()
    if not found:
        with mutant.plant():
            failure = Simulation(1, (), shortens=False).run(CHOICES).failure
        found = failure.found if failure else ""

    assert any(word in found for word in mutant.words), (mutant.why, found)


def test_failure_is_shortened_repeated_and_saved(tmp_path: Path) -> None:
    """What the command tells is what a person needs to see it again."""
    runner = CliRunner()
    with MUTANTS["no-wait-for-the-freeze"].plant():
        result = runner.invoke(main, ["simulate", "--seed", "1", "--choices", "5000", "--save", str(tmp_path)])
        assert 1 == result.exit_code, result.output
        record = tmp_path / "life-0.json"
        again = runner.invoke(main, ["simulate", "--repeat", str(record)])
        assert 1 == again.exit_code, again.output
        assert "race" in again.output
    mended = runner.invoke(main, ["simulate", "--repeat", str(record)])

    assert 0 == mended.exit_code, mended.output
    assert "race" in result.output
    assert "--life 0" in result.output
    assert (tmp_path / "life-0.graphml").read_text().startswith("<?xml")
    shown = json.loads((tmp_path / "life-0.timeline.json").read_text())
    assert shown["traceEvents"]
    saved = json.loads(record.read_text())
    assert len(saved["choices"]) < 200


def test_failure_is_told_where_it_cannot_be_saved(tmp_path: Path) -> None:
    """The search is done by then, and need not be done again."""
    (tmp_path / "file").touch()
    with MUTANTS["no-wait-for-the-freeze"].plant():
        result = CliRunner().invoke(
            main, ["simulate", "--seed", "1", "--choices", "5000", "--save", str(tmp_path / "file" / "x")]
        )

    assert 2 == result.exit_code, result.output
    assert "race" in result.output
    assert "--life 0" in result.output
    assert "cannot be written" in result.output


def shown_figures(choices: int) -> dict[str, object]:
    """The counts of races, other misuses and leaks that the table and the JSON agree on."""
    summary = Simulation(1, (), shortens=False).run(choices)
    found = as_dict(summary)
    cells = {
        row.split("│")[1].strip(): row.split("│")[2].strip() for row in as_table(summary).splitlines() if "│" in row
    }
    names = {"races": "races", "misuses": "other wrong uses of memory", "leaks": "leaks"}
    assert {each: str(found[each]) for each in names} == {each: cells[row] for each, row in names.items()}
    return {each: found[each] for each in names}


def test_r20_races_are_counted() -> None:
    """Not said to be none because nothing failed."""
    with MUTANTS["no-wait-for-the-freeze"].plant():
        found = shown_figures(5000)

    assert found.pop("races")
    assert {"misuses": 0, "leaks": 0} == found


def test_r18_leaks_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that nobody gets back."""

    def kept(_device: FakeDevice, _buffer: object) -> None:
        """It is not given back."""

    monkeypatch.setattr(FakeDevice, "free", kept)
    found = shown_figures(500)

    assert found.pop("leaks")
    assert {"races": 0, "misuses": 0} == found


def test_command_line_is_checked_and_a_summary_is_shown() -> None:
    """As a table and as JSON."""
    runner = CliRunner()
    assert 2 == runner.invoke(main, ["simulate", "--faults", "fire"]).exit_code
    told = runner.invoke(main, ["simulate", "--choices", "2000", "--faults", "late", "--json"])
    table = runner.invoke(main, ["simulate", "--choices", "1000"])

    assert 0 == told.exit_code
    assert 0 < json.loads(told.output)["rows"]
    assert "rows verified" in table.output


def test_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    """Before anything runs."""
    path = tmp_path / "x.json"
    path.write_text("{}")
    result = CliRunner().invoke(main, ["simulate", "--repeat", str(path)])

    assert 2 == result.exit_code
    assert "no record of a life" in result.output
