"""Checkpoints on disk: plain arrays and JSON, whole or not there at all.

A saving is a folder of its own; `latest.json` names it, and is replaced in one move when the folder is complete. Its
arrays are held against a digest when they are read: of two searches that saved in one folder, half of each proves
nothing. No state is saved: those of the frontier are made again by taking the events that led to them.
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

FORM = 2
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

    Raises:
        CheckpointError: it cannot be written; what was saved before stays.
    """
    place = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _latest(folder)
        place = folder / str(1 + (int(before) if before else 0))
        # Left over from a run that was ended while it saved.
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        arrays = _arrays(trail, visited)
        for name, values in arrays.items():
            _save_array(place / f"{name}.npy", values)
        written = {**said, "starts": trail.starts, "arrays": _digest(arrays)}
        (place / "search.json").write_text(json.dumps(written), encoding="utf-8")
        fresh = folder / f"{LATEST}.new"
        fresh.write_text(json.dumps({"saving": place.name}), encoding="utf-8")
        fresh.replace(folder / LATEST)
    except OSError as error:
        if place != folder:
            shutil.rmtree(place, ignore_errors=True)
        raise CheckpointError(str(folder), "what was to be saved", "written", f"lost: {error}") from error
    if before:
        shutil.rmtree(folder / before, ignore_errors=True)


def _arrays(trail: Trail, visited: Exact | Compact) -> dict[str, NDArray[Any]]:
    """What is saved as arrays, by the names of the files."""
    arrays: dict[str, NDArray[Any]] = {
        "parents": np.array(trail.parents, dtype=np.uint32),
        "indices": np.array(trail.indices, dtype=np.uint16),
    }
    if isinstance(visited, Compact):
        return arrays | {"digests": visited.digests()}
    keys = list(visited.keys)
    lengths = np.fromiter(map(len, keys), np.uint32, len(keys))
    return arrays | {"keys": np.frombuffer(b"".join(keys), dtype=np.uint8), "lengths": lengths}


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """What tells the arrays of one moment of one search from all others."""
    said = blake2b(digest_size=16)
    for name, values in arrays.items():
        said.update(f"{name} {len(values)} ".encode() + values.tobytes())
    return said.hexdigest()


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
        names = ("digests",) if expected["visited"] == "compact" else ("keys", "lengths")
        arrays = {name: _load_array(place / f"{name}.npy") for name in ("parents", "indices", *names)}
        if _digest(arrays) != said["arrays"]:
            raise CheckpointError(str(folder), "saving " + latest, "whole", "of two searches, or damaged")
        trail = Trail()
        trail.parents = array("I", arrays["parents"].tolist())
        trail.indices = array("H", arrays["indices"].tolist())
        trail.starts = list(said["starts"])
        return said, trail, _visited(arrays)
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


def _visited(arrays: Mapping[str, NDArray[Any]]) -> Exact | Compact:
    if "digests" in arrays:
        compact = Compact()
        compact.restore(arrays["digests"])
        return compact
    exact = Exact()
    whole = arrays["keys"].tobytes()
    at = 0
    for length in arrays["lengths"].tolist():
        exact.keys.add(whole[at : at + length])
        at += length
    return exact
