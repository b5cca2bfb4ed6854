"""Each wrong reading, planted into a copy of the core by an edit of a few lines, is refuted by its history."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.paths import ROOT


class Planted(NamedTuple):
    """An edit of one file, and the test that must fail then."""

    file: str
    right: str
    wrong: str
    refuted_by: str


PLANTED: Final = {
    "W1": Planted(
        "rows/settling.py",
        "np.array_equal(read.claims, claims)",
        "True",
        "test_r02_w1_hit_is_planned_anew_at_the_save",
    ),
    "W2": Planted(
        "rows/claims.py",
        "    requests = [saved.batch[place] for place in having.tolist()]\n",
        "    requests = [saved.batch[place] for place in having.tolist()]\n"
        "    old = tables.chunks[0:]\n"
        "    for place, request in enumerate(requests):\n"
        "        if request in tables.open_write:\n"
        "            mine = old[CHUNK_WRITE] == tables.open_write[request]\n"
        "            claims[place] = old[CHUNK_CLAIM][mine][0]\n"
        "    for each in saved.deferred:\n"
        "        tables.newest[each.name][saved.slots] = np.repeat(claims, stops - starts)\n",
        "test_r16_w2_each_chunk_has_a_claim_of_its_own",
    ),
    "W3": Planted(
        "rows/claims.py",
        "claims = np.arange(first, first + len(having), dtype=np.int64)",
        "claims = np.full(len(having), first, dtype=np.int64)",
        "test_r03_w3_one_request_s_write_does_not_commit_another_s_rows",
    ),
    "W4": Planted(
        "rows/claims.py",
        "    # R21: what the step does not emit becomes ABSENT",
        "    looks = {name: tables.effective(name, np.arange(tables.num_slots)) for name in tables.newest}\n"
        "    for number, read in list(tables.reads.items()):\n"
        "        absent = looks[read.format.name][read.slots] != read.claims\n"
        "        edit.put(tables.reads, number, read._replace(claims=np.where(absent, -1, read.claims)))\n"
        "    # R21: what the step does not emit becomes ABSENT",
        "test_r13_w4_rows_that_look_absent_are_preserved_all_the_same",
    ),
    "W5": Planted(
        "rows/reads.py",
        "claims = tables.effective(name, hit.slots)",
        "claims = tables.newest[name][hit.slots]",
        "test_r21_w5_save_compares_effective_claims",
    ),
    "W6": Planted(
        "rows/reads.py",
        "write._replace(readers=(*write.readers, number))",
        "write",
        "test_r13_w6_read_holds_the_buffers_of_the_write_it_reads",
    ),
    "W7": Planted(
        "rows/consuming.py",
        "    saved = step.saved\n    assert saved is not None\n",
        "    saved = step.saved\n    assert saved is not None\n    step_lets_go(edit, step.page)\n",
        "test_r06_w7_page_is_free_when_its_rows_were_copied_out",
    ),
    "W8": Planted(
        "rows/reads.py",
        "    if READ_DROPS[read.phase] is ReadPhase.LEFT:\n"
        "        edit.put(tables.reads, number, read._replace(phase=ReadPhase.LEFT))\n"
        "        return\n",
        "    edit.remove(tables.running, number)\n",
        "test_r23_w8_running_read_that_nobody_wants_keeps_its_edge",
    ),
    "W9": Planted(
        "rows/starts.py",
        "    if tables.pending:\n",
        "    if tables.pending and tables.steps[tables.pending].phase is StepPhase.RESERVED:\n",
        "test_r22_w9_step_that_was_never_saved_is_given_up_first",
    ),
    "W10": Planted(
        "rows/resets.py",
        "write._replace(fenced=True))\n        return\n",
        "write._replace(fenced=True, page=-1))\n        edit.hold_page(write.page, (0, 0))\n        return\n",
        "test_r24_w10_reset_leaves_pages_with_the_copies_that_use_them",
    ),
    "W11": Planted(
        "rows/resets.py",
        "(tables.live or tables.steps)",
        "tables.live",
        "test_r24_w11_reset_is_refused_while_a_step_is_unconsumed",
    ),
    "W12": Planted(
        "rows/writes.py",
        "ScatterRows(edit.number(), Lane.POOL,",
        "ScatterRows(edit.number(), Lane.GATHER,",
        "test_r05_w12_scatters_of_a_name_run_in_the_order_of_issue",
    ),
    "W13": Planted(
        "rows/reads.py",
        "def _schedule(edit: Edit, number: ReadId) -> None:\n",
        "def _schedule(edit: Edit, number: ReadId) -> None:\n    return\n",
        "test_r11_w13_reads_start_without_their_consumer",
    ),
    "W14": Planted(
        "config.py",
        "if self.builder_lag_max >= self.pages:",
        "if self.builder_lag_max > self.pages:",
        "test_r07_w14_depth_exceeds_the_lag_of_the_builder",
    ),
    "W15": Planted(
        "rows/settling.py",
        "        if verdict is not None:\n",
        "        if verdict is not None:\n            raise ValueError(verdict)\n",
        "test_r14_w15_unreadable_hit_does_not_cost_the_step",
    ),
}
RUN: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); import pytest; sys.exit(pytest.main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the tests need."""
    copy = tmp_path_factory.mktemp("planted") / "tree"
    copy.mkdir()
    for folder in ("core", "spec", "backends", "model_checks", "tenure", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def outcome(tree: Path, test: str) -> str:
    """What a test of the copy says."""
    call = [sys.executable, "-B", "-c", RUN, str(tree), "-q", "-p", "no:cacheprovider", "-k", test]
    # The copy's coverage is nobody's business.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    run = subprocess.run(
        [*call, "tests/rows/test_wrong_readings.py"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return run.stdout


def test_copy_without_a_planted_reading_passes(tree: Path) -> None:
    """Or the others would show nothing."""
    assert "18 passed" in outcome(tree, "test_r")


@pytest.mark.parametrize("reading", PLANTED)
def test_planted_reading_is_refuted(tree: Path, reading: str) -> None:
    """By the history that it was found with."""
    planted = PLANTED[reading]
    file = tree / "core" / planted.file
    text = file.read_text()
    assert text.count(planted.right) == 1, "the core has changed: plant the reading anew"
    file.write_text(text.replace(planted.right, planted.wrong))
    try:
        found = outcome(tree, planted.refuted_by)
    finally:
        file.write_text(text)

    assert f"FAILED tests/rows/test_wrong_readings.py::{planted.refuted_by}" in found, found
