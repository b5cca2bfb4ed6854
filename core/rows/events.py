"""What the row machine may be told.

Everything here is plain immutable data. Life-cycle events come inside a `StepStarted`; completions come back from
whoever carries the commands out, each as the command carried it.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tenure.core.arrays import ByContent, Integers, integers
from tenure.core.config import RowPolicy
from tenure.core.requests import request_ids
from tenure.core.rows.names import Output

RequestId: TypeAlias = int | str
BlockId: TypeAlias = int
Slot: TypeAlias = int
"""A row number of the pool: `block * block_size + offset`."""
StepId: TypeAlias = int
"""Numbers steps with scheduled tokens from 1; only grows, also over a reset."""
WriteId: TypeAlias = int
ReadId: TypeAlias = int
CloneId: TypeAlias = int
Claim: TypeAlias = int
"""Numbers claims from 1; only grows, also over a reset. 0 stands for none."""


class ContentIdentity(NamedTuple):
    """What a whole block holds: the sequence hash of its tokens and all before them, and the isolation group."""

    hash: int
    group: str = ""


# --- Life cycle -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """A request arrived. If its id is already live it is a continuation, and marks no hit.

    Attributes:
        request: its id.
        scheduled: tokens of it that this step computes.
        hit: tokens `[0, hit)` that the scheduler found computed.
        blocks: per KV group its block table; a hit needs exactly one group, with a block for every hit token.
        expects: per hit block the identity it should hold, or empty to trust the scheduler.
        computes: the identity of blocks that this step completes.
    """

    request: RequestId
    scheduled: int
    hit: int = 0
    blocks: tuple[tuple[BlockId, ...], ...] = ()
    expects: tuple[ContentIdentity, ...] = ()
    computes: tuple[tuple[BlockId, ContentIdentity], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Extended(ByContent):
    """Live requests go on, all of a step in one event.

    Shapes: `scheduled: [len(requests)]`, tokens of each that this step computes; copied.

    Raises:
        TypeError: `scheduled` holds no whole numbers, or `requests` no request ids.
        ValueError: `scheduled` has another length than `requests`.
    """

    requests: tuple[RequestId, ...]
    scheduled: Integers
    computes: tuple[tuple[BlockId, ContentIdentity], ...] = ()

    def __post_init__(self) -> None:
        """Take a copy of the counts."""
        object.__setattr__(self, "requests", request_ids(self.requests))
        object.__setattr__(self, "scheduled", integers(self.scheduled))
        if len(self.scheduled) != len(self.requests):
            msg = f"{len(self.scheduled)} counts for {len(self.requests)} requests"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Resumed:
    """A preempted request is back, with the fields of `Started`. A hit of it marks none: its step recomputes."""

    request: RequestId
    scheduled: int
    hit: int = 0
    blocks: tuple[tuple[BlockId, ...], ...] = ()
    expects: tuple[ContentIdentity, ...] = ()
    computes: tuple[tuple[BlockId, ContentIdentity], ...] = ()


@dataclass(frozen=True, slots=True)
class Replaced:
    """A live request goes on with another prompt; refused for now (`ReplacementUnsupportedError`)."""

    request: RequestId
    scheduled: int
    hit: int = 0
    blocks: tuple[tuple[BlockId, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """A request ended. One that is not live is passed over: schedulers also report what never ran."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Aborted:
    """A request was given up; its rows still reach the pool, since its hashes may be published. Else as `Finished`."""

    request: RequestId


LifeCycle: TypeAlias = Started | Extended | Resumed | Replaced | Finished | Aborted


# --- Calls of the engine --------------------------------------------------------------------------------------


def _check_policy(policy: object) -> None:
    if not isinstance(policy, RowPolicy):
        msg = f"expected a RowPolicy, found {policy!r}"
        raise TypeError(msg)


@dataclass(frozen=True, slots=True)
class PolicyRegistered:
    """The model's policy is known; before the first step only.

    Raises:
        TypeError: `policy` is none.
    """

    policy: RowPolicy

    def __post_init__(self) -> None:
        """Refuse what is no policy."""
        _check_policy(self.policy)


@dataclass(frozen=True, slots=True)
class StepStarted:
    """One scheduler output, all of it or nothing; ends come before arrivals, whatever their order.

    Answer `StepBegan`.
    """

    changes: tuple[LifeCycle, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class WriteLayout(ByContent):
    """Which batch rows belong to whom, and which slot each goes to.

    Attributes:
        requests: in batch order; request i owns the rows `[sum(counts[:i]), sum(counts[:i + 1]))`.
        counts: tokens per request. Shapes: `[len(requests)]`; copied.
        slots: per batch row its slot. Shapes: `[sum(counts)]`; copied.
        padded: rows that tensors of this step may have instead, for graphs of fixed size.

    Raises:
        TypeError: `counts` or `slots` hold no whole numbers, or `requests` no request ids.
        ValueError: `counts` has another length than `requests`.
    """

    requests: tuple[RequestId, ...]
    counts: Integers
    slots: Integers
    padded: int | None = None

    def __post_init__(self) -> None:
        """Take copies of the arrays."""
        object.__setattr__(self, "requests", request_ids(self.requests))
        object.__setattr__(self, "counts", integers(self.counts))
        object.__setattr__(self, "slots", integers(self.slots))
        if len(self.counts) != len(self.requests):
            msg = f"{len(self.counts)} counts for {len(self.requests)} requests"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class SaveRequested:
    """The step that was started was computed: reserve what saving it needs.

    Answer `Waiting` (ask again when what it names came true) or `SaveReserved`, after which the caller freezes the
    rows and tells `SavePublished` or `SaveCancelled`. `outputs` holds every name once; hidden is `HIDDEN`.
    """

    layout: WriteLayout
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class SavePublished:
    """The rows of the reserved save are frozen: claim the slots, register names, settle reads. Answer `StepSaved`.

    `computes` adds to what the step's start said: the identity of blocks that the step completed.
    """

    step: StepId
    computes: tuple[tuple[BlockId, ContentIdentity], ...] = ()


@dataclass(frozen=True, slots=True)
class SaveCancelled:
    """Freezing failed: what the save reserved is given back, and it may be tried again."""

    step: StepId


@dataclass(frozen=True, slots=True, eq=False)
class StepDropped(ByContent):
    """Nobody can save the started step: its slots hold no row of any name from now on, and its reads are dropped.

    Its requests stay live, and its hits are forgotten: to mark one again, finish the request and start it anew. Slots
    outside the pool are passed over, since such a slot is a reason to give a step up.

    Shapes: `slots: [k]`; copied.
    """

    slots: Integers

    def __post_init__(self) -> None:
        """Take a copy of the slots."""
        object.__setattr__(self, "slots", integers(self.slots))


@dataclass(frozen=True, slots=True)
class ConsumeRequested:
    """Somebody wants the rows of a saved step for these requests; answer `Waiting` or `ConsumePlan`.

    After a `ConsumePlan` the caller copies rows outside every lock and tells `RowsCopiedOut`, then `StepConsumed` or
    `ConsumeAbandoned`.

    Raises:
        TypeError: `requests` holds no request ids.
    """

    step: StepId
    requests: tuple[RequestId, ...]

    def __post_init__(self) -> None:
        """Take a copy of the ids."""
        object.__setattr__(self, "requests", request_ids(self.requests))


@dataclass(frozen=True, slots=True)
class RowsCopiedOut:
    """The rows on the step's page were copied: the step holds its page no more."""

    step: StepId


@dataclass(frozen=True, slots=True)
class StepConsumed:
    """The materialize that was planned returns."""

    step: StepId


@dataclass(frozen=True, slots=True)
class ConsumeAbandoned:
    """The materialize that was planned raises: the step can be consumed by another."""

    step: StepId


@dataclass(frozen=True, slots=True)
class StepDiscarded:
    """Nobody will materialize the step."""

    step: StepId


class WaitedFor(NamedTuple):
    """What a call waits for; all of it must come true.

    Attributes:
        written: writes that must be WRITTEN (or FAILED).
        host_ready: writes that must be HOST_READY (or further).
        reads: reads that must be done.
        clone: a device clone that must be let go by all its holders.
        page: whether a free page is wanted.
    """

    written: tuple[WriteId, ...] = ()
    host_ready: tuple[WriteId, ...] = ()
    reads: tuple[ReadId, ...] = ()
    clone: CloneId | None = None
    page: bool = False


@dataclass(frozen=True, slots=True)
class WaitTimedOut:
    """A call waited as long as it may; always refused, with the error that the call raises."""

    waited_for: WaitedFor


@dataclass(frozen=True, slots=True)
class ResetRequested:
    """Forget all rows; answer `ResetAnswered`."""


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """No call is served any more; completions are still taken. May be told again."""


# --- Completions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopyBegan:
    """A backend took the device-to-host copy of a write: QUEUED -> COPYING."""

    write: WriteId


@dataclass(frozen=True, slots=True)
class CopyCompleted:
    """The rows of a write are on the host: COPYING -> HOST_READY."""

    write: WriteId


@dataclass(frozen=True, slots=True)
class ScatterCompleted:
    """The rows of a write are in the pool: HOST_READY -> WRITTEN."""

    write: WriteId


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """A write cannot end as it should; a backend may say why."""

    write: WriteId
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GatherBegan:
    """A backend is about to run a read: from here on its sources are fixed. Its command is `GatherRows`."""

    read: ReadId


@dataclass(frozen=True, slots=True)
class GatherCompleted:
    """The rows of a read are in its buffer."""

    read: ReadId


@dataclass(frozen=True, slots=True)
class GatherFailed:
    """A read, or a preserve for it, cannot end as it should; a backend may say why."""

    read: ReadId
    reason: str = ""


RowEvent: TypeAlias = (
    StepStarted
    | SaveRequested
    | SavePublished
    | SaveCancelled
    | StepDropped
    | ConsumeRequested
    | RowsCopiedOut
    | StepConsumed
    | ConsumeAbandoned
    | StepDiscarded
    | CopyBegan
    | CopyCompleted
    | ScatterCompleted
    | WriteFailed
    | GatherBegan
    | GatherCompleted
    | GatherFailed
    | WaitTimedOut
    | PolicyRegistered
    | ResetRequested
    | ShutdownRequested
)
