"""The checker's events, which are tuples of plain values, as calls of the block machine.

An event is the actor, the name of the machine's event, and the arguments in a row: what is a tuple in the machine's
event stands last and takes what is left.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from tenure.core.blocks import values
from tenure.model_checks.blocks.worlds import World
from tenure.model_checks.model import Event

Arguments = tuple[Any, ...]

_MAKERS: Final[Mapping[str, Callable[[World, Arguments], values.Event]]] = MappingProxyType(
    {
        "LeaseOpened": lambda world, given: values.LeaseOpened(world.sequences[int(given[0])]),
        "AllocationRequested": lambda _, given: values.AllocationRequested(*given),
        "ReservedAllocationRequested": lambda _, given: values.ReservedAllocationRequested(*given),
        "WritesAuthorized": lambda _, given: values.WritesAuthorized(given[0], given[1:]),
        "TokensComputed": lambda _, given: values.TokensComputed(*given),
        "TokenGenerated": lambda _, given: values.TokenGenerated(*given),
        "GrowthScheduled": lambda _, given: values.GrowthScheduled(given),
        "StepComputed": lambda _, given: _step_computed(given),
        "LeasePreempted": lambda _, given: values.LeasePreempted(*given),
        "LeaseFinished": lambda _, given: values.LeaseFinished(*given),
        "DecodeReservationRequested": lambda _, given: values.DecodeReservationRequested(*given),
        "DecodeReservationReleased": lambda _, given: values.DecodeReservationReleased(*given),
        "DestinationRequested": lambda _, given: values.DestinationRequested(*given),
        "ExternalPrefixRequested": lambda _, given: values.ExternalPrefixRequested(given[0], given[1], given[2:]),
        "DestinationActivated": lambda _, given: values.DestinationActivated(*given),
        "DestinationCancelled": lambda _, given: values.DestinationCancelled(*given),
        "StoreSourcesSnapshotted": lambda _, given: values.StoreSourcesSnapshotted(given[0], given[1:]),
        "SnapshotDiscarded": lambda _, given: values.SnapshotDiscarded(*given),
        "DependencyAttached": lambda _, given: values.DependencyAttached(*given),
        "DependencySatisfied": lambda _, given: values.DependencySatisfied(*given),
    }
)

EVENT_NAMES: Final = tuple(_MAKERS)
"""Every kind of event of the block machine."""
COMMAND_NAMES: Final = ("PublishStored", "PublishRemoved", "RecordTrace")
"""Every kind of command of the block machine."""


def _step_computed(given: Arguments) -> values.StepComputed:
    """Requests are names here, so what is a number is a sampled token."""
    requests = tuple(each for each in given if isinstance(each, str))
    tokens = tuple(each for each in given if not isinstance(each, str))
    return values.StepComputed(requests, tokens or None)


def core_event(world: World, event: Event) -> values.Event:
    """The call that an event of the checker stands for."""
    return _MAKERS[str(event[1])](world, event[2:])


def describe(world: World, event: Event) -> str:
    """One event as a line of a story."""
    actor, kind, *given = event
    if kind == "LeaseOpened":
        sequence = world.sequences[int(given[0])]
        shape = f"{sequence.prompt_tokens} prompt tokens, {sequence.max_output} to generate"
        return f"{actor}: LeaseOpened({sequence.request}: {shape})"
    return f"{actor}: {kind}({', '.join(map(str, given))})"
