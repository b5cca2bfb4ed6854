"""The example of a machine of one's own."""

import runpy

import pytest

from tests.paths import ROOT


def test_example_finds_the_lost_update_by_the_shortest_way(capsys: pytest.CaptureFixture[str]) -> None:
    """It is what people copy to begin with."""
    search = runpy.run_path(str(ROOT / "examples" / "explore.py"))["main"]()
    told = capsys.readouterr().out.splitlines()

    assert (12, 14, 4) == (search.distinct, search.transitions, search.broken[0].depth)
    assert "'no update is lost' is broken: 1 after two updates" == told[1]
    assert ["worker 1 reads", "worker 2 reads"] == [line.strip() for line in told[2:4]]
