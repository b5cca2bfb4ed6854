"""A search that was ended from outside goes on where it was saved, and says the same in the end."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenure.model_checks.explorer import (
    Checkpoint,
    CheckpointError,
    Limits,
    Options,
    Verdict,
    check_scope,
    explore,
)
from tenure.model_checks.explorer.toys import Counting, Ring, Slots
from tenure.model_checks.explorer.visited import VisitedKind
from tests.explorer.machines import plain_search, scope_of
from tests.paths import ROOT

SCRIPT = """
import sys
from pathlib import Path
from tenure.model_checks.explorer import Checkpoint, explore
from tests.explorer.machines import Fragile
folder, workers, visited, after, victim = sys.argv[1:]
model = Fragile(3, 2, 3, after=int(after), victim=victim, folder=Path(folder, "pids"))
explore(model, workers=int(workers), visited=visited, checkpoint=Checkpoint(Path(folder, "saved"), every_s=0.0))
"""


def killed(folder: Path, workers: int, visited: str, after: int) -> None:
    """Search in a process that is ended by SIGKILL after so many transitions, saving after every chunk."""
    (folder / "pids").mkdir()
    victim = "self" if workers == 1 else "parent"
    arguments = [sys.executable, "-c", SCRIPT, str(folder), str(workers), visited, str(after), victim]
    run = subprocess.run(arguments, cwd=ROOT, check=False)
    assert -signal.SIGKILL == run.returncode


def saved(folder: Path) -> dict[str, object]:
    """What was saved last."""
    latest = json.loads((folder / "latest.json").read_text())["saving"]
    found: dict[str, object] = json.loads((folder / latest / "search.json").read_text())
    return found


def is_alive(pid: int) -> bool:
    """Whether a process is there, and not only its name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        # The second if it went between the opening and the reading.
        return False


@pytest.mark.parametrize(("workers", "visited"), [(1, "exact"), (1, "compact"), (2, "exact")])
def test_killed_search_that_is_resumed_says_the_same(tmp_path: Path, workers: int, visited: VisitedKind) -> None:
    """Machines go away in the night; the numbers must not."""
    # Two processes share the transitions.
    killed(tmp_path, workers, visited, 20_000 // workers)
    folder = tmp_path / "saved"
    before = saved(folder)
    starts = before["starts"]
    assert isinstance(starts, list)
    # In the middle of a level, or the test shows less than it says.
    assert before["at"] not in starts
    expected = plain_search()
    found = explore(Slots(3, 2, 3), workers=workers, visited=visited, checkpoint=Checkpoint(folder), resume=True)

    assert expected.counts() == found.counts()
    assert found.resumed
    assert not (folder / "latest.json").exists()
    # Nothing was taken twice: what the first run counted is in the sum.
    tally = before["tally"]
    assert isinstance(tally, dict)
    assert 0 < tally["transitions"] < expected.transitions


def test_processes_of_a_search_that_was_killed_end_too(tmp_path: Path) -> None:
    """Nobody would ever stop them."""
    killed(tmp_path, 2, "exact", 1000)
    pids = [int(file.name) for file in (tmp_path / "pids").iterdir()]
    deadline = time.monotonic() + 120
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)

    assert 2 == len(pids)
    assert os.getpid() not in pids
    assert [False, False] == [is_alive(pid) for pid in pids]


@pytest.mark.parametrize("workers", [1, 2])
def test_search_cut_by_its_budget_goes_on_with_a_larger_one(tmp_path: Path, workers: int) -> None:
    """The first verdict is UNDETERMINED, the second the true one; other processes may do the rest."""
    scope = scope_of(lambda: Slots(3, 2, 2), "toys/slots")
    small = Options(limits=Limits(states=1000), checkpoints=tmp_path)
    first = check_scope(scope, small, workers=workers)
    second = check_scope(scope, Options(checkpoints=tmp_path, resume=True), workers=3 - workers)

    assert (Verdict.UNDETERMINED, Verdict.PROVED) == (first.verdict, second.verdict)
    assert first.search is not None
    assert second.search is not None
    assert second.search.resumed
    assert explore(Slots(3, 2, 2)).counts() == second.search.counts()


def test_counterexample_of_a_resumed_search_is_the_same(tmp_path: Path) -> None:
    """It is shortest by the order of the whole search, not of its last part."""
    expected = explore(Counting(2000, 1501))
    cut = explore(Counting(2000, 1501), limits=Limits(states=700), checkpoint=Checkpoint(tmp_path))
    found = explore(Counting(2000, 1501), checkpoint=Checkpoint(tmp_path), resume=True)

    assert not cut.finished
    assert not cut.broken
    assert found.resumed
    assert expected.broken
    assert expected.counts() == found.counts()


def test_resuming_with_nothing_saved_begins_at_the_beginning(tmp_path: Path) -> None:
    """A run that was killed before it saved anything is no error."""
    found = explore(Counting(10), checkpoint=Checkpoint(tmp_path / "none"), resume=True)

    assert not found.resumed
    assert 11 == found.distinct


@pytest.mark.parametrize(
    ("limit", "covers", "visited", "what"),
    [(2000, 2, "exact", "covers"), (2000, 1, "compact", "visited"), (2001, 1, "exact", "")],
)
def test_checkpoint_of_another_search_is_refused(
    tmp_path: Path, limit: int, covers: int, visited: VisitedKind, what: str
) -> None:
    """Two halves of different searches prove nothing together."""
    explore(Counting(2000), limits=Limits(states=100), checkpoint=Checkpoint(tmp_path, {"covers": 1}))
    again = Checkpoint(tmp_path, {"covers": covers})
    if what:
        with pytest.raises(CheckpointError, match=what):
            explore(Counting(limit), visited=visited, checkpoint=again, resume=True)
    else:
        # Only what the caller tells apart is told apart: the initial states and the code are the same.
        assert explore(Counting(limit), visited=visited, checkpoint=again, resume=True).resumed


def test_checkpoint_of_other_initial_states_is_refused(tmp_path: Path) -> None:
    """The model itself is part of what is compared, as far as it shows."""
    explore(Slots(3, 2, 2), limits=Limits(states=100), checkpoint=Checkpoint(tmp_path))
    with pytest.raises(CheckpointError, match="initial"):
        explore(Slots(3, 2, 3), checkpoint=Checkpoint(tmp_path), resume=True)


@pytest.mark.parametrize("file", ["parents.npy", "keys.npy", "search.json"])
def test_checkpoint_that_is_damaged_is_refused(tmp_path: Path, file: str) -> None:
    """With a sentence, not with a guess."""
    explore(Slots(3, 2, 2), limits=Limits(states=500), checkpoint=Checkpoint(tmp_path))
    latest = json.loads((tmp_path / "latest.json").read_text())["saving"]
    (tmp_path / latest / file).write_bytes(b"nothing of use")
    with pytest.raises(CheckpointError, match="expected whole"):
        explore(Slots(3, 2, 2), checkpoint=Checkpoint(tmp_path), resume=True)


@pytest.mark.parametrize("visited", ["exact", "compact"])
@pytest.mark.parametrize("theirs", [300, 900])
def test_two_searches_that_save_in_one_folder_prove_nothing_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visited: VisitedKind, theirs: int
) -> None:
    """Arrays of one and counts of the other look whole: states would count as met that nobody looked at."""
    write = np.save

    def interrupted(file: Path, values: Any, *, allow_pickle: bool) -> None:
        write(file, values, allow_pickle=allow_pickle)
        if file.name == "indices.npy":
            # Meanwhile another process saves there.
            monkeypatch.setattr(np, "save", write)
            search(theirs)

    def search(states: int) -> None:
        limits = Limits(states=states)
        explore(Slots(3, 2, 2), limits=limits, visited=visited, checkpoint=Checkpoint(tmp_path, every_s=1e9))

    monkeypatch.setattr(np, "save", interrupted)
    search(600)
    with pytest.raises(CheckpointError, match="of two searches"):
        explore(Slots(3, 2, 2), visited=visited, checkpoint=Checkpoint(tmp_path), resume=True)


def test_disk_that_is_full_says_nothing_against_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known then; what was saved before is still whole, and goes on once there is room."""
    small = Options(limits=Limits(states=1000), checkpoints=tmp_path)
    scope = scope_of(lambda: Slots(3, 2, 2), "toys/slots")
    check_scope(scope, small)

    def full(file: Path, values: object, *, allow_pickle: bool) -> None:
        del values, allow_pickle
        file.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(np, "save", full)
        found = check_scope(scope, Options(limits=Limits(states=2000), checkpoints=tmp_path, resume=True))
    assert Verdict.UNDETERMINED is found.verdict
    assert "No space left" in found.reasons[0]
    again = check_scope(scope, Options(checkpoints=tmp_path, resume=True))
    assert again.search is not None
    assert again.search.resumed
    assert explore(Slots(3, 2, 2)).counts() == again.search.counts()


def test_nothing_on_disk_is_pickled(tmp_path: Path) -> None:
    """A checkpoint from elsewhere must not be able to run anything."""
    explore(Slots(3, 2, 2), limits=Limits(states=500), checkpoint=Checkpoint(tmp_path))
    arrays = list(tmp_path.rglob("*.npy"))

    assert {"parents.npy", "indices.npy", "keys.npy", "lengths.npy"} == {file.name for file in arrays}
    for file in arrays:
        assert np.load(file, allow_pickle=False).dtype.kind == "u"
    assert {".npy", ".json"} == {file.suffix for file in tmp_path.rglob("*") if file.is_file()}


def test_scope_with_progress_is_never_resumed(tmp_path: Path) -> None:
    """The graph is made anew: what was cut from it would look like an actor that cannot act."""
    result = check_scope(scope_of(lambda: Ring(3), progress=True), Options(checkpoints=tmp_path, resume=True))

    assert Verdict.PROVED is result.verdict
    assert "from the beginning" in result.notes[0]
    assert not list(tmp_path.iterdir())
