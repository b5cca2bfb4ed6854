"""The search itself: breadth first, level by level, the same whoever expands the states.

What is broken is looked at when a level is complete, so that the counterexample is the least by depth, then by the
order of the parent, then by the place of the event: shortest by construction, and the same in every run.
"""

import gc
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from tenure.model_checks.explorer import checkpoints
from tenure.model_checks.explorer.crew import Crew
from tenure.model_checks.explorer.edges import Edges
from tenure.model_checks.explorer.errors import ModelError, RefusedError
from tenure.model_checks.explorer.findings import Candidate, Findings
from tenure.model_checks.explorer.graph import Graph
from tenure.model_checks.explorer.hands import Hands, Here
from tenure.model_checks.explorer.limits import UNLIMITED, Checkpoint, Limits
from tenure.model_checks.explorer.part import CHUNK, Chunk, Crash, Numbered, Part, in_words, resident_bytes
from tenure.model_checks.explorer.results import Counterexample, Search, Snapshot
from tenure.model_checks.explorer.tally import Tally
from tenure.model_checks.explorer.trail import NO_PARENT, Trail
from tenure.model_checks.explorer.visited import Compact, Exact, NumberedKeys, VisitedKind, digest
from tenure.model_checks.model import Model

Progress: TypeAlias = Callable[[Snapshot], None]
TOLD_EVERY_S = 0.5


def explore(
    model: Model[Any],
    *,
    limits: Limits = UNLIMITED,
    workers: int = 1,
    visited: VisitedKind = "exact",
    keep_graph: bool = False,
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    name: str = "",
    deadlock_rule: str = "R11",
) -> Search:
    """Every state that a model can reach, or as many as the limits allow.

    Args:
        model: the transition system.
        limits: the budget.
        workers: processes that expand states; everything counted is the same with any number.
        visited: `exact`, or `compact`: 64 bits a state, with a chance of collision that is told.
        keep_graph: keep states and transitions, for progress and drawings.
        checkpoint: where to save the search; what was saved is removed when the search ends by itself.
        resume: begin with what was saved there, if anything was.
        progress: is told how far the search has come, about twice a second.
        name: what `progress` is told of which search it is.
        deadlock_rule: the rule that says that nothing stops where it is no place to rest.

    Raises:
        ModelError: the model raised, and nothing was broken before.
        WorkerDiedError: a process ended too early.
        CheckpointError: what was saved belongs to another search.
        RefusedError: the graph together with compact states or a checkpoint; fewer than one process.
    """
    if workers < 1:
        raise RefusedError(f"a search with {workers} processes", "at least one has to do the work")
    if keep_graph and visited == "compact":
        raise RefusedError("a graph of compact states", "a transition would lead to digests that two states may share")
    if keep_graph and (checkpoint is not None or resume):
        raise RefusedError("a checkpoint of the graph", "the graph is not saved; search anew")
    if resume and checkpoint is None:
        raise RefusedError("resuming", "no checkpoint is named")
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _Run(model, limits, workers, visited, keep_graph, checkpoint, progress, name, deadlock_rule).go(resume)
    finally:
        if was_enabled:
            gc.enable()


class _Run:
    """One search."""

    def __init__(
        self,
        model: Model[Any],
        limits: Limits,
        workers: int,
        kind: VisitedKind,
        keep_graph: bool,
        checkpoint: Checkpoint | None,
        progress: Progress | None,
        name: str,
        deadlock_rule: str,
    ) -> None:
        self.model = model
        self.limits = limits
        self.workers = workers
        self.kind = kind
        self.checkpoint = checkpoint
        self.progress = progress
        self.name = name
        self.edges = Edges() if keep_graph else None
        self.visited: Exact | NumberedKeys | Compact = (
            NumberedKeys() if keep_graph else Exact() if kind == "exact" else Compact()
        )
        self.trail = Trail()
        self.tally = Tally()
        self.findings = Findings(deadlock_rule)
        self.crashes: list[Crash] = []
        self.fingerprint: dict[str, object] = {}
        # The first state of the level that is not expanded yet.
        self.at = 0
        self.cut = ""
        self.resumed = False
        self.began = self.saved = self.told = time.monotonic()
        self.cpu_began = time.process_time()
        self.seconds_before = 0.0
        self.memory_began = self.memory = self.memory_peak = resident_bytes()

    def go(self, resume: bool) -> Search:
        """Search to the end."""
        frontier, ahead = self.begin(resume)
        with self.hands(frontier, ahead) as hands:
            del frontier, ahead
            if self.resumed:
                # What was saved may be the middle of a level that is broken already.
                self.level(hands)
            while not (self.findings or self.crashes or self.tally.unsound or self.cut) and self.at < len(self.trail):
                self.level(hands)
            if not self.findings and self.crashes:
                raise self.crashed(min(self.crashes))
            cpu_s = hands.cpu_seconds()
        if self.checkpoint is not None and not self.cut:
            checkpoints.clear(self.checkpoint.folder)
        return self.result(cpu_s + time.process_time() - self.cpu_began)

    def begin(self, resume: bool) -> tuple[list[Numbered], list[Numbered]]:
        """What is to be expanded, and what is known of the level after it."""
        encode = self.model.encode
        initial = list(self.model.initial())
        keys = [encode(state) for state in initial]
        if self.checkpoint is not None:
            self.fingerprint = checkpoints.fingerprint(self.checkpoint, self.kind, keys)
            loaded = checkpoints.load(self.checkpoint.folder, self.fingerprint) if resume else None
            if loaded is not None:
                said, self.trail, self.visited = loaded
                return self.restore(said)
        asked = [digest(key) for key in keys] if self.kind == "compact" else keys
        numbered: list[Numbered] = []
        for place, new in enumerate(self.visited.admit(asked)):
            if new:
                numbered.append((len(self.trail), initial[place]))
                self.trail.parents.append(NO_PARENT)
                self.trail.indices.append(place)
        self.trail.starts.append(len(self.trail))
        judged = self.part([], []).judge(numbered)
        self.tally.add_judgement(judged, 0)
        self.crashes += judged.crashes
        self.findings.add_states(self.trail, judged.broken, 0)
        if self.edges is not None:
            self.edges.add_debts([judged])
        return numbered, []

    def restore(self, said: dict[str, Any]) -> tuple[list[Numbered], list[Numbered]]:
        """Go on where a checkpoint was made."""
        self.resumed = True
        self.tally = Tally.from_json(said["tally"])
        self.findings.restore(said["findings"])
        self.crashes = [tuple(crash) for crash in said["crashes"]]
        self.at = said["at"]
        self.seconds_before = said["seconds"]
        ids = range(self.at, len(self.trail))
        states = self.trail.rebuild(self.model, ids)
        numbered = list(zip(ids, states, strict=True))
        level = self.trail.starts[-1] - self.at
        return numbered[:level], numbered[level:]

    def part(self, frontier: list[Numbered], ahead: list[Numbered]) -> Part:
        """States to work on."""
        # Alone, and with whole keys, what was visited says at once what is new.
        alone = self.workers == 1 and isinstance(self.visited, Exact)
        known = self.visited.keys if alone and isinstance(self.visited, Exact) else set[bytes]()
        return Part(
            self.model,
            frontier,
            ahead,
            known=known,
            graph=self.edges is not None,
            key_of=digest if self.kind == "compact" else None,
        )

    @contextmanager
    def hands(self, frontier: list[Numbered], ahead: list[Numbered]) -> Generator[Hands]:
        """Whoever does the work, for as long as it lasts."""
        if self.workers == 1:
            yield Here(self.part(frontier, ahead), settled=isinstance(self.visited, Exact))
            return
        count = self.workers
        crew = Crew(lambda worker: self.part(frontier[worker::count], ahead[worker::count]), count)
        try:
            yield crew
        finally:
            crew.close()

    def level(self, hands: Hands) -> None:
        """Expand all states of a level, and judge those of the next."""
        depth = len(self.trail.starts) - 1
        end = self.trail.starts[-1]
        if self.limits.depth is not None and depth > self.limits.depth:
            self.cut = f"nothing beyond {self.limits.depth} events was looked at"
            return
        for chunk in hands.expand(self.at, end):
            self.merge(hands, chunk, depth)
            self.at = min(end, self.at + CHUNK)
            if self.at < end or len(self.trail) > end:
                self.cut = self.over_budget()
            if self.cut:
                break
            if self.checkpoint is not None and time.monotonic() - self.saved >= self.checkpoint.every_s:
                self.settle(hands, depth)
                self.save()
            self.tell(depth)
        self.settle(hands, depth)
        if self.cut:
            if self.checkpoint is not None:
                self.save()
            return
        if self.findings and self.findings.depth == depth:
            self.findings.add_stuck(self.trail, hands.stuck(), depth)
        if len(self.trail) > end:
            self.trail.starts.append(len(self.trail))
        hands.turn()

    def merge(self, hands: Hands, chunk: Chunk, depth: int) -> None:
        """Take what came of a stretch of states."""
        first = len(self.trail)
        new = None if hands.settled else self.visited.admit(chunk.keys)
        if new is None:
            self.trail.parents.extend(chunk.parents)
            self.trail.indices.extend(chunk.indices)
        else:
            for place, flag in enumerate(new):
                if flag:
                    self.trail.parents.append(chunk.parents[place])
                    self.trail.indices.append(chunk.indices[place])
        hands.keep(new, first)
        self.tally.add_chunk(chunk, depth)
        self.crashes += chunk.crashes
        self.findings.add_transitions(chunk.broken, depth)
        self.findings.add_stuck(self.trail, chunk.stuck, depth - 1)
        if self.edges is not None and isinstance(self.visited, NumberedKeys):
            self.edges.add_chunk(chunk, self.visited.numbers)
        self.memory = chunk.memory + (resident_bytes() if self.workers > 1 else 0)
        self.memory_peak = max(self.memory_peak, self.memory)

    def settle(self, hands: Hands, depth: int) -> None:
        """Take what the rules say of the states that are new."""
        judged = hands.settle()
        for said in judged:
            self.tally.add_judgement(said, depth)
            self.crashes += said.crashes
            self.findings.add_states(self.trail, said.broken, depth)
        if self.edges is not None:
            self.edges.add_debts(judged)

    def over_budget(self) -> str:
        """Which limit is reached, in words; empty if none is."""
        limits = self.limits
        if limits.states is not None and len(self.trail) >= limits.states:
            return f"the budget of {limits.states} states is used up"
        if limits.seconds is not None and time.monotonic() - self.began >= limits.seconds:
            return f"the budget of {limits.seconds:g} seconds is used up"
        if limits.mib is not None and self.memory >= limits.mib << 20:
            return f"the budget of {limits.mib} MiB of memory is used up"
        return ""

    def save(self) -> None:
        """Save the search as it stands between two chunks."""
        assert self.checkpoint is not None
        assert not isinstance(self.visited, NumberedKeys)
        said = {
            "fingerprint": self.fingerprint,
            "tally": self.tally.to_json(),
            "findings": self.findings.to_json(),
            "crashes": self.crashes,
            "at": self.at,
            "seconds": self.seconds(),
        }
        checkpoints.save(self.checkpoint.folder, said, self.trail, self.visited)
        self.saved = time.monotonic()

    def seconds(self) -> float:
        """Seconds on the wall, those before the checkpoint included."""
        return self.seconds_before + time.monotonic() - self.began

    def tell(self, depth: int) -> None:
        """Say how far the search has come, if somebody wants to know and it is time."""
        now = time.monotonic()
        if self.progress is None or now - self.told < TOLD_EVERY_S:
            return
        self.told = now
        waiting = len(self.trail) - self.at
        self.progress(
            Snapshot(self.name, len(self.trail), self.tally.transitions, waiting, depth, self.seconds(), self.memory)
        )

    def crashed(self, crash: Crash) -> ModelError:
        """The error that tells what the model raised, and how it came to that."""
        state, index, asked, found = crash
        initial, events, reached = self.trail.story(self.model, state)
        if index >= 0:
            events.append(self.model.events(reached)[index])
        return ModelError(asked, found, initial, tuple(events))

    def example(self, candidate: Candidate) -> Counterexample | None:
        """A counterexample that was gone through once more; None if it did not come out the same."""
        try:
            return self.findings.example(self.model, self.trail, candidate)
        except Exception as error:
            self.tally.unsound.append(f"a counterexample could not be gone through again: {in_words(error)}")
            return None

    def graph(self) -> Graph | None:
        """States and transitions; None if they were not to be kept."""
        if self.edges is None or not isinstance(self.visited, NumberedKeys):
            return None
        return self.edges.graph(self.trail, list(self.visited.numbers))

    def result(self, cpu_s: float) -> Search:
        """What was found."""
        broken: list[Counterexample] = []
        for candidate in self.findings.firsts():
            example = self.example(candidate)
            if example is None:
                self.tally.unsound.append(f"{candidate.rule} was broken once, but not when gone through again")
            else:
                broken.append(example)
        per_depth = self.trail.per_depth()
        finished = not (self.cut or self.findings or self.tally.unsound)
        return Search(
            distinct=len(self.trail),
            transitions=self.tally.transitions,
            depth=max(0, len(per_depth) - 1),
            per_depth=per_depth,
            degree_min=self.tally.low if self.tally.expanded else 0,
            degree_mean=self.tally.transitions / self.tally.expanded if self.tally.expanded else 0.0,
            degree_max=self.tally.high,
            finished=finished,
            cut=self.cut,
            visited=self.kind,
            collision=self.visited.collision(),
            workers=self.workers,
            resumed=self.resumed,
            seconds=self.seconds(),
            cpu_seconds=cpu_s,
            memory_peak_bytes=self.memory_peak,
            memory_grown_bytes=max(0, self.memory_peak - self.memory_began * (1 + self.workers * (self.workers > 1))),
            marks=self.tally.marks(),
            events=self.tally.events(),
            broken=tuple(broken),
            unsound=tuple(self.tally.unsound),
            graph=self.graph() if finished else None,
        )
