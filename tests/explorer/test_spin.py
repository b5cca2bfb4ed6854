"""The same machine in Spin: an explorer that nobody of us wrote."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tenure.model_checks.explorer import explore
from tenure.model_checks.explorer.promela import slots_promela
from tenure.model_checks.explorer.toys import Slots

MISSING = [tool for tool in ("spin", "cc") if shutil.which(tool) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (Debian packages spin, gcc)")
@pytest.mark.parametrize(("requests", "slots", "pages"), [(2, 2, 1), (3, 2, 2), (2, 1, 3)])
def test_spin_finds_as_many_states_transitions_and_levels(
    tmp_path: Path, requests: int, slots: int, pages: int
) -> None:
    """Three programs that agree, with the closed form, are not all wrong in the same way."""
    model = Slots(requests, slots, pages)
    (tmp_path / "slots.pml").write_text(slots_promela(model))
    for command in (
        ["spin", "-a", "slots.pml"],
        ["cc", "-O1", "-w", "-DBFS", "-DNOREDUCE", "-DSAFETY", "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    said = subprocess.run(
        [str(tmp_path / "pan"), "-n"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    search = explore(model)
    stored, transitions, depth = (
        int(re.findall(pattern, said)[0])
        for pattern in (r"(\d+) states, stored", r"(\d+) transitions", r"depth reached (\d+)")
    )

    assert model.distinct() == search.distinct == stored
    # Spin counts its way into the initial state.
    assert search.transitions == transitions - 1
    assert search.depth == depth
