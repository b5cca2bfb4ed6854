"""`tenure mutants`: what kills a fault, and all that does not count as a kill."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tenure.model_checks.counterexamples import Outcome, PlantedReplayError, load, replay_file
from tenure.model_checks.mutants import runner
from tenure.model_checks.mutants.blocks import BLOCK_MUTANTS
from tenure.model_checks.mutants.joined import JOINED_MUTANTS
from tenure.model_checks.mutants.mutant import Mutant
from tenure.model_checks.mutants.rows import ROW_MUTANTS
from tenure.model_checks.mutants.runner import Fate, Hunt, hunt_all, judged, junit_of, mutants_named
from tenure.model_checks.mutants.trial import try_scope
from tenure.model_checks.reports.story import SCREEN_LINES, story_lines
from tests.checking.conftest import Invoke

D01 = "w01-planned-once"
HARMLESS = Mutant(
    "harmless",
    "tenure.core.blocks.pool",
    "    _use(edit, blocks, 1)",
    "    _use(edit, blocks, 2 - 1)",
    "blocks/one-chunk",
    "I10",
    "Nothing is other.",
)


@pytest.fixture(scope="module")
def hunts() -> dict[str, Hunt]:
    """Four faults, hunted together: each takes a process."""
    (planted,) = mutants_named([D01])
    faults = [
        planted,
        replace(planted, id="misnamed", rule="R05"),
        HARMLESS,
        replace(HARMLESS, id="nowhere", old="no such text"),
        replace(HARMLESS, id="scopeless", scope="blocks/none-such"),
    ]
    return {each.mutant.id: each for each in hunt_all(faults, 2)}


def test_fault_that_breaks_its_rule_is_killed_on_one_screen(hunts: dict[str, Hunt]) -> None:
    """The seed's same-step hit, D01: found by the rule named for it, in a story that can be read at once."""
    hunt = hunts[D01]
    (story,) = [story for story in hunt.stories if story.rule == hunt.mutant.rule]
    lines = story_lines(story)

    assert Fate.KILLED is hunt.fate
    assert "R02" in hunt.rules
    assert hunt.depth == len(story.events) > 0
    assert 24 <= len(lines) <= SCREEN_LINES
    assert max(len(line.text) for line in lines) <= 120
    assert any(told.changes for told in story.events)


def test_fault_that_another_rule_finds_is_not_killed(hunts: dict[str, Hunt]) -> None:
    """By accident is not by design: the rule that was to find it is blind to it."""
    assert Fate.OTHER_RULE is hunts["misnamed"].fate
    assert "R02" in hunts["misnamed"].why
    assert "instead of R05" in hunts["misnamed"].why


def test_fault_that_changes_nothing_survives(hunts: dict[str, Hunt]) -> None:
    """A runner that calls everything killed would be of no use."""
    assert Fate.SURVIVED is hunts["harmless"].fate
    assert hunts["harmless"].states > 1


def test_fault_whose_text_is_not_there_is_an_error(hunts: dict[str, Hunt]) -> None:
    """The core was written anew, and the fault is planted no more."""
    assert Fate.ERROR is hunts["nowhere"].fate
    assert "0 times is 'no such text'" in hunts["nowhere"].why


def test_fault_in_a_scope_that_is_not_there_is_an_error(hunts: dict[str, Hunt]) -> None:
    """Likewise a scope that was renamed."""
    assert Fate.ERROR is hunts["scopeless"].fate
    assert "blocks/none-such" in hunts["scopeless"].why


@pytest.mark.parametrize(
    ("verdict", "rules", "fate"),
    [
        ("REFUTED", ["R02", "R05"], Fate.KILLED),
        ("REFUTED", ["R05"], Fate.OTHER_RULE),
        ("PROVED", [], Fate.SURVIVED),
        ("UNDETERMINED", [], Fate.UNDETERMINED),
        ("BAD MODEL", [], Fate.ERROR),
    ],
)
def test_fate_of_a_trial_follows_verdict_and_rules(verdict: str, rules: list[str], fate: Fate) -> None:
    """Only a broken rule kills, and only the named one."""
    said = {
        "verdict": verdict,
        "reasons": ["so it is"],
        "rules": rules,
        "depths": dict.fromkeys(rules, 3),
        "states": 7,
        "seconds": 0.5,
        "stories": [],
    }
    hunt = judged(replace(HARMLESS, rule="R02"), said)

    assert fate is hunt.fate
    assert (fate is Fate.KILLED) == (not hunt.why)


def test_junit_of_survivors_fails_and_of_what_was_not_planted_is_an_error(hunts: dict[str, Hunt]) -> None:
    """CI reads the counts."""
    root = ET.fromstring(junit_of(hunts.values()))  # noqa: S314 - made here

    assert ("5", "2", "2", "0") == tuple(root.get(name) for name in ("tests", "failures", "errors", "skipped"))


def test_command_of_one_fault_kills_it_saves_its_story_and_replays_it(invoke: Invoke, here: Path) -> None:
    """From the fault to the file to the core with the fault and the core without."""
    result = invoke("mutants", D01, "--report", "out", "--save", "saved", "--junit", "mutants.xml")
    (file,) = (here / "saved").iterdir()
    said = json.loads((here / "out" / "mutants.json").read_text(encoding="utf-8"))
    with_fault = invoke("explain", file, "--replay", "--mutant", D01)
    without = invoke("explain", file, "--replay")

    assert 0 == result.exit_code, result.output
    assert "1 of 1 killed by the rule that was named beforehand" in result.output
    assert (1, "KILLED", "R02") == (said["killed"], said["mutants"][0]["fate"], said["mutants"][0]["rule"])
    assert D01 == load(file).mutant
    assert (1, 0) == (with_fault.exit_code, without.exit_code)
    assert "BROKEN R02" in with_fault.output
    assert (here / "mutants.xml").is_file()


def test_command_of_a_survivor_ends_with_one(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole point of it."""

    def only(_: object) -> list[Mutant]:
        return [HARMLESS]

    monkeypatch.setattr("tenure.checking.mutants_named", only)
    result = invoke("mutants")

    assert 1 == result.exit_code
    assert "SURVIVED harmless: blocks/one-chunk is PROVED with it" in result.output


def test_command_of_an_unknown_fault_ends_with_two(invoke: Invoke) -> None:
    """And plants nothing."""
    result = invoke("mutants", "w99-nothing")

    assert 2 == result.exit_code
    assert "'w99-nothing' is no planted fault" in result.output


def test_command_lists_faults_without_a_hunt(invoke: Invoke) -> None:
    """What there is."""
    result = invoke("mutants", "--list")

    assert 0 == result.exit_code
    assert D01 in result.output
    assert "KILLED" not in result.output


def test_faults_that_cannot_be_read_are_errors_and_hide_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a typing error in their list would make all of them killed."""
    monkeypatch.setitem(runner.FAMILIES, "joined", ("tests.checking.gone", "MUTANTS"))
    (stand_in,) = [mutant for mutant in mutants_named() if mutant.id == "joined/import"]
    (hunt,) = hunt_all([stand_in])

    assert D01 in {mutant.id for mutant in mutants_named()}
    assert Fate.ERROR is hunt.fate
    assert "tests.checking.gone" in hunt.why


def test_replay_with_a_fault_that_cannot_be_planted_says_so() -> None:
    """It must not look like a rule that breaks, nor like one that holds."""
    with pytest.raises(PlantedReplayError, match="0 times"):
        replay_file(Path(__file__).parent / "d01.json", replace(HARMLESS, old="no such text"))


def test_replay_of_d01_on_the_core_that_ships_is_mended() -> None:
    """The seed's defect stays out."""
    assert Outcome.MENDED is replay_file(Path(__file__).parent / "d01.json").outcome


def test_faults_of_all_machines_are_known_by_names_that_differ() -> None:
    """A family that the command does not know of is never hunted; of two with one name, one."""
    every = (*BLOCK_MUTANTS, *ROW_MUTANTS, *JOINED_MUTANTS)

    assert len({mutant.id for mutant in every}) == len(every) >= 40
    assert sorted(every, key=lambda mutant: mutant.id) == sorted(mutants_named(), key=lambda mutant: mutant.id)


def test_trial_without_a_fault_says_that_nothing_breaks() -> None:
    """What a process with a fault prints, here without one."""
    said = try_scope("blocks/one-chunk", 30, "none")

    assert ("PROVED", [], [], {}) == (said["verdict"], said["rules"], said["stories"], said["depths"])
    assert said["states"] > 1
