"""Checkpoints on disk: plain arrays and JSON, whole or not there at all.

A saving is a folder of its own; `latest.json` names it, and is replaced in one move when the folder is complete. No
state is saved: those of the frontier are made again by taking the events that led to them.
"""

import json
import shutil
from array import array
from collections.abc import Mapping
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tenure.core
import tenure.model_checks
import tenure.spec
from tenure.model_checks.explorer.errors import CheckpointError
from tenure.model_checks.explorer.limits import Checkpoint
from tenure.model_checks.explorer.trail import Trail
from tenure.model_checks.explorer.visited import Compact, Exact

FORM = 1
LATEST = "latest.json"


def code_digest() -> str:
    """What the code of the machines and of their models is, in short."""
    said = blake2b(digest_size=8)
    for package in (tenure.core, tenure.spec, tenure.model_checks):
        root = Path(str(package.__file__)).resolve().parent
        for file in sorted(root.rglob("*.py")):
            said.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return said.hexdigest()


def fingerprint(checkpoint: Checkpoint, visited: str, initial: list[bytes]) -> dict[str, object]:
    """What a saved search and a resumed one must have in common."""
    said = blake2b(digest_size=8)
    for key in initial:
        said.update(len(key).to_bytes(8, "little") + key)
    plain = json.loads(json.dumps(dict(checkpoint.fingerprint), sort_keys=True))
    return {
        "form": FORM,
        "package": version("tenure"),
        "code": code_digest(),
        "visited": visited,
        "initial": said.hexdigest(),
        **plain,
    }


def save(folder: Path, said: Mapping[str, Any], trail: Trail, visited: Exact | Compact) -> None:
    """Save a search.

    Args:
        folder: where.
        said: what is not an array, as JSON has it.
        trail: where every state was first met.
        visited: the states that were met.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = _latest(folder)
    number = 1 + (int(before) if before else 0)
    place = folder / str(number)
    # Left over from a run that was ended while it saved.
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    _save_array(place / "parents.npy", np.array(trail.parents, dtype=np.uint32))
    _save_array(place / "indices.npy", np.array(trail.indices, dtype=np.uint16))
    if isinstance(visited, Exact):
        keys = list(visited.keys)
        _save_array(place / "keys.npy", np.frombuffer(b"".join(keys), dtype=np.uint8))
        _save_array(place / "lengths.npy", np.fromiter(map(len, keys), np.uint32, len(keys)))
    else:
        _save_array(place / "digests.npy", visited.digests())
    (place / "search.json").write_text(json.dumps({**said, "starts": trail.starts}), encoding="utf-8")
    fresh = folder / f"{LATEST}.new"
    fresh.write_text(json.dumps({"saving": str(number)}), encoding="utf-8")
    fresh.replace(folder / LATEST)
    if before:
        shutil.rmtree(folder / before, ignore_errors=True)


def load(folder: Path, expected: Mapping[str, object]) -> tuple[dict[str, Any], Trail, Exact | Compact] | None:
    """What was saved last; None if nothing was.

    Raises:
        CheckpointError: it belongs to another search, or cannot be read.
    """
    latest = _latest(folder)
    if latest is None:
        return None
    place = folder / latest
    try:
        said: dict[str, Any] = json.loads((place / "search.json").read_text(encoding="utf-8"))
        found: Mapping[str, object] = said["fingerprint"]
        for what in sorted({*expected, *found}):
            if found.get(what) != expected.get(what):
                raise CheckpointError(str(folder), what, repr(expected.get(what)), repr(found.get(what)))
        trail = Trail()
        trail.parents = array("I", _load_array(place / "parents.npy").tolist())
        trail.indices = array("H", _load_array(place / "indices.npy").tolist())
        trail.starts = list(said["starts"])
        return said, trail, _load_visited(place, str(expected["visited"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise CheckpointError(str(folder), "saving " + latest, "whole", f"{type(error).__name__}: {error}") from error


def clear(folder: Path) -> None:
    """Remove what was saved; other files stay."""
    latest = _latest(folder)
    if latest is not None:
        (folder / LATEST).unlink()
        shutil.rmtree(folder / latest, ignore_errors=True)


def _latest(folder: Path) -> str | None:
    try:
        name = json.loads((folder / LATEST).read_text(encoding="utf-8"))["saving"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(str(folder), LATEST, "JSON that names a saving", str(error)) from error
    if not isinstance(name, str) or not name.isdecimal():
        raise CheckpointError(str(folder), LATEST, "a number", repr(name))
    return name


def _save_array(file: Path, values: NDArray[Any]) -> None:
    np.save(file, values, allow_pickle=False)


def _load_array(file: Path) -> NDArray[Any]:
    values: NDArray[Any] = np.load(file, allow_pickle=False)
    return values


def _load_visited(place: Path, kind: str) -> Exact | Compact:
    if kind == "compact":
        compact = Compact()
        compact.restore(_load_array(place / "digests.npy"))
        return compact
    exact = Exact()
    whole = _load_array(place / "keys.npy").tobytes()
    at = 0
    for length in _load_array(place / "lengths.npy").tolist():
        exact.keys.add(whole[at : at + length])
        at += length
    return exact
