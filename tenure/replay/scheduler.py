"""A small continuous-batching scheduler: decides which request computes which tokens in which step.

Arrivals are served in order. A step decodes one token of every request that generates, and fills what is left of its
token budget with chunks of prompts: first of the one it cut short last, then of newly admitted ones. When capacity
runs out, the request that was admitted last gives up its blocks and waits, in front of all others. What it generated
is kept; all its tokens are computed anew, but for what a new look-up finds.

The scheduler knows token counts alone. Blocks, hashes, hits and rows are the machine's. What is decided for a step is
told to it at once (`schedule`), before the next decision: whoever is admitted later in the step may share it. Nobody
gives up blocks between that and the step's end.

Requests may be disturbed, between steps: aborted, or preempted although there is capacity. Such a preempted one waits
behind whoever waits already.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenure.core.blocks.sequence import RequestSequence
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Exhausted,
    GrowthReady,
    GrowthScheduled,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    RequestId,
)
from tenure.core.errors import InvariantViolation
from tenure.replay.disturbances import Disturbances
from tenure.replay.machine import Machine


@dataclass(slots=True, eq=False)
class Job:
    """A request on its way through the scheduler.

    Attributes:
        request: its id.
        prompt_tokens: tokens of its prompt.
        output_tokens: tokens it is to generate.
        known: tokens that exist, prompt and output.
        computed: leading tokens whose rows are in the cache.
        running: whether it is admitted.
        decoding: whether all it knew at admission is computed, so that it takes one token a step.
        admissions: how often it was admitted.
        aborted_at: the step before which it is aborted; None if it is not to be, or was not admitted yet.
    """

    request: RequestId
    prompt_tokens: int
    output_tokens: int
    known: int
    computed: int = 0
    running: bool = False
    decoding: bool = False
    admissions: int = 0
    aborted_at: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all its output is generated."""
        return self.known == self.prompt_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens `[job.computed, stop)` of a request, computed in one step."""

    job: Job
    stop: int

    @property
    def tokens(self) -> int:
        """How many tokens it computes."""
        return self.stop - self.job.computed


class Scheduler:
    """Carries arriving requests through a machine, a step at a time."""

    def __init__(
        self,
        machine: Machine,
        arrivals: Iterator[RequestSequence],
        max_running: int,
        max_batched_tokens: int,
        disturbances: Disturbances | None = None,
    ) -> None:
        """Requests are drawn from `arrivals` when there is a place for them, one ahead at most.

        A request's blocks to completion must not exceed the capacity, and a step must have room for one token of every
        running request.
        """
        self._machine = machine
        self._counters = machine.counters
        self._block_size = machine.block_size
        self._arrivals = arrivals
        self._max_running = max_running
        self._max_batched_tokens = max_batched_tokens
        self._running: list[Job] = []  # in the order of admission
        self._disturbances = disturbances
        self._waiting: deque[Job] = deque()  # preempted ones, and at most one that has just arrived
        self._is_full = False  # no admission before a request finishes

    def step(self) -> bool:
        """Run one engine step; False when there is nothing left to do."""
        if self._disturbances is not None:
            self._disturb(self._disturbances)
        decoding = self._grow()
        budget = self._max_batched_tokens - len(decoding)
        chunks = self._continue_prefill(budget)
        chunks += self._admit(budget - sum(chunk.tokens for chunk in chunks))
        if not decoding and not chunks:
            if self._waiting:
                raise InvariantViolation("I11", "nothing runs, and yet there is no capacity for the next request")
            return False
        self._counters.steps += 1
        self._counters.peak_active_blocks = max(self._counters.peak_active_blocks, self._machine.num_active)
        self._machine.run_step()
        for chunk in chunks:
            self._end_chunk(chunk)
        if decoding:
            self._end_decode(decoding)
        return True

    def _disturb(self, disturbances: Disturbances) -> None:
        """Abort those whose time has come, running or waiting, and preempt whoever is drawn."""
        step = self._counters.steps
        for job in [*self._running, *self._waiting]:
            if job.aborted_at is not None and job.aborted_at <= step:
                self._machine.apply(LeaseFinished(job.request))
                (self._running if job.running else self._waiting).remove(job)
                self._is_full = False
                self._counters.aborts += 1
        chosen = disturbances.preempted(len(self._running))
        if chosen is not None:
            # Its capacity is there for all, itself included, so that nobody waits for ever.
            self._waiting.append(self._preempt(chosen))
            self._is_full = False
            self._counters.chosen_preemptions += 1

    # --- Scheduling -------------------------------------------------------------------------------------------------

    def _grow(self) -> list[Job]:
        """Hold capacity for the next token of every generating request; those that got it.

        Whoever finds none makes the last admitted request give up its blocks, itself perhaps.
        """
        asking: list[Job] = [job for job in self._running if job.decoding]
        served: list[Job] = []
        while asking:
            answer = self._machine.apply(GrowthScheduled(tuple(job.request for job in asking)))
            assert isinstance(answer, GrowthReady)
            served += asking[: answer.served]
            asking = asking[answer.served :]
            if asking:
                # The last admitted request stands last, so none that was served is preempted here.
                self._preempt_last()
                asking = [job for job in asking if job.running]
        for job in served:
            self._machine.schedule(job.request, job.computed, job.known)
        return served

    def _continue_prefill(self, budget: int) -> list[Chunk]:
        """Hold capacity for the next chunk of the request whose prompt is not computed yet, if there is one.

        It is the last admitted one: a chunk ends short of its prompt only where the step's budget ends, and then nobody
        is admitted after it. So, if it finds no capacity, it has to give up its own blocks.
        """
        if not self._running or self._running[-1].decoding:
            return []
        job = self._running[-1]
        stop = min(job.known, job.computed + budget)
        if isinstance(self._allocate(job, stop, 0), Exhausted):
            self._preempt_last()
            return []
        return [self._scheduled(job, stop)]

    def _admit(self, budget: int) -> list[Chunk]:
        """Admit waiting requests while there are budget, places and capacity; their first chunks.

        Nobody is preempted for an admission. After a preemption, or an admission that found no capacity, nobody is
        admitted until a request finishes: the capacity that a preemption set free belongs to those that still run.
        """
        chunks: list[Chunk] = []
        while budget > 0 and not self._is_full and len(self._running) < self._max_running:
            job = self._next_waiting()
            if job is None:
                break
            # The last token is computed also on a full hit, for somebody wants what follows it.
            hits = min(self._machine.shareable_blocks(job.request), (job.known - 1) // self._block_size)
            found = hits * self._block_size
            stop = min(job.known, found + budget)
            if isinstance(self._allocate(job, stop, hits), Exhausted):
                self._is_full = True
                break
            self._waiting.popleft()
            self._running.append(job)
            job.running = True
            job.computed = found
            self._count_admission(job, hits)
            chunks.append(self._scheduled(job, stop))
            budget -= stop - found
        return chunks

    def _next_waiting(self) -> Job | None:
        if not self._waiting:
            sequence = next(self._arrivals, None)
            if sequence is None:
                return None
            self._machine.apply(LeaseOpened(sequence))
            self._waiting.append(
                Job(sequence.request, sequence.prompt_tokens, sequence.max_output, sequence.prompt_tokens)
            )
        return self._waiting[0]

    def _scheduled(self, job: Job, stop: int) -> Chunk:
        self._machine.schedule(job.request, job.computed, stop)
        return Chunk(job, stop)

    def _allocate(self, job: Job, tokens: int, hits: int) -> Answer:
        return self._machine.apply(AllocationRequested(job.request, tokens, hits))

    def _preempt_last(self) -> None:
        """Let the last admitted request give up its blocks and wait in front of all others.

        It always sets a block free: what it does not share with earlier ones nobody else can have found yet.
        """
        if len(self._running) < 2:
            raise InvariantViolation("I11", "a request that runs alone found no capacity, although the cache holds it")
        self._waiting.appendleft(self._preempt(-1))
        self._is_full = True
        self._counters.preemptions += 1

    def _preempt(self, place: int) -> Job:
        job = self._running.pop(place)
        self._machine.apply(LeasePreempted(job.request))
        job.running = job.decoding = False
        job.computed = 0
        return job

    # --- The step's end ---------------------------------------------------------------------------------------------

    def _end_chunk(self, chunk: Chunk) -> None:
        """Report a chunk as computed; the first output token follows from the last chunk of a prompt."""
        job = chunk.job
        generates = chunk.stop == job.known and not job.is_complete
        self._machine.report_chunk(job.request, job.computed, chunk.stop, generates=generates)
        job.computed = chunk.stop
        if job.computed < job.known:
            return
        if generates:
            job.known += 1
            self._counters.output_tokens += 1
        job.decoding = True
        if job.is_complete:
            self._finish([job])

    def _end_decode(self, decoding: Sequence[Job]) -> None:
        """Report a token of every generating request as computed and the next as generated."""
        self._machine.report_decode([job.request for job in decoding])
        self._counters.output_tokens += len(decoding)
        for job in decoding:
            job.computed = job.known
            job.known += 1
        self._finish([job for job in decoding if job.is_complete])

    def _finish(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._machine.apply(LeaseFinished(job.request))
            job.running = False
            self._running.remove(job)
            self._is_full = False
            self._counters.requests += 1

    def _count_admission(self, job: Job, hits: int) -> None:
        counters = self._counters
        job.admissions += 1
        if job.admissions > 1:
            # B42: what a preempted request finds again is its own work and must not pass for sharing.
            counters.hit_tokens_after_preemption += hits * self._block_size
            return
        if self._disturbances is not None:
            steps = self._disturbances.steps_to_abort(job.output_tokens)
            job.aborted_at = None if steps is None else counters.steps + steps
        counters.admitted += 1
        counters.prompt_tokens += job.prompt_tokens
        counters.prompt_blocks += -(-job.prompt_tokens // self._block_size)
        counters.hit_tokens += hits * self._block_size
        counters.hit_blocks += hits
