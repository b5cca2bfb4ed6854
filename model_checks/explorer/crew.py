"""Several processes that expand one search together.

Each holds its own part of the frontier. The search alone decides which states are new, in the order in which one
process would have met them; so counts, marks and counterexamples are the same. A process is sent stretches of state
numbers a few ahead, and what it finds is put together stretch by stretch. States travel, packed, only when the parts
have become unequal. A process ends when the search does: what it reads from is closed.
"""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from typing import Any, TypeAlias

from tenure.model_checks.explorer.errors import WorkerDiedError
from tenure.model_checks.explorer.forks import Forked, Link, fork
from tenure.model_checks.explorer.part import CHUNK, Chunk, Judgement, Part

AHEAD = 4
"""How many stretches a process may be asked for before the first is put together."""
UNEQUAL = 1.05
"""States travel when a part is larger than the mean by this factor."""
WORTH_MOVING = 16

MakePart: TypeAlias = Callable[[int], Part]


class _Post:
    """Sends what a process has to say from a thread of its own.

    A process that writes does not read, and a search that writes does not read either: both would wait for ever.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._letters: SimpleQueue[memoryview | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def say(self, verb: str, what: object) -> None:
        """Send this some time."""
        # What `Connection.send` does, but here, so that the thread only writes.
        self._letters.put(ForkingPickler.dumps((verb, what)))

    def close(self) -> None:
        """Send all that is left."""
        self._letters.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (letter := self._letters.get()) is not None:
                self._link.send_bytes(letter)
        except OSError:
            # There is nobody to hear it.
            os._exit(1)


def _serve(link: Link, post: _Post, part: Part) -> None:
    """Do what is asked, until there is nobody who asks."""
    while True:
        verb, *arguments = link.recv()
        if verb == "expand":
            post.say(verb, part.expand(*arguments))
        elif verb == "keep":
            post.say(verb, part.keep(*arguments))
        elif verb == "turn":
            part.forget()
            post.say(verb, part.turn())
        elif verb == "stuck":
            post.say(verb, part.stuck())
        elif verb == "give":
            post.say(verb, part.give(*arguments))
        elif verb == "get":
            part.get(*arguments)
            post.say(verb, None)
        else:
            post.say(verb, time.process_time())
            return


def _work(link: Link, others: Sequence[Link], make: MakePart, worker: int) -> None:
    """The life of a process: whatever goes wrong is told, if there is still somebody to hear it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        other.close()
    post = _Post(link)
    try:
        _serve(link, post, make(worker))
    except (EOFError, ConnectionResetError):
        # The search is over.
        os._exit(0)
    except Exception as error:
        post.say("failed", f"{type(error).__name__}: {error}")
    post.close()
    # Nothing of the parent's is to be cleaned up twice.
    os._exit(0)


class Crew:
    """The frontier in several processes, which are forked: each is born with its part of the states."""

    settled = False

    def __init__(self, make: MakePart, workers: int) -> None:
        """Begin.

        Args:
            make: the part of one process; called in that process.
            workers: how many.
        """
        self._crew: list[Forked] = []
        self._judged: list[Judgement] = []
        # Of every worker how often it was told to keep something, and has not yet said what the rules say of that.
        self._unjudged = [0] * workers
        self._chunks: list[deque[Chunk]] = [deque() for _ in range(workers)]
        # Of the chunk put together last: of every candidate the worker, and its place there.
        self._origin: list[tuple[int, int]] = []
        try:
            for worker in range(workers):
                held = [member.link for member in self._crew]
                self._crew.append(fork(_work, held, (make, worker), f"worker-{worker}"))
        except BaseException:
            self.close()
            raise

    def expand(self, begin: int, end: int) -> Iterator[Chunk]:
        """The states of a level that were not expanded yet, chunk by chunk."""
        stops = [min(low + CHUNK, end) for low in range(begin, end, CHUNK)]
        for stop in stops[:AHEAD]:
            self._tell_all("expand", stop)
        for number in range(len(stops)):
            parts = [self._next_chunk(worker) for worker in range(len(self._crew))]
            if number + AHEAD < len(stops):
                self._tell_all("expand", stops[number + AHEAD])
            yield self._together(parts)

    def keep(self, new: Sequence[bool] | None, first: int) -> None:
        """Of the chunk that came last keep the candidates that are new; they are numbered from `first` on."""
        places: list[list[int]] = [[] for _ in self._crew]
        ids: list[list[int]] = [[] for _ in self._crew]
        number = first
        for flag, (worker, place) in zip(new or (), self._origin, strict=True):
            if flag:
                places[worker].append(place)
                ids[worker].append(number)
                number += 1
        for worker in range(len(self._crew)):
            self._tell(worker, "keep", places[worker], ids[worker])
            self._unjudged[worker] += 1

    def settle(self) -> list[Judgement]:
        """What the rules say of all that was kept and not told of yet."""
        for worker in range(len(self._crew)):
            while self._unjudged[worker]:
                self._hear(worker, "keep")
        judged, self._judged = self._judged, []
        return judged

    def turn(self) -> None:
        """Go on to the next level, with parts that are about equal."""
        self._tell_all("turn")
        sizes = [self._hear(worker, "turn") for worker in range(len(self._crew))]
        mean = sum(sizes) / len(sizes)
        if max(sizes) - mean < WORTH_MOVING or max(sizes) < UNEQUAL * mean:
            return
        fair = int(mean)
        moving: list[tuple[int, Any]] = []
        for worker, size in enumerate(sizes):
            if size > fair:
                self._tell(worker, "give", size - fair)
                moving.extend(self._hear(worker, "give"))
        for worker, size in enumerate(sizes):
            if size < fair:
                taken, moving = moving[: fair - size], moving[fair - size :]
                self._tell(worker, "get", taken)
                self._hear(worker, "get")
        # What the division left over.
        if moving:
            self._tell(0, "get", moving)
            self._hear(0, "get")

    def stuck(self) -> list[int]:
        """States of the next level in which nothing can happen though it should."""
        self._tell_all("stuck")
        return sorted(number for worker in range(len(self._crew)) for number in self._hear(worker, "stuck"))

    def cpu_seconds(self) -> float:
        """Processor time of the other processes; they end by being asked."""
        self._tell_all("stop")
        return float(sum(self._hear(worker, "stop") for worker in range(len(self._crew))))

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        while self._crew:
            self._crew.pop().end()

    def _tell_all(self, verb: str, *arguments: object) -> None:
        for worker in range(len(self._crew)):
            self._tell(worker, verb, *arguments)

    def _tell(self, worker: int, verb: str, *arguments: object) -> None:
        try:
            self._crew[worker].link.send((verb, *arguments))
        except (BrokenPipeError, ConnectionResetError):
            raise self._died(worker) from None

    def _hear(self, worker: int, verb: str) -> Any:
        """The next thing of this kind that a process says; what comes before is kept for later."""
        while True:
            try:
                said, what = self._crew[worker].link.recv()
            except (EOFError, ConnectionResetError):
                raise self._died(worker) from None
            if said == "failed":
                raise WorkerDiedError(worker, None, f"failed: {what}")
            if said == "keep":
                self._unjudged[worker] -= 1
                self._judged.append(what)
            elif said == "expand" and verb != "expand":
                self._chunks[worker].append(what)
            if said == verb:
                return what

    def _next_chunk(self, worker: int) -> Chunk:
        if self._chunks[worker]:
            return self._chunks[worker].popleft()
        chunk: Chunk = self._hear(worker, "expand")
        return chunk

    def _died(self, worker: int) -> WorkerDiedError:
        return WorkerDiedError(worker, self._crew[worker].exit_code())

    def _together(self, parts: Sequence[Chunk]) -> Chunk:
        """One chunk, its candidates in the order in which one process would have met them."""
        origin = [(worker, place) for worker, part in enumerate(parts) for place in range(len(part.keys))]
        # Stable, and every parent is of one part: its events stay in order.
        origin.sort(key=lambda at: parts[at[0]].parents[at[1]])
        self._origin = origin
        whole = Chunk(
            parents=[parts[worker].parents[place] for worker, place in origin],
            indices=[parts[worker].indices[place] for worker, place in origin],
            keys=[parts[worker].keys[place] for worker, place in origin],
        )
        if all(len(part.labels) == len(part.keys) for part in parts):
            whole.labels = [parts[worker].labels[place] for worker, place in origin]
        for part in parts:
            whole.states += part.states
            whole.transitions += part.transitions
            whole.low = min(whole.low, part.low)
            whole.high = max(whole.high, part.high)
            whole.broken += part.broken
            whole.stuck += part.stuck
            whole.crashes += part.crashes
            whole.unsound += part.unsound
            whole.memory += part.memory
            for marks, count in part.marks.items():
                whole.marks[marks] = whole.marks.get(marks, 0) + count
            for kind, count in part.kinds.items():
                whole.kinds[kind] = whole.kinds.get(kind, 0) + count
        return whole
