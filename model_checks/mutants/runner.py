"""Planted faults, each hunted in a process of its own: killed only by the rule that was named beforehand.

That process is a fork of one that has the core, in which the faulty functions get their code, where that kills; all else
is decided by one that imports the faulty core.

A check that finds nothing wrong is worth what it would have found. A fault that survives, one that is found by another
rule than the named one, and one that could not be planted are all failures.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Lock
from typing import Any, ClassVar, Final
from xml.etree import ElementTree as ET

from tenure.core.errors.base import ContractError
from tenure.core.errors.base import Scope as Damage
from tenure.model_checks.mutants.mutant import Mutant, command_with
from tenure.model_checks.mutants.nursery import Nursery
from tenure.model_checks.scopes import UnknownScopeError, scope_named
from tenure.model_checks.stories import Story

FAMILIES: Final[dict[str, tuple[str, str]]] = {
    "blocks": ("tenure.model_checks.mutants.blocks", "BLOCK_MUTANTS"),
    "rows": ("tenure.model_checks.mutants.rows", "ROW_MUTANTS"),
    "joined": ("tenure.model_checks.mutants.joined", "JOINED_MUTANTS"),
}
"""Where the planted faults of each machine stand."""
TRIAL: Final = "tenure.model_checks.mutants.trial"
BUDGET_S: Final = 60.0
GRACE_S: Final = 30.0
"""Seconds beyond its budget after which a process is ended."""


class Fate(Enum):
    """What became of a planted fault; only the first is as it should be."""

    KILLED = "KILLED"
    OTHER_RULE = "OTHER RULE"
    SURVIVED = "SURVIVED"
    UNDETERMINED = "UNDETERMINED"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Hunt:
    """What became of one fault.

    Attributes:
        fate: killed or not.
        why: why it is not killed; empty if it is.
        rules: the rules that were broken.
        depth: how many events broke the named rule, or, where that held, the first one that broke; 0 for none.
        states: distinct states until then.
        seconds: of the search.
        stories: its counterexamples.
    """

    mutant: Mutant
    fate: Fate
    why: str = ""
    rules: tuple[str, ...] = ()
    depth: int = 0
    states: int = 0
    seconds: float = 0.0
    stories: tuple[Story, ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the stories."""
        return {
            "mutant": self.mutant.id,
            "module": self.mutant.module,
            "what": self.mutant.what,
            "source": self.mutant.source,
            "scope": self.mutant.scope,
            "rule": self.mutant.rule,
            "fate": self.fate.value,
            "why": self.why,
            "rules": list(self.rules),
            "depth": self.depth,
            "states": self.states,
            "seconds": round(self.seconds, 3),
        }


@dataclass(eq=False)
class UnknownMutantError(ContractError):
    """There is no planted fault of this name."""

    scope: ClassVar[Damage] = Damage.REQUEST
    name: str

    def sentence(self) -> str:
        """The message."""
        return f"{self.name!r} is no planted fault; `tenure mutants --list` shows all"


def all_mutants() -> list[Mutant]:
    """Every planted fault; for a machine whose faults cannot be read, one that says so and cannot be killed."""
    found: list[Mutant] = []
    for family, (module, name) in FAMILIES.items():
        try:
            found += getattr(import_module(module), name)
        except Exception as error:
            trouble = f"the planted faults of {family} cannot be read: {type(error).__name__}: {error}"
            found.append(Mutant(f"{family}/import", module, "", "", f"{family}/", "", trouble))
    return found


def mutants_named(names: Sequence[str] = ()) -> list[Mutant]:
    """The planted faults of these names; all of them without any.

    Raises:
        UnknownMutantError: there is none of that name.
    """
    everything = {mutant.id: mutant for mutant in all_mutants()}
    for name in names:
        if name not in everything:
            raise UnknownMutantError(name)
    return [everything[name] for name in names] if names else list(everything.values())


class _Processes:
    """Those that are at work, so that none is left behind."""

    def __init__(self) -> None:
        self.nursery = Nursery()
        self._lock = Lock()
        self._running: set[Popen[str]] = set()
        self._is_over = False

    def say(self, command: list[str], timeout_s: float) -> tuple[int, str, str]:
        """Run a command: exit code, output, errors."""
        with self._lock:
            if self._is_over:
                return -1, "", "interrupted"
            # The command is this very interpreter and a file of this package.
            process = Popen(command, stdout=PIPE, stderr=PIPE, text=True)  # noqa: S603
            self._running.add(process)
        try:
            out, err = process.communicate(timeout=timeout_s)
        except TimeoutExpired:
            process.kill()
            process.communicate()
            return -1, "", f"it took more than {timeout_s:.0f} s and was ended"
        finally:
            with self._lock:
                self._running.discard(process)
        return process.returncode, out, err

    def end(self) -> None:
        """End them all, and let none begin."""
        self.nursery.end()
        with self._lock:
            self._is_over = True
            for process in self._running:
                process.kill()


def hunt_all(
    mutants: Sequence[Mutant],
    workers: int = 1,
    *,
    budget_s: float = BUDGET_S,
    is_forked: bool = True,
    done: Callable[[Hunt], None] | None = None,
) -> list[Hunt]:
    """Hunt all faults, those in heavy scopes first; the results in the order asked for.

    Args:
        mutants: the faults.
        workers: processes at a time.
        budget_s: seconds for each.
        is_forked: a kill in a fork, with the fault planted in place, counts; else every core is imported with its fault.
        done: is told of every result as it comes.
    """
    processes = _Processes()
    order = sorted(range(len(mutants)), key=lambda place: -_weight(mutants[place]))
    found: dict[int, Hunt] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = {
                pool.submit(_hunt, processes, mutants[place], budget_s, is_forked=is_forked): place for place in order
            }
            for future in as_completed(futures):
                found[futures[future]] = hunted = future.result()
                if done is not None:
                    done(hunted)
        except BaseException:
            processes.end()
            pool.shutdown(cancel_futures=True)
            raise
    return [found[place] for place in range(len(mutants))]


def _weight(mutant: Mutant) -> int:
    try:
        return scope_named(mutant.scope).heavy
    except UnknownScopeError:
        return 0


def _hunt(processes: _Processes, mutant: Mutant, budget_s: float, *, is_forked: bool) -> Hunt:
    if not mutant.old:
        return Hunt(mutant, Fate.ERROR, mutant.what)
    if is_forked:
        said = processes.nursery.say(mutant, budget_s, budget_s + GRACE_S)
        if said is not None and (hunt := judged(mutant, said)).fate is Fate.KILLED:
            return hunt
    command = command_with(mutant, TRIAL, mutant.scope, str(budget_s), mutant.id)
    code, out, err = processes.say(command, budget_s + GRACE_S)
    if code:
        lines = err.strip().splitlines()
        return Hunt(mutant, Fate.ERROR, lines[-1] if lines else f"its process ended with exit code {code}")
    return judged(mutant, json.loads(out))


def judged(mutant: Mutant, said: dict[str, Any]) -> Hunt:
    """What a trial says of a fault."""
    verdict, rules, depths = said["verdict"], tuple(said["rules"]), said["depths"]
    reason = "; ".join(said["reasons"])
    fate, why = Fate.KILLED, ""
    if verdict == "PROVED":
        fate, why = Fate.SURVIVED, f"{mutant.scope} is PROVED with it"
    elif verdict == "UNDETERMINED":
        fate, why = Fate.UNDETERMINED, reason
    elif verdict != "REFUTED":
        fate, why = Fate.ERROR, f"{verdict}: {reason}"
    elif mutant.rule not in rules:
        fate, why = Fate.OTHER_RULE, f"killed by {', '.join(rules)} instead of {mutant.rule}"
    depth = depths.get(mutant.rule) or min(depths.values(), default=0)
    stories = tuple(Story.model_validate_json(json.dumps(each)) for each in said["stories"])
    return Hunt(mutant, fate, why, rules, depth, said["states"], said["seconds"], stories)


def junit_of(hunts: Iterable[Hunt]) -> str:
    """The results as JUnit XML.

    What survives, or falls to another rule, is a failure; the rest that is not killed is an error.
    """
    found = list(hunts)
    failures = (Fate.SURVIVED, Fate.OTHER_RULE)
    root = ET.Element(
        "testsuite",
        name="tenure mutants",
        tests=str(len(found)),
        failures=str(sum(each.fate in failures for each in found)),
        errors=str(sum(each.fate in (Fate.UNDETERMINED, Fate.ERROR) for each in found)),
        skipped="0",
        time=f"{sum(each.seconds for each in found):.3f}",
    )
    for each in found:
        case = ET.SubElement(
            root, "testcase", classname=each.mutant.scope, name=each.mutant.id, time=f"{each.seconds:.3f}"
        )
        if each.fate is not Fate.KILLED:
            kind = "failure" if each.fate in failures else "error"
            trouble = ET.SubElement(case, kind, type=each.fate.value, message=each.why)
            trouble.text = f"{each.mutant.what}\n{each.why}"
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
