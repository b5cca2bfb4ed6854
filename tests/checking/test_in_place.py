"""Faults that are planted into a core that is imported: they do what they do in a core that is imported with them."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tenure.model_checks.mutants.in_place import NotInPlaceError, plant_in_place
from tenure.model_checks.mutants.mutant import Mutant, PlantingError
from tenure.model_checks.mutants.nursery import Nursery
from tenure.model_checks.mutants.runner import Fate, Hunt, hunt_all, mutants_named

SOURCE = """
from dataclasses import dataclass
from functools import cache, wraps

LIMIT = 3


def table():
    return [LIMIT * each for each in range(LIMIT)]


TABLE = table()


def twice(function):
    @wraps(function)
    def called(value):
        return function(function(value))

    return called


@twice
def wrapped(value):
    return value + 1


def plain(value, more=1):
    def inner(other):
        return other * 5

    return inner(value) + more


@dataclass(frozen=True, slots=True)
class Thing:
    size: int
    unit = 10

    @property
    def bytes(self):
        return self.size * 8

    @staticmethod
    def least():
        return [each for each in (7, 8) if each > 7]


ALIAS = plain
ADDED = lambda value: value + 2
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module with functions of all kinds."""
    (tmp_path / "thing_to_change.py").write_text(SOURCE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield importlib.import_module("thing_to_change")
    del sys.modules["thing_to_change"]


def test_function_is_changed_wherever_it_is_kept(module: ModuleType) -> None:
    """A name that another module imported, a wrapper, a property, a class that a decorator made anew."""
    thing = module.Thing(2)
    for old, new in (
        ("value + 1\n", "value + 100\n"),
        ("other * 5", "other * 6"),
        ("self.size * 8", "self.size * 9"),
        ("if each > 7", "if each > 6"),
    ):
        assert 1 == plant_in_place(module.__name__, old, new)

    assert 200 == module.wrapped(0)
    assert 13 == module.ALIAS(2)
    assert 18 == thing.bytes
    assert [7, 8] == thing.least()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("more=1", "more=2"),
        ("unit = 10", "unit = 11"),
        ("value + 2", "value + 3"),
        ("ALIAS = plain", "ALIAS = wrapped"),
        ("class Thing:", "class Thing(object):"),
        ("    size: int", "    size: int = 0"),
        ("@twice\n", ""),
        ("    @property\n", ""),
    ],
)
def test_what_runs_while_a_module_is_imported_is_not_changed_in_place(module: ModuleType, old: str, new: str) -> None:
    """It has run; whoever forgets that would call a fault harmless that was never planted."""
    with pytest.raises(NotInPlaceError):
        plant_in_place(module.__name__, old, new)

    assert (2, 11, 3) == (module.wrapped(0), module.plain(2), module.ADDED(1))


def test_text_that_does_not_stand_there_once_is_refused(module: ModuleType) -> None:
    """As it is when the module is imported with the fault."""
    for old in ("no such text", "value"):
        with pytest.raises(PlantingError, match=f"times is '{old}'"):
            plant_in_place(module.__name__, old, "")


def test_change_of_nothing_changes_no_function(module: ModuleType) -> None:
    """Lines that move are no difference."""
    assert 0 == plant_in_place(module.__name__, "LIMIT = 3", "\n\nLIMIT = 3")


def test_fault_that_acts_while_its_module_is_imported_is_decided_by_a_fresh_process() -> None:
    """In a fork it would look harmless, or could not be planted; neither may be taken for an answer."""
    (planted,) = mutants_named(["w01-planned-once"])
    before_all = Mutant(
        "before-all",
        planted.module,
        planted.old,
        planted.new,
        planted.scope,
        planted.rule,
        planted.what,
    )
    source = Path(sys.modules[planted.module].__file__ or "").read_text()
    head = source[: source.index("\n\n\n")]
    assert 1 == source.count(head)
    in_fresh = replace(before_all, old=head, new=head + "\n\nPLANTED = True")

    assert Nursery().say(in_fresh, 60.0, 90.0) is None
    (hunt,) = hunt_all([in_fresh])
    assert (Fate.SURVIVED, "is PROVED with it") == (hunt.fate, hunt.why[-len("is PROVED with it") :])


def agreed(hunt: Hunt) -> tuple[object, ...]:
    """What must not depend on how a fault was planted."""
    return hunt.mutant.id, hunt.fate, hunt.rules, hunt.depth, hunt.states


def assert_both_ways_agree(names: list[str]) -> None:
    """The same end by the same rules, after as many states, at the same depth."""
    mutants = mutants_named(names)
    nursery = Nursery()

    assert all(nursery.say(each, 60.0, 90.0) is not None for each in mutants)
    assert [agreed(each) for each in hunt_all(mutants, 2, is_forked=False)] == [
        agreed(each) for each in hunt_all(mutants, 2)
    ]


def test_both_ways_of_planting_say_the_same_of_a_fault_of_each_machine() -> None:
    """A fork stands for the process that it spares."""
    assert_both_ways_agree(["B-freed-twice", "w01-planned-once"])


@pytest.mark.slow
def test_both_ways_of_planting_say_the_same_of_every_fault() -> None:
    """All of them, which takes some minutes."""
    assert_both_ways_agree([])


def test_hunt_that_is_interrupted_says_nothing_and_leaves_nobody() -> None:
    """Ctrl-C reaches every process of the group."""
    code = (
        "import os, signal, threading\n"
        # Whoever runs the tests in the background ignores Ctrl-C, and so would this.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tenure.model_checks.mutants.runner import hunt_all, mutants_named\n"
        "threading.Timer(4, lambda: os.killpg(0, signal.SIGINT)).start()\n"
        "try:\n"
        "    hunt_all(mutants_named() * 9, 2)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300, start_new_session=True
    )

    assert ("", "interrupted\n") == (run.stderr, run.stdout)
