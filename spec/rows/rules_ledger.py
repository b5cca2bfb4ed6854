"""What takes the memory of a run: which command runs what, which chunk is on which clone, what a start expected.

A view does not tell these, so an observation alone can only count them. A ledger is shown every accepted event of a
run, in order, from the first on, and judges what it can judge better than a single observation.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from tenure.core.errors import InvariantViolation
from tenure.core.rows.answers import Waiting
from tenure.core.rows.commands import (
    CommandId,
    CopyDeferred,
    CopyPage,
    FreezeRows,
    GatherRows,
    ReleaseBuffers,
    RowCommand,
    ScatterRows,
    SourceKind,
)
from tenure.core.rows.events import (
    CloneId,
    SavePublished,
    SaveRequested,
    StepConsumed,
)
from tenure.core.rows.view import ReadPhase, RowView, StepPhase, WritePhase
from tenure.spec.rows.rule import RowObservation, commanded, is_immediate
from tenure.spec.rows.rules_commands import overwritten_reads
from tenure.spec.rows.rules_hits import part_rows, settled, verdicts
from tenure.spec.rows.rules_memory import Chunk, Memory
from tenure.spec.rule import Finding

LEDGER_RULES: Final = ("R02", "R08", "R10", "R13", "R14", "R16", "R20", "R21", "R23")
"""The rules that a ledger judges better than a single observation."""


class Ledger:
    """A judge who remembers one run."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._run = Memory()

    def clone(self) -> "Ledger":
        """The same judge, to go on differently."""
        other = Ledger()
        other._run = self._run.clone()
        return other

    def check(self, seen: RowObservation) -> None:
        """Take note of one observation, and judge it.

        Raises:
            InvariantViolation: with the first rule that is broken.
        """
        for name, found in self.observe(seen):
            raise InvariantViolation(name, found)

    def observe(self, seen: RowObservation) -> list[tuple[str, str]]:
        """Take note of one observation: every rule that it breaks, with what was found where."""
        self._run.before(seen)
        checks = (
            ("R20", self._numbers(seen)),
            ("R20", self._edges(seen)),
            ("R13", self._scatter_edges(seen)),
            ("R16", self._saved_rows(seen)),
            ("R16", self._deferred_copies(seen)),
            ("R02", self._gathered_clones(seen)),
            ("R02", settled(seen, self._run.expects)),
            ("R14", verdicts(seen, self._run.expects)),
            ("R21", self._identities(seen)),
            ("R23", self._handed_over(seen)),
            ("R23", self._host_rows(seen)),
            ("R08", self._holders(seen.after)),
            ("R10", self._flush(seen)),
        )
        self._run.after(seen)
        return [(name, found) for name, found in checks if found is not None]

    # --- Edges ------------------------------------------------------------------------------------------------

    def _numbers(self, seen: RowObservation) -> Finding:
        if seen.commands and seen.commands[0].command != self._run.last + 1:
            return f"command {seen.commands[0].command} follows command {self._run.last}"
        for command in seen.commands:
            starts = self._run.scheduled.intersection(command.after)
            if starts:
                return f"command {command.command} is behind {sorted(starts)}, which begin when there is room"
        return None

    def _edges(self, seen: RowObservation) -> Finding:
        for command in seen.commands:
            missing = sorted(set(self._needed(seen, command)).difference(command.after))
            if missing:
                return f"command {command.command}, {type(command).__name__}, is behind {command.after}, not {missing}"
        return None

    def _needed(self, seen: RowObservation, command: RowCommand) -> Iterator[CommandId]:
        """The commands that must have ended before this one begins, as far as the lanes do not say so."""
        match command:
            case CopyPage(step=step):
                yield from self._run.freezes([step])
            case CopyDeferred(write=write):
                queued = seen.after.writes.get(write)
                yield from self._run.freezes_of(set() if queued is None else {*self._run.clones_of_write(queued)})
            case GatherRows(read=read):
                yield from self._run.preserves.get(read, ())
                yield from self._run.freezes_of(
                    {
                        clone
                        for part in command.parts
                        if part.kind is SourceKind.CLONE
                        for clone in part.sources.tolist()
                    }
                )
            case ReleaseBuffers(reads=reads):
                for read in reads:
                    yield from (each for each in self._run.preserves.get(read, ()) if each > self._run.pool_ended)
                yield from self._run.freezes_of({*command.clones.tolist()})
            case _:
                pass

    def _scatter_edges(self, seen: RowObservation) -> Finding:
        for scatter in commanded(seen.commands, ScatterRows):
            gathers = [
                self._run.gathers[read] for read in overwritten_reads(seen, scatter) if read in self._run.gathers
            ]
            missing = sorted(set(gathers).difference(scatter.after))
            if missing:
                return f"{scatter} is not behind {missing}, which gather rows that it overwrites"
        return None

    # --- Rows on the device -----------------------------------------------------------------------------------

    def _saved_rows(self, seen: RowObservation) -> Finding:
        """What was claimed is what the save was asked for."""
        event, now = seen.event, seen.after
        if not isinstance(event, SavePublished) or event.step not in now.steps:
            return None
        step, frozen = now.steps[event.step], self._run.frozen.get(event.step)
        if frozen is None:
            return f"step {event.step} was published, and nothing was frozen for it"
        layout, freeze = frozen.asked.layout, frozen.freeze
        names = sorted(each.name for clone in freeze.clones for each in clone.formats)
        if sorted(step.names) != names or sorted(step.leftovers) != sorted(freeze.leftovers):
            return f"step {event.step} has {step.names} and {step.leftovers}, and {freeze} was commanded"
        if sorted(each.name for each in frozen.asked.outputs if each.name in names) != names:
            return f"{names} were frozen, and {frozen.asked.outputs} are the outputs"
        if now.formats != (*seen.before.formats, *freeze.registers):
            return f"{now.formats} are registered, and {freeze.registers} were new"
        if step.batch != tuple(zip(layout.requests, layout.counts.tolist(), strict=True)):
            return f"step {event.step} has the batch {step.batch}, and was saved with {layout}"
        for copy_page in commanded(seen.commands, CopyPage):
            if copy_page.clones != freeze.clones or copy_page.num_rows != freeze.num_rows:
                return f"{copy_page} copies something else than {freeze} froze"
        return self._saved_slots(seen, layout.slots.tolist(), freeze)

    def _saved_slots(self, seen: RowObservation, slots: list[int], freeze: FreezeRows) -> Finding:
        if freeze.num_rows != len(slots):
            return f"{freeze.num_rows} rows were frozen, and {len(slots)} saved"
        first = seen.before.next_claim
        for number, write in seen.after.writes.items():
            for claim, found in write.claims:
                if claim < first:
                    continue
                chunk = self._run.chunks.get(claim)
                wanted = slots if is_immediate(write) else slots[chunk.start : chunk.stop] if chunk else []
                if list(found) != wanted:
                    return f"claim {claim} of write {number} takes the slots {found}, and was saved with {wanted}"
        return None

    def _deferred_copies(self, seen: RowObservation) -> Finding:
        for command in commanded(seen.commands, CopyDeferred):
            write = seen.before.writes.get(command.write)
            chunks = [] if write is None else [self._run.chunks.get(claim) for claim, _ in write.claims]
            arrays = (command.clones.tolist(), command.starts.tolist(), command.stops.tolist())
            found = [Chunk(*each) for each in zip(*arrays, strict=True)]
            if found != chunks:
                return f"{command} copies {found}, and write {command.write} is on {chunks}"
        return None

    def _gathered_clones(self, seen: RowObservation) -> Finding:
        for command in commanded(seen.commands, GatherRows):
            read = seen.before.reads.get(command.read)
            parts = [part for part in command.parts if part.kind is SourceKind.CLONE] if read is not None else []
            for part in parts:
                assert read is not None
                for row, source in part_rows(part):
                    wanted = self._run.batch_row(seen.before, read.claims[row], read.slots[row])
                    if source[1:] != wanted:
                        return f"row {row} of read {command.read} comes from {source}, not from {wanted}"
        return None

    def _identities(self, seen: RowObservation) -> Finding:
        """A block that a step computed holds what its start said, or nobody knows what."""
        if not isinstance(seen.event, SavePublished) or seen.event.step not in self._run.frozen:
            return None
        size = seen.after.config.block_size
        touched = {slot // size for slot in self._run.frozen[seen.event.step].asked.layout.slots.tolist()}
        wanted = {block: each for block, each in seen.before.identities.items() if block not in touched}
        told = {**self._run.computes, **dict(seen.event.computes)}
        if not told.keys() <= touched:
            return f"blocks {sorted(told.keys() - touched)} are said to be computed, and {sorted(touched)} are"
        wanted |= told
        if dict(seen.after.identities) != wanted:
            return f"blocks hold {dict(seen.after.identities)}, and {wanted} was computed"
        return None

    # --- Holders ----------------------------------------------------------------------------------------------

    def _handed_over(self, seen: RowObservation) -> Finding:
        """Buffers of a consumer's requests go to it; those of every other read that is gone are given back, once."""
        event, then = seen.event, seen.before
        asked = self._run.asked.get(event.step, ()) if isinstance(event, StepConsumed) else ()
        gone = {number: read for number, read in then.reads.items() if number not in seen.after.reads}
        wanted = sorted(
            number
            for number, read in gone.items()
            if (number in self._run.buffers or read.preserved)
            and not (read.phase is ReadPhase.DONE and read.request in asked)
        )
        released = sorted(read for each in commanded(seen.commands, ReleaseBuffers) for read in each.reads)
        if released != wanted:
            return f"buffers of the reads {released} were released, and {wanted} have some that nobody wants"
        return None

    def _host_rows(self, seen: RowObservation) -> Finding:
        """Host rows of a deferred write are given back once, when neither its scatter nor a read wants them."""
        now = seen.after
        released = [write for each in commanded(seen.commands, ReleaseBuffers) for write in each.writes]
        held = {write for read in now.reads.values() for write in read.writes}
        held.update(number for number, write in now.writes.items() if write.phase is WritePhase.HOST_READY)
        held.update(number for number, write in now.fenced.items() if write.phase is WritePhase.HOST_READY)
        must = {write for write, is_there in self._run.hosts.items() if is_there and write not in held}
        if len({*released}) != len(released) or not must <= {*released} <= self._run.hosts.keys() - held:
            return (
                f"host rows of the writes {released} were released, of {sorted(must)} nobody wants any, and {held} hold"
            )
        return None

    def _holders(self, view: RowView) -> Finding:
        held: Counter[CloneId] = Counter()
        for write in view.writes.values():
            held.update(self._run.clones_of_write(write))
        for number, step in view.steps.items():
            if step.phase is StepPhase.RESERVED:
                held.update(clone.clone for clone in self._run.clones(number))
        held.update(clone for write in view.fenced.values() for clone in write.clones)
        held.update(clone for read in view.reads.values() for clone in read.clones)
        found = {number: clone.holders for number, clone in view.clones.items()}
        return f"clones have the holders {found}, and {dict(held)} hold them" if found != dict(held) else None

    def _flush(self, seen: RowObservation) -> Finding:
        """A flush closes the writes with a chunk on the oldest clone, all of them and no other."""
        clone = seen.answer.waited_for.clone if isinstance(seen.answer, Waiting) else None
        if clone is None or not isinstance(seen.event, SaveRequested):
            return None
        for number, write in seen.before.writes.items():
            if write.phase is not WritePhase.PENDING:
                continue
            after = seen.after.writes.get(number)
            clones = self._run.clones_of_write(write)
            if (clone in clones) == (after is not None and after.phase is WritePhase.PENDING):
                return f"write {number}, on the clones {clones}, is {after} after the flush of clone {clone}"
        return None
