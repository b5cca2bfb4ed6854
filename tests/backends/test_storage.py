"""Where rows lie, as several threads make names ready and free what nobody uses any more."""

from dataclasses import replace

from tenure import RowConfig, RowFormat, Schedule
from tenure.backends.device import Lane
from tenure.backends.storage import Storage
from tenure.core.arrays import integers
from tenure.core.rows.commands import ReleaseBuffers
from tests.facade.devices import ScriptedDevice
from tests.facade.engine import Call

CONFIG = RowConfig(num_blocks=4, block_size=4, page_rows_max=16)
ONE, OTHER = (RowFormat(name, (2,), "float32", Schedule.JOIN_NEXT_STEP) for name in ("m", "n"))


def wider(row_format: RowFormat) -> RowFormat:
    """The same name, with other rows."""
    return replace(row_format, row_shape=(3,))


def free_clone(storage: Storage, clone: int) -> None:
    """Nobody uses a clone any more."""
    storage.release(ReleaseBuffers(clone, Lane.COPY, (), integers([clone]), (), ()))


def test_a_name_that_is_made_ready_anew_beside_one_that_is_freed_frees_neither_twice() -> None:
    """The engine's thread saves while whoever pumps frees: memory given back twice is two steps' at once."""
    device = ScriptedDevice()
    storage = Storage(device, CONFIG)
    for clone, each in enumerate((ONE, OTHER), 1):
        storage.register(each)
        storage.clone_rows(clone, each, 4)
    # Its device may still be at its clone.
    storage.register(wider(ONE))
    freed: list[str] = []

    def make_ready(kind: str, _: Lane | None) -> None:
        freed.append(kind)
        if 1 == len(freed):
            Call(storage.register, wider(OTHER)).result()

    device.before = make_ready
    free_clone(storage, 1)
    assert "free" == freed[0]
    assert 4 * ONE.row_bytes == storage.figures()[2]
    free_clone(storage, 2)

    assert (0, 0) == storage.figures()[2:]
    assert len(device.freed) == len({id(each) for each in device.freed})
    # What is left are pools and pages of the names as they are.
    assert 2 * (1 + CONFIG.pages) == len(device.held)
