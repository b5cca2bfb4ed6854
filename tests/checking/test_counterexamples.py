"""Counterexamples: written, read, told, gone through again."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tenure.core.errors import TenureError
from tenure.model_checks import counterexamples
from tenure.model_checks.counterexamples import Outcome, parse, replay
from tenure.model_checks.explorer import Counterexample, Limits, check_scope
from tenure.model_checks.explorer.toys import Counting, Ring, Slots
from tenure.model_checks.model import Broken, Event, Judged, Scope, Taken
from tenure.model_checks.reports.regression import regression_test
from tenure.model_checks.reports.story import SCREEN_LINES, story_lines
from tenure.model_checks.scopes import scope_named
from tenure.model_checks.stories import CounterexampleFileError, Finding, Story, Told, load, save, story_of
from tenure.model_checks.walks import decode
from tests.checking.conftest import Invoke

pytestmark = pytest.mark.usefixtures("toys")


def story_named(name: str) -> Story:
    """The counterexample of a toy scope."""
    scope = scope_named(name)
    example = check_scope(scope).counterexample
    assert example is not None
    return story_of(scope, example)


def test_story_of_a_refuted_scope_has_all_its_reader_needs() -> None:
    """The file is read where the model is not at hand."""
    story = story_named("toys/refuted")

    assert ("toys/refuted", "N01", "state", "T02") == (story.scope, story.rule, story.by, story.scope_source)
    assert [["counter", "add", 1], ["counter", "add", 2], ["counter", "add", 2]] == [
        told.event for told in story.events
    ]
    assert ["count: 0 -> 1"] == story.events[0].changes
    assert ("tuple", "('grow', 0, 1)") == (story.events[0].core[0].name, story.events[0].core[0].text)


class Shattered(Counting):
    """What breaks its rule leaves nothing that can be asked."""

    def take(self, state: int, event: Event) -> Taken:
        """Five is broken on the way there."""
        taken = super().take(state, event)
        return taken._replace(broken=(Broken("N01", "five"),)) if taken.state == 5 else taken

    def judge(self, state: int) -> Judged:
        """Not where it is broken."""
        return Judged(self.EVEN) if 5 // (5 - state) else Judged()

    def changes(self, before: int, after: int) -> list[str]:
        """Nor here."""
        return [str(before // (5 - after))]


def test_story_of_a_state_that_cannot_be_judged_is_told_all_the_same() -> None:
    """A machine that lost its head is just what there is to tell of."""
    scope = replace(scope_named("toys/refuted"), make=cast("Any", lambda: Shattered(9)))
    story = story_of(
        scope, Counterexample("N01", "five", "transition", 0, (("counter", "add", 1), *[("counter", "add", 2)] * 2))
    )
    replayed = replay(story, Shattered(9))

    assert ["(what changed cannot be told)"] == story.events[-1].changes
    assert [] == story.also
    assert (Outcome.BROKEN, "N01", 3) == (replayed.outcome, replayed.rule, replayed.events)


def test_story_that_is_saved_is_read_back_equal(tmp_path: Path) -> None:
    """Nothing is lost on the way through JSON."""
    story = story_named("toys/refuted")

    assert story == load(save(story, tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema_version": 1}',
        "not json",
        '{"schema_version": 2}',
    ],
)
def test_file_that_is_no_counterexample_is_refused_with_its_name(tmp_path: Path, text: str, invoke: Invoke) -> None:
    """A file comes from anywhere."""
    file = tmp_path / "bad.json"
    file.write_text(text, encoding="utf-8")
    result = invoke("explain", file)

    assert 2 == result.exit_code
    assert "is no counterexample of schema 1" in result.output


@pytest.mark.parametrize(
    ("field", "value"), [("rule", 5), ("unheard", "of"), ("by", "magic"), ("events", [{"event": [[1]]}])]
)
def test_file_with_a_field_that_is_wrong_is_refused(field: str, value: object) -> None:
    """A story with a hole in it would be told as if it were whole."""
    said = json.loads(story_named("toys/refuted").text())

    with pytest.raises(CounterexampleFileError, match="is no counterexample"):
        parse(json.dumps({**said, field: value}))


def test_replay_of_a_rule_that_still_breaks_says_so() -> None:
    """The file is what a bug report is made of."""
    replayed = replay(story_named("toys/refuted"))

    assert (Outcome.BROKEN, "N01", 3) == (replayed.outcome, replayed.rule, replayed.events)
    assert 1 == replayed.outcome.exit_code


def test_replay_of_a_model_that_was_mended_finds_nothing() -> None:
    """A fixed bug's file stays as a test."""
    replayed = replay(story_named("toys/refuted"), Counting(9))

    assert (Outcome.MENDED, 3) == (replayed.outcome, replayed.events)
    assert 0 == replayed.outcome.exit_code


class Stubborn(Counting):
    """Does not take the step of two."""

    def events(self, state: int) -> list[Event]:
        """One more."""
        return [("counter", "add", 1)] if state < self.limit else []


def test_replay_that_cannot_go_on_as_told_searches_all_that_may_follow() -> None:
    """A mended core answers otherwise; that the story ends there is no proof that nothing breaks."""
    story = story_named("toys/refuted")
    broken = replay(story, Stubborn(9, wrong=5))
    mended = replay(story, Stubborn(9))

    assert (Outcome.BROKEN, "N01", 1) == (broken.outcome, broken.rule, broken.events)
    assert "cannot happen there any more" in broken.how
    assert (Outcome.MENDED, 1) == (mended.outcome, mended.events)
    assert "none of the 9 states that follow" in mended.how


def test_replay_whose_search_is_cut_is_unknown() -> None:
    """Neither broken nor mended: a budget is no proof."""
    story = story_named("toys/refuted")
    cut = replay(story, Stubborn(10**6), Limits(states=2))
    other = replay(story, Slots(1, 1, 1))

    assert Outcome.UNKNOWN is cut.outcome
    assert 3 == cut.outcome.exit_code
    assert Outcome.MENDED is other.outcome


class Raising(Counting):
    """Fails at the second event."""

    def take(self, state: int, event: Event) -> Taken:
        """One."""
        if state:
            raise ZeroDivisionError
        return super().take(state, event)


def test_replay_of_a_model_that_raises_is_unknown() -> None:
    """A model that fails says nothing of the rule."""
    replayed = replay(story_named("toys/refuted"), Raising(9))

    assert (Outcome.UNKNOWN, 1) == (replayed.outcome, replayed.events)
    assert "ZeroDivisionError" in replayed.how


class Stuck(Counting):
    """Has no place to rest."""

    def is_quiescent(self, state: int) -> bool:
        """Nowhere."""
        del state
        return False

    def judge(self, state: int) -> Judged:
        """Nothing."""
        del state
        return Judged()


def test_replay_of_a_deadlock_looks_at_its_end() -> None:
    """What is broken there is no event and no state, but that nothing follows."""
    story = story_named("toys/refuted").model_copy(update={"by": "deadlock", "rule": "R11"})

    assert Outcome.BROKEN is replay(story, Stuck(5)).outcome
    assert Outcome.MENDED is replay(story, Stuck(9)).outcome


def test_replay_of_progress_looks_at_the_whole_graph() -> None:
    """A loop is fair or not by what else may happen."""
    story = story_named("toys/hogged")

    assert "progress" == story.by
    assert Outcome.BROKEN is replay(story).outcome
    assert Outcome.MENDED is replay(story, Ring(2)).outcome


def test_explain_tells_events_changes_and_the_contradiction(invoke: Invoke, here: Path) -> None:
    """In this order: a reader follows it to its end."""
    file = save(story_named("toys/refuted"), here)
    result = invoke("explain", file)
    places = [
        result.output.index(text)
        for text in (
            "N01 is broken in toys/refuted after 3 events",
            "1  counter add 1",
            "count: 0 -> 1",
            "3  counter add 2",
            "However: where that leads contradicts N01",
            "5 was reached, and must not be",
            "T02",
            "numbers only grow",
        )
    ]

    assert 0 == result.exit_code
    assert sorted(places) == places


def test_explain_of_progress_tells_stem_and_loop(invoke: Invoke, here: Path) -> None:
    """Without the loop it is no counterexample."""
    output = invoke("explain", save(story_named("toys/hogged"), here)).output

    assert "for ever after:" in output
    assert "what is owed is never paid" in output


def long_story(events: int) -> Story:
    """A story of a device that is at work for long."""
    story = story_named("toys/refuted")
    told = [
        Told(
            event=["device" if number % 9 else "engine", "run", number],
            actor="device" if number % 9 else "engine",
            text=f"{'device' if number % 9 else 'engine'} does number {number}",
            changes=[f"a{number}: was this -> is that", f"b{number}: was {'so ' * 40}-> is other"],
        )
        for number in range(events)
    ]
    return story.model_copy(update={"events": told})


@pytest.mark.parametrize("events", [12, 20, 45, 400])
def test_story_that_is_long_is_shortened_to_a_screen_unless_all_is_asked_for(events: int) -> None:
    """A story that scrolls away is not read."""
    found = [Finding(rule=f"N{number:02}", found="so it is") for number in range(2, 40)]
    story = long_story(events).model_copy(update={"also": found})
    short, whole = story_lines(story), story_lines(story, everything=True)

    assert len(short) <= SCREEN_LINES < len(whole)
    assert max(len(line.text) for line in short) <= 120
    assert "shortened" in "".join(line.text for line in short)
    assert all(any(f"does number {number}" in line.text for line in whole) for number in range(events))
    assert any(f"does number {events - 1}" in line.text for line in short)
    assert any("and 35 more" in line.text for line in short)
    assert any("However" in line.text for line in short)


def test_replay_of_a_file_by_command_ends_with_the_code_of_its_outcome(
    invoke: Invoke, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What CI runs over a folder of old counterexamples."""
    file = save(story_named("toys/refuted"), here)
    broken = invoke("explain", file, "--replay")
    mended_scope = scope_named("toys/proved")

    def always(_: str) -> Scope:
        return mended_scope

    monkeypatch.setattr(counterexamples, "scope_named", always)
    mended = invoke("explain", file, "--replay")

    assert (1, 0) == (broken.exit_code, mended.exit_code)
    assert "BROKEN N01: 5 was reached" in broken.output
    assert "MENDED" in mended.output


def test_replay_of_a_scope_that_is_gone_is_refused(invoke: Invoke, here: Path) -> None:
    """Nothing is mended by forgetting the scope."""
    story = story_named("toys/refuted").model_copy(update={"scope": "toys/gone"})
    result = invoke("explain", save(story, here), "--replay")

    assert 2 == result.exit_code
    assert "toys/gone" in result.output


def test_written_test_fails_while_the_rule_breaks_and_passes_once_it_holds(tmp_path: Path) -> None:
    """It is handed to people who have nothing but pytest."""
    text = regression_test(story_named("toys/refuted"))
    space: dict[str, object] = {}
    exec(text, space)  # noqa: S102 - the text was made a line ago
    (name,) = [name for name in space if name.startswith("test_")]
    run = space[name]

    assert "test_n01_toys_refuted_holds" == name
    assert callable(run)
    with pytest.raises(AssertionError, match="5 was reached"):
        run()


def test_written_test_of_a_mended_core_is_green_under_pytest(here: Path, invoke: Invoke) -> None:
    """D01 was planted; the core that ships does not have it."""
    file = here / "rows.json"
    file.write_text((Path(__file__).parent / "d01.json").read_text(encoding="utf-8"), encoding="utf-8")
    written = invoke("explain", file, "--write-test", "test_d01.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(here / "test_d01.py")]
    ended = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)

    assert 0 == written.exit_code
    assert 0 == ended.returncode, ended.stdout
    assert "1 passed" in ended.stdout


def test_hypothesis_line_pins_the_events_in_the_bytes_of_a_walk(invoke: Invoke, here: Path) -> None:
    """A walk that once found something finds it in every later run."""
    story = story_named("toys/refuted")
    result = invoke("explain", save(story, here), "--hypothesis")
    data = ast.literal_eval(result.output.strip().removeprefix("@example(").removesuffix(")"))

    assert 0 == result.exit_code
    assert [("counter", "add", 1), ("counter", "add", 2), ("counter", "add", 2)] == [
        tuple(told.event) for told in story.events
    ]
    assert [tuple(told.event) for told in story.events] == list(decode(scope_named(story.scope).make(), data))


def test_hypothesis_line_of_events_that_cannot_happen_is_refused(invoke: Invoke, here: Path) -> None:
    """Better than a line that pins something else."""
    file = save(story_named("toys/refuted"), here)
    file.write_text(file.read_text(encoding="utf-8").replace('"add"', '"subtract"'), encoding="utf-8")
    result = invoke("explain", file, "--hypothesis")

    assert 2 == result.exit_code
    assert "cannot happen there" in result.output


def test_errors_of_files_are_of_the_family() -> None:
    """Whoever catches TenureError catches these."""
    assert issubclass(CounterexampleFileError, TenureError)
