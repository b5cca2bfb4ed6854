"""What a step emits and is no per-token row: tensors of any shape, lists, tuples, maps, anything."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from tenure.backends.device import Device, Lane


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value is a list, of anything."""
    return isinstance(value, list)


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Whether a value is a tuple, of anything."""
    return isinstance(value, tuple)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value maps anything to anything."""
    return isinstance(value, Mapping)


def copied_leftover(device: Device, value: Any) -> Any:
    """A copy of a leftover with every tensor on its way to the host, behind the lane COMPUTE.

    Lists, tuples (named ones too) and mappings are copied all the way down; whatever else is handed on as it is.

    Raises:
        OperationFailedError: a tensor could not be copied.
    """
    if device.describe(value) is not None:
        return device.to_host(Lane.COMPUTE, value)
    if is_mapping(value):
        return {key: copied_leftover(device, each) for key, each in value.items()}
    if is_list(value):
        return [copied_leftover(device, each) for each in value]
    if is_tuple(value):
        make = getattr(type(value), "_make", tuple)
        return make([copied_leftover(device, each) for each in value])
    return value
