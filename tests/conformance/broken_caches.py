"""Caches with one fault each, and the check that must notice it: told events, or with the calls of the facade.

As a script, `python tests/conformance/broken_caches.py FAULT` is a child process with a fault.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from tenure import OutputCache
from tenure.backends.cpu import CpuDevice
from tenure.backends.cpu.arrays import is_array
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.errors import StepNotSavedError, TenureError, UnreadableHitError
from tenure.core.rows.answers import ConsumePlan, Done, SaveReserved, StepBegan, StepSaved
from tenure.core.rows.commands import CopyPage, GatherRows, ReleaseBuffers, ScatterRows
from tenure.core.rows.events import ConsumeRequested, PolicyRegistered, SavePublished, StepConsumed
from tenure.core.rows.machine import transition
from tenure.core.rows.state import RowState
from tenure.core.schemas import SCHEMA_VERSION, from_json, to_json

Said = tuple[Any, tuple[Any, ...]]

# --- Told events ----------------------------------------------------------------------------------------------------


class Machine:
    """The row machine itself."""

    def __init__(self, config: RowConfig, policy: RowPolicy) -> None:
        self.state = RowState.initial(config)
        self.told(PolicyRegistered(policy))

    def told(self, event: Any) -> Said:
        self.state, answer, commands = transition(self.state, event)
        return answer, commands

    def tell(self, event: Any) -> Said:
        return self.told(event)


class WaitsForNoHit(Machine):
    """A materialize gets its plan although a read is not done."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        is_early = isinstance(event, ConsumeRequested) and type(answer).__name__ == "Waiting"
        return (Done(), commands) if is_early else (answer, commands)


class ForgetsFences(Machine):
    """Scatters are ordered behind nothing."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        return answer, tuple(replace(each, after=()) if isinstance(each, ScatterRows) else each for each in commands)


class ForgetsTheThirdFence(Machine):
    """Scatters are ordered behind two gathers at most."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        return answer, tuple(
            replace(each, after=each.after[:2]) if isinstance(each, ScatterRows) else each for each in commands
        )


class ReleasesOne(Machine):
    """Of several buffers that are free at a time, one of each kind is given back."""

    kinds: ClassVar[tuple[str, ...]] = ("clones", "writes", "reads")

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        return answer, tuple(self._one(each) if isinstance(each, ReleaseBuffers) else each for each in commands)

    def _one(self, command: ReleaseBuffers) -> ReleaseBuffers:
        return replace(command, **{kind: getattr(command, kind)[:1] for kind in self.kinds})


class ReleasesOneClone(ReleasesOne):
    """Of several clones one."""

    kinds = ("clones",)


class ReleasesOneWrite(ReleasesOne):
    """Of the host rows of several writes those of one."""

    kinds = ("writes",)


class ReleasesOneRead(ReleasesOne):
    """Of the buffers of several reads one."""

    kinds = ("reads",)


class ConsumesTwice(Machine):
    """A step that is gone can be had again."""

    def tell(self, event: Any) -> Said:
        try:
            return self.told(event)
        except TenureError:
            if isinstance(event, StepConsumed):
                return Done(), ()
            raise


class WrongStep(Machine):
    """Steps have the numbers of their successors."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        if isinstance(answer, StepBegan) and answer.step is not None:
            answer = replace(answer, step=answer.step + 1)
        return answer, commands


class LosesCommand(Machine):
    """The copy of a page is never asked for."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        return answer, tuple(each for each in commands if not isinstance(each, CopyPage))


class RefusesNothing(Machine):
    """What breaks the contract is done, somehow."""

    def tell(self, event: Any) -> Said:
        try:
            return self.told(event)
        except TenureError:
            return Done(), ()


class RefusesByOneName(Machine):
    """All that is refused is refused alike."""

    def tell(self, event: Any) -> Said:
        try:
            return self.told(event)
        except TenureError:
            raise StepNotSavedError(1) from None


class RefusalChangesSomething(Machine):
    """What is refused twice is taken for what ends the step."""

    refused = 0

    def tell(self, event: Any) -> Said:
        try:
            return self.told(event)
        except TenureError:
            self.refused += 1
            self.state = self.state if self.refused % 7 else RowState.initial(self.state.tables.config)
            raise


class SwapsCommands(Machine):
    """The last command comes first."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        return answer, (*commands[-1:], *commands[:-1])


class ReadsTooMuch(Machine):
    """Gathers are a row too long."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        return answer, tuple(
            replace(each, num_rows=each.num_rows + 1) if isinstance(each, GatherRows) else each for each in commands
        )


class Falls(Machine):
    """It raises what is no refusal."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        if isinstance(answer, ConsumePlan):
            msg = "nobody thought of that"
            raise RuntimeError(msg)
        return answer, commands


class Remembers(Machine):
    """What one cache saved, the next one has saved too."""

    saved: Final[list[Any]] = []

    def __init__(self, config: RowConfig, policy: RowPolicy) -> None:
        super().__init__(config, policy)
        self.begun = len(self.saved)

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        if isinstance(answer, StepSaved):
            self.saved.append(event)
            answer = replace(answer, write=answer.write + min(self.begun, 1))
        return answer, commands


class Crashes(Machine):
    """The process ends at the first publication."""

    def tell(self, event: Any) -> Said:
        if isinstance(event, SavePublished):
            sys.exit(7)
        return self.told(event)


class Hangs(Machine):
    """Nothing is said any more at the first publication."""

    def tell(self, event: Any) -> Said:
        if isinstance(event, SavePublished):
            time.sleep(60)
        return self.told(event)


class Mumbles(Machine):
    """What it says is no line of the protocol."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        if isinstance(answer, SaveReserved):
            sys.stdout.write("ready\n")
        return answer, commands


def _writes(text: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(text)
    sys.stdout.flush()


class SaysNoUtf8(Machine):
    """What it says is no text."""

    def tell(self, event: Any) -> Said:
        _writes(b"\xff\xfe\n")
        return self.told(event)


class NeverEndsALine(Machine):
    """A line goes on for ever."""

    def tell(self, event: Any) -> Said:
        while True:
            _writes(b"x" * (1 << 20))


class LeavesItsOutput(Machine):
    """It ends, and a process that it started holds its output."""

    def tell(self, event: Any) -> Said:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(4)"])
        sys.exit(7)


class RefusesAndGoesOn(Machine):
    """A refusal stands twice."""

    def tell(self, event: Any) -> Said:
        try:
            return self.told(event)
        except TenureError:
            _writes(f"{_line('refused', error='X')}\n".encode())
            raise


class SaysEvents(Machine):
    """An answer goes on with an event."""

    def tell(self, event: Any) -> Said:
        answer, commands = self.told(event)
        _writes(f"{to_json(answer)}\n{to_json(event)}\n".encode())
        return answer, commands


class OfAnotherVersion(Machine):
    """Refusals are of a version that there is not."""

    def tell(self, event: Any) -> Said:
        try:
            return self.told(event)
        except TenureError:
            _writes(_line("refused", error="StepNotSavedError").replace(": 1", ": 99").encode() + b"\n")
            raise


class EndsInNoVersion(Machine):
    """The ends of replies have a version that is none."""

    def tell(self, event: Any) -> Said:
        answer, _ = self.told(event)
        _writes(f'{to_json(answer)}\n{{"version": "banana", "kind": "end"}}\n'.encode())
        return answer, ()


# --- With the calls of the facade -----------------------------------------------------------------------------------


class Facade(OutputCache):
    """The cache that ships, on the CPU."""

    def __init__(self, config: RowConfig, policy: RowPolicy) -> None:
        super().__init__(config, policy, device=CpuDevice(tensors="numpy"))


class KeepsLive(Facade):
    """A hit is what the cache was handed, not what it was when it was handed."""

    last: Any = None

    def save_outputs(self, hidden_states: Any, mm_outputs: Any = None, **more: Any) -> int:
        self.last = hidden_states
        return super().save_outputs(hidden_states, mm_outputs, **more)

    def materialize(self, step_id: int, req_ids: Any) -> Any:
        found: Any = super().materialize(step_id, req_ids)
        if found.hidden_states is not None and is_array(self.last):
            found = Found(dict.fromkeys(found.hidden_states, self.last), found.mm_outputs)
        return found


class Found(NamedTuple):
    """What a materialize returns."""

    hidden_states: Any
    mm_outputs: Any


class ServesAgain(Facade):
    """A step may be had as often as anybody likes."""

    def __init__(self, config: RowConfig, policy: RowPolicy) -> None:
        super().__init__(config, policy)
        self.had: dict[int, Any] = {}

    def materialize(self, step_id: int, req_ids: Any) -> Any:
        if step_id not in self.had:
            self.had[step_id] = super().materialize(step_id, req_ids)
        return self.had[step_id]


class DiscardsAnything(Facade):
    """A step that is gone, or never was, is discarded all the same."""

    def discard_step(self, step_id: int) -> None:
        try:
            super().discard_step(step_id)
        except TenureError:
            return


class TakesAnyStart(Facade):
    """Of a bad scheduler output the good part is taken."""

    def new_step_starts(self, changes: Any) -> StepBegan:
        changes = tuple(changes)
        try:
            return super().new_step_starts(changes)
        except TenureError:
            return super().new_step_starts(changes[:-1]) if changes else StepBegan(None, ())


class DropsNothing(Facade):
    """A step that is given up is saved as it was, and leaves its slots alone."""

    def drop_step(self, slots: Any = None) -> None:
        super().drop_step(())


class ServesNobody(Facade):
    """Whoever asks for a request whose hit has no rows consumes the step, and gets nothing."""

    def materialize(self, step_id: int, req_ids: Any) -> Any:
        try:
            return super().materialize(step_id, req_ids)
        except UnreadableHitError:
            return super().materialize(step_id, ())


class AlwaysResets(Facade):
    """A reset says that it was done, whatever it was."""

    def reset(self) -> bool:
        super().reset()
        return True


class ServesForEver(Facade):
    """A policy is taken when the cache is shut down."""

    def register_policy(self, policy: RowPolicy) -> None:
        try:
            super().register_policy(policy)
        except TenureError:
            return


class RaisesAnything(Facade):
    """An unknown step is a KeyError."""

    def materialize(self, step_id: int, req_ids: Any) -> Any:
        try:
            return super().materialize(step_id, req_ids)
        except TenureError as error:
            raise KeyError(step_id) from error


def _each(found: Any, change: Callable[[Any], Any]) -> Found:
    """Change every array that was handed out."""

    def of(rows: Any) -> Any:
        return {request: change(one) if is_array(one) and one.ndim else one for request, one in rows.items()}

    hidden = None if found.hidden_states is None else of(found.hidden_states)
    return Found(hidden, {name: of(rows) for name, rows in found.mm_outputs.items()})


class HandsOutNoRows(Facade):
    """What is handed out are zeros without a dimension."""

    def materialize(self, step_id: int, req_ids: Any) -> Any:
        return _each(super().materialize(step_id, req_ids), lambda rows: np.zeros((), rows.dtype))


class WritesOverRows(Facade):
    """Rows are handed out in memory that the next materialize uses again."""

    def __init__(self, config: RowConfig, policy: RowPolicy) -> None:
        super().__init__(config, policy)
        self.old: list[Any] = []

    def _lent(self, rows: Any) -> Any:
        self.old.append(rows.copy())
        return self.old[-1]

    def materialize(self, step_id: int, req_ids: Any) -> Any:
        for rows in self.old:
            rows[...] = 77
        self.old.clear()
        return _each(super().materialize(step_id, req_ids), self._lent)


class _Down(Facade):
    """A call that is refused when the cache is shut down is taken."""

    is_down = False

    def shutdown(self) -> None:
        self.is_down = True
        super().shutdown()


class SavesWhenDown(_Down):
    """Likewise a save."""

    def save_outputs(self, hidden_states: Any, mm_outputs: Any = None, **more: Any) -> int:
        return 1 if self.is_down else super().save_outputs(hidden_states, mm_outputs, **more)


class DropsWhenDown(_Down):
    """Likewise a step that is given up."""

    def drop_step(self, slots: Any = None) -> None:
        if not self.is_down:
            super().drop_step(slots)


class DiscardsWhenDown(_Down):
    """Likewise the discard of a step that there is not."""

    def discard_step(self, step_id: int) -> None:
        if not self.is_down:
            super().discard_step(step_id)


class ResetsWhenDown(_Down):
    """Likewise a reset while requests are live."""

    def reset(self) -> bool:
        return self.is_down or super().reset()


class BrokenCache(NamedTuple):
    """A fault, the check that must fail, and part of its message."""

    kind: Callable[[RowConfig, RowPolicy], Any]
    check: str
    words: str

    def make(self, options: Mapping[str, Any]) -> Any:
        """A cache that has it."""
        return self.kind(options["config"], options["policy"])


MACHINES: Final[Mapping[str, BrokenCache]] = MappingProxyType(
    {
        "a hit is readable too early": BrokenCache(WaitsForNoHit, "M1.all-edges", "it answers Done"),
        "fences are forgotten": BrokenCache(ForgetsFences, "M1.all-edges", "ScatterRows.after is ()"),
        "a third fence is forgotten": BrokenCache(ForgetsTheThirdFence, "M6.histories", "ScatterRows.after is"),
        "of several clones one is released": BrokenCache(ReleasesOneClone, "M6.histories", "ReleaseBuffers.clones is"),
        "of several writes one is released": BrokenCache(ReleasesOneWrite, "M6.histories", "ReleaseBuffers.writes is"),
        "of several reads one is released": BrokenCache(ReleasesOneRead, "M6.histories", "ReleaseBuffers.reads is"),
        "a step is consumed twice": BrokenCache(ConsumesTwice, "M2.refusals", "it answers Done()"),
        "a step has another number": BrokenCache(WrongStep, "M1.all-edges", "StepBegan.step is 2, and should be 1"),
        "a command is lost": BrokenCache(LosesCommand, "M1.all-edges", "and should CopyPage"),
        "nothing is refused": BrokenCache(RefusesNothing, "M2.refusals", "expected the refusal"),
        "refusals have one name": BrokenCache(RefusesByOneName, "M2.refusals", "it refuses with StepNotSavedError"),
        "a refusal changes something": BrokenCache(RefusalChangesSomething, "M2.refusals", "expected"),
        "strays are taken on walks": BrokenCache(RefusesNothing, "M4.walks", "expected the refusal"),
        "commands in another order": BrokenCache(SwapsCommands, "M1.all-edges", "it commands"),
        "a gather of one row too far": BrokenCache(
            ReadsTooMuch, "M1.all-edges", "GatherRows.num_rows is 2, and should be 1"
        ),
        "an exception": BrokenCache(Falls, "M1.all-edges", "it raised RuntimeError: nobody"),
        "the cache before is remembered": BrokenCache(
            Remembers, "M5.begins-anew", "StepSaved.write is 2, and should be 1"
        ),
    }
)
"""Told events in this process, by what is wrong."""
CHILDREN: Final[Mapping[str, BrokenCache]] = MappingProxyType(
    {
        "crashes": BrokenCache(Crashes, "M1.all-edges", "the child ended, with exit status 7"),
        "mumbles": BrokenCache(Mumbles, "M1.all-edges", "'ready', which is no line of the protocol"),
        "no UTF-8": BrokenCache(SaysNoUtf8, "M1.all-edges", "which is not UTF-8"),
        "a line without an end": BrokenCache(NeverEndsALine, "M1.all-edges", "which does not end"),
        "another holds its output": BrokenCache(LeavesItsOutput, "M1.all-edges", "ended, with exit status 7"),
        "refuses and goes on": BrokenCache(RefusesAndGoesOn, "M2.refusals", "should only be ended"),
        "says events": BrokenCache(SaysEvents, "M1.all-edges", "whose kind is 'event', not of answer"),
        "another version": BrokenCache(OfAnotherVersion, "M2.refusals", "whose version is 99, not 1"),
        "no version": BrokenCache(EndsInNoVersion, "M1.all-edges", "whose version is 'banana', not 1"),
        "loses": BrokenCache(LosesCommand, "M1.all-edges", "and should CopyPage"),
        "takes": BrokenCache(RefusesNothing, "M2.refusals", "expected the refusal"),
    }
)
"""Child processes, by what they do."""
FACADES: Final[Mapping[str, BrokenCache]] = MappingProxyType(
    {
        "rows of another forward pass": BrokenCache(KeepsLive, "F1.rows", "rows of request"),
        "a step is served again": BrokenCache(ServesAgain, "F2.consumed-once", "materialize is taken"),
        "any step is discarded": BrokenCache(DiscardsAnything, "F2.consumed-once", "discard_step is taken"),
        "an unknown step is a KeyError": BrokenCache(RaisesAnything, "F2.consumed-once", "raised KeyError"),
        "a bad start is taken in part": BrokenCache(TakesAnyStart, "F3.refusals", "new_step_starts is taken"),
        "a policy is taken late": BrokenCache(ServesForEver, "F3.refusals", "register_policy is taken"),
        "a dropped step leaves its slots": BrokenCache(DropsNothing, "F4.given-up", ""),
        "a hit without rows is consumed": BrokenCache(ServesNobody, "F4.given-up", "materialize is taken"),
        "a reset is always done": BrokenCache(AlwaysResets, "F5.reset", "reset returns True"),
        "no rows are handed out": BrokenCache(HandsOutNoRows, "F1.rows", "expected int32[12], found int32[]"),
        "rows are written over": BrokenCache(WritesOverRows, "F1.rows", "looked at again"),
        "a save behind the end": BrokenCache(SavesWhenDown, "F6.shutdown", "save_outputs is taken"),
        "a drop behind the end": BrokenCache(DropsWhenDown, "F6.shutdown", "drop_step is taken"),
        "a discard behind the end": BrokenCache(DiscardsWhenDown, "F6.shutdown", "discard_step is taken"),
        "a reset behind the end": BrokenCache(ResetsWhenDown, "F6.shutdown", "reset returns True"),
        "a policy is taken behind the end": BrokenCache(ServesForEver, "F6.shutdown", "register_policy is taken"),
    }
)
"""With the calls of the facade, by what is wrong."""


def _line(kind: str, **value: Any) -> str:
    return json.dumps({"version": SCHEMA_VERSION, "kind": kind, "value": value})


def main(fault: str) -> None:
    """Speak the protocol."""
    kind = Hangs if fault == "hangs" else CHILDREN[fault].kind
    cache: Any = None
    for text in sys.stdin:
        said = json.loads(text)
        lines: list[str] = []
        if said["kind"] == "begin":
            config, policy = (json.dumps(said["value"][name]) for name in ("config", "policy"))
            cache = kind(RowConfig.model_validate_json(config), RowPolicy.model_validate_json(policy))
        else:
            try:
                answer, commands = cache.tell(from_json(text))
                lines = [to_json(answer), *map(to_json, commands)]
            except TenureError as error:
                lines = [_line("refused", error=type(error).__name__)]
        sys.stdout.write("\n".join([*lines, _line("end")]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
