"""What a router knows of a machine that it hears only KV events from."""

from collections.abc import Iterable

from tenure.core.blocks.values import BlockHash, Command, PublishRemoved, PublishStored
from tenure.core.blocks.view import BlockView
from tenure.core.errors import InvariantViolation


class KvMirror:
    """The set of visible hashes, kept up by KV events alone.

    Rules: I25 (the events tell exactly what is visible), I26 (nothing is told twice).
    """

    def __init__(self, visible: Iterable[BlockHash] = ()) -> None:
        """A mirror that knows `visible`; nothing, if it listens from the start."""
        self.visible: set[BlockHash] = set(visible)

    def hear(self, commands: Iterable[Command]) -> None:
        """Take in the KV events among some commands, in order.

        Raises:
            InvariantViolation: I26, a hash stored twice; I25, a hash removed that was never stored.
        """
        for command in commands:
            match command:
                case PublishStored():
                    self._store(command)
                case PublishRemoved():
                    self._remove(command)
                case _:
                    pass

    def _store(self, event: PublishStored) -> None:
        for name in event.block_hashes:
            if name in self.visible:
                raise InvariantViolation("I26", f"hash {name} is stored by event {event.event_id} and known already")
            self.visible.add(name)

    def _remove(self, event: PublishRemoved) -> None:
        for name in event.block_hashes:
            if name not in self.visible:
                raise InvariantViolation("I25", f"hash {name} is removed by event {event.event_id} and not known")
            self.visible.remove(name)

    def compare(self, view: BlockView) -> None:
        """Hold the mirror against the machine.

        Raises:
            InvariantViolation: I25, the two know different hashes.
        """
        if not view.index.keys() ^ self.visible:
            return
        missing, surplus = sorted(set(view.index) - self.visible), sorted(self.visible - set(view.index))
        raise InvariantViolation(
            "I25", f"hashes {missing} are visible and were not told, {surplus} were told and are not visible"
        )
