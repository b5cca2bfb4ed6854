"""Where tests find data from outside the project, and what they do when it is absent."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
OWN_GOLDEN = ROOT / "tests" / "golden" / "data"


def golden_folder() -> Path:
    """The folder of golden files: `TENURE_GOLDEN`, else the shared one, else the project's own small set."""
    named = os.environ.get("TENURE_GOLDEN")
    if named:
        return Path(named)
    shared = SHARED / "golden"
    return shared if shared.is_dir() else OWN_GOLDEN
