"""Generated traces: they are what the core that is there gives, they take every edge, and they find what is wrong."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner

from tenure.backends import cpu, fake
from tenure.backends.capabilities import ATTRIBUTE, Capability
from tenure.backends.conformance import (
    Maker,
    Verdict,
    check_device,
    machine_checks,
    replaying,
    trace_checks,
    traces,
)
from tenure.backends.conformance.caches import CacheCapability, check_cache
from tenure.backends.conformance.traces import (
    StaleTracesError,
    Told,
    Trace,
    TraceScope,
    edge_traces,
    pinned_traces,
)
from tenure.backends.cpu import CpuDevice
from tenure.backends.device import Device
from tenure.cli import main
from tenure.core.errors import StepNotSavedError, TenureError, UnknownStepError
from tenure.core.rows.answers import Done
from tenure.core.rows.events import ConsumeRequested, PolicyRegistered, RowEvent, RowsCopiedOut, StepConsumed
from tenure.core.rows.machine import Transition, transition
from tenure.core.rows.state import RowState
from tenure.model_checks.traces import __main__ as traces_command
from tenure.model_checks.traces.cover import cover
from tenure.model_checks.traces.edges import edge_scopes
from tenure.model_checks.traces.hunt import first_difference
from tenure.model_checks.traces.pinned import MACHINE_MUTANTS, pinned_scopes
from tenure.model_checks.traces.scopes import traced_scope
from tenure.model_checks.traces.trees import as_told, branches_of, first_state

SMALL = ("step-given-up", "scatters-in-order", "one-step-reset")
"""Scopes of a few hundred edges."""


def named(scopes: tuple[TraceScope, ...], *names: str) -> list[TraceScope]:
    return [each for each in scopes if each.name in names]


# --- The data -------------------------------------------------------------------------------------------------------


def test_small_scopes_are_written_as_they_stand_in_the_wheel() -> None:
    """Data and core cannot drift apart: a changed answer changes the graph, and so the traces."""
    assert named(edge_traces(), *SMALL) == sorted(
        edge_scopes(SMALL), key=lambda each: [one.name for one in edge_traces()].index(each.name)
    )


@pytest.mark.slow
def test_all_edge_traces_are_written_byte_for_byte_as_they_stand_in_the_wheel() -> None:
    """Whoever changes the core writes them anew."""
    assert (Path(str(traces.DATA)) / traces.EDGES).read_bytes() == traces.written(edge_scopes())


@pytest.mark.slow
def test_all_pinned_traces_are_written_byte_for_byte_as_they_stand_in_the_wheel() -> None:
    """A planted fault that is new has a trace, or the data is old."""
    assert (Path(str(traces.DATA)) / traces.PINNED).read_bytes() == traces.written(pinned_scopes())


def test_edge_traces_take_every_edge_that_their_scope_has() -> None:
    """An edge that no trace takes is one that no check sees."""
    for scope in edge_traces():
        assert set(range(scope.num_edges)) == {told.edge for trace in scope.traces for told in trace.told}
    assert 10**4 < sum(scope.num_edges for scope in edge_traces())


def test_traces_say_what_the_core_refuses_and_with_what() -> None:
    """For every event of scopes in which much is refused; whoever changes a refusal writes them anew."""
    strict = named(edge_traces(), "one-step-strays", "one-step-failing", "one-step-shut-down", *SMALL)
    for scope in (*strict, *pinned_traces()):
        for trace in scope.traces:
            assert trace.told == as_told(scope.config, ((told.edge, told.event) for told in trace.told))


def test_every_planted_fault_of_the_row_machine_has_its_trace() -> None:
    """So that a cache with that fault fails by it."""
    assert {each.id for each in MACHINE_MUTANTS} == {trace.name for each in pinned_traces() for trace in each.traces}


def test_traces_are_small_and_told_to_the_core_they_end_as_they_should() -> None:
    """All that a trace tells is taken or refused by a typed error; most of it is taken."""
    seen: Counter[str] = Counter()
    for scope in named(edge_traces(), *SMALL):
        for trace in scope.traces:
            state = transition(RowState.initial(scope.config), PolicyRegistered(scope.policy)).state
            for _, event, _ in trace.told:
                try:
                    state = transition(state, event).state
                    seen["taken"] += 1
                except TenureError:
                    seen["refused"] += 1

    assert seen["taken"] > 5 * seen["refused"] > 0
    assert 10**6 > sum(each.stat().st_size for each in Path(str(traces.DATA)).iterdir())


@pytest.mark.parametrize("fault", ["dropped-step-leaves-its-slots", "a16-reset-keeps-claims"])
def test_planted_fault_is_told_from_the_core_by_its_pinned_trace(fault: str) -> None:
    """The trace is as it stands in the wheel, and found by planting the fault again."""
    (mutant,) = (each for each in MACHINE_MUTANTS if each.id == fault)
    (scope,) = pinned_scopes([mutant])

    assert scope.traces == tuple(
        trace for each in pinned_traces() for trace in each.traces if (each.name, trace.name) == (scope.name, fault)
    )


def test_traces_of_other_rules_are_refused() -> None:
    """A stale file would hold devices to what is no longer asked of them."""
    lines = gzip.decompress((Path(str(traces.DATA)) / traces.PINNED).read_bytes()).splitlines()
    header = json.loads(lines[0]) | {"rules": "of yesterday"}

    with pytest.raises(StaleTracesError, match="make traces"):
        list(traces.read(gzip.compress(json.dumps(header).encode())))


def test_cover_takes_every_edge_of_a_graph_with_loops_and_dead_ends() -> None:
    """Greedy, and complete."""
    edges: list[list[tuple[tuple[Any, ...], int]]] = [[((), 0), ((), 1), ((), 2)], [((), 3), ((), 1)], [((), 1)], []]
    found = cover(edges)

    assert {(node, place) for node, each in enumerate(edges) for place in range(len(each))} == {
        step for trace in found for step in trace
    }
    for trace in found:
        at = 0
        for node, place in trace:
            assert at == node
            at = edges[node][place][1]


def test_first_difference_of_a_tree_is_found() -> None:
    """Where a machine says something else, the shortest way there is the one that is pinned."""
    traced = traced_scope("hit-behind-a-reset")
    branches = list(branches_of(traced.model(), traced.config, 20))
    changed = [*branches]
    changed[7] = changed[7]._replace(said=("something else",))

    assert -1 == first_difference(branches, first_state(traced.config))
    assert 7 == first_difference(changed, first_state(traced.config))


def test_command_writes_traces_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make traces` is this."""
    monkeypatch.setattr(traces_command, "edge_scopes", lambda: edge_scopes(["step-given-up"]))
    monkeypatch.setattr(traces_command, "pinned_scopes", lambda: iter(()))
    run = CliRunner().invoke(traces_command.main, ["--into", str(tmp_path)])

    assert 0 == run.exit_code, run.output
    assert "step-given-up: 78 edges" in run.output
    assert named(edge_traces(), "step-given-up") == list(traces.read((tmp_path / traces.EDGES).read_bytes()))
    assert [] == list(traces.read((tmp_path / traces.PINNED).read_bytes()))


# --- Devices --------------------------------------------------------------------------------------------------------


def edges_met(make: Maker, claimed: Collection[Capability]) -> tuple[int, int]:
    """By a device that passes: edges met, and edges open to it."""
    (result,) = check_device(make, claimed, only=["T1"]).results
    assert result.coverage is not None
    assert Verdict.PASS is result.verdict, result.message
    return result.coverage


def inline(options: Mapping[str, Any]) -> Device:
    del options
    return CpuDevice(worker=False, tensors="numpy")


def of_all(*, with_failures: bool) -> int:
    """Edges in the scopes that are gone through."""
    # As a test may have cut them short.
    scopes: tuple[TraceScope, ...] = getattr(trace_checks, edge_traces.__name__)()
    return sum(each.num_edges for each in scopes if with_failures or not each.has_failures)


def test_edges_with_failures_are_open_only_to_who_lets_them_be_timed() -> None:
    """A failure whose moment nobody decides is seen by chance, or never."""
    timed = [Capability.CONTROLLED, Capability.FAULTS]
    every, some = of_all(with_failures=True), of_all(with_failures=False)

    assert (every, every) == edges_met(fake.make_device, timed)
    assert (some, some) == edges_met(fake.make_device, [Capability.CONTROLLED])
    assert (some, some) == edges_met(inline, [Capability.FAULTS])
    assert some < every


@pytest.mark.slow
@pytest.mark.parametrize(("make", "with_failures"), [(fake.make_device, True), (cpu.make_device, False)])
def test_devices_that_ship_take_every_edge_that_is_open_to_them(make: Maker, with_failures: bool) -> None:
    """All scopes."""
    every = of_all(with_failures=with_failures)

    assert (every, every) == edges_met(make, getattr(make, ATTRIBUTE))


def refusing(state: RowState, event: RowEvent) -> Transition:
    """A core that does not take what builders say when they have copied a page out."""
    taken = transition(state, event)
    if isinstance(event, RowsCopiedOut):
        raise StepNotSavedError(event.step)
    return taken


def taking(state: RowState, event: RowEvent) -> Transition:
    """A core that has nothing against a materialize of a step that there is not."""
    try:
        return transition(state, event)
    except UnknownStepError:
        if not isinstance(event, ConsumeRequested):
            raise
        return Transition(state, Done(), ())


Core: TypeAlias = Callable[[RowState, RowEvent], Transition]
CORES: tuple[tuple[Core, str], ...] = (
    (refusing, "the trace says that it is taken, and by the core here it is refused with StepNotSavedError"),
    (taking, "the trace says that it is refused with UnknownStepError, and by the core here it is taken"),
)


@pytest.mark.parametrize(("core", "words"), CORES)
def test_core_that_refuses_otherwise_than_the_trace_says_fails_on_a_device(
    core: Core, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else would show it: what is refused asks nothing of the device."""
    monkeypatch.setattr(replaying, "transition", core)
    (result,) = check_device(fake.make_device, only=["T1"]).results

    assert Verdict.FAIL is result.verdict
    assert words in result.message
    assert ", event " in result.message
    assert result.coverage is not None
    assert result.coverage.met < result.coverage.open


@pytest.mark.parametrize(("core", "words"), CORES)
def test_core_that_refuses_otherwise_than_the_trace_says_fails_with_a_cache_that_does_the_same(
    core: Core, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that are wrong alike agree, and only the trace tells."""

    class Alike:
        def __init__(self, options: Mapping[str, Any]) -> None:
            self.state = transition(RowState.initial(options["config"]), PolicyRegistered(options["policy"])).state

        def tell(self, event: RowEvent) -> tuple[Any, Any]:
            self.state, answer, commands = core(self.state, event)
            return answer, commands

    monkeypatch.setattr(machine_checks, "transition", core)
    results = check_cache(Alike, [CacheCapability.MACHINE], only=["M1", "M2"]).results
    messages = [each.message for each in results if each.verdict is Verdict.FAIL]

    assert any(words in each and ", event " in each for each in messages), messages


def test_an_edge_of_several_events_is_met_by_the_last() -> None:
    """One that is broken off is not."""
    trace = Trace("0", tuple(Told(edge, StepConsumed(1)) for edge in (3, 3, 5, 3)))

    assert [None, 3, 5, 3] == [trace.met_at(place) for place in range(4)]


def test_coverage_below_what_is_open_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that is left out is noticed, by its edges."""
    scope = named(edge_traces(), "step-given-up")[0]
    monkeypatch.setattr(trace_checks, "edge_traces", lambda: (scope._replace(traces=scope.traces[1:]),))
    (result,) = check_device(inline, [], only=["T1"]).results

    assert Verdict.FAIL is result.verdict
    assert f"of {scope.num_edges} open edges were met" in result.message


def test_command_shows_coverage(tmp_path: Path) -> None:
    """For a person and as JSON."""
    target = tmp_path / "out.json"
    run = CliRunner().invoke(
        main, ["conform", "tenure.backends.cpu:make_device", "--only", "T1", "--json", str(target)]
    )
    edges = of_all(with_failures=False)
    report: dict[str, Any] = json.loads(target.read_text())

    assert 0 == run.exit_code, run.output
    assert f"{edges} of {edges} open edges" in run.output
    assert {"met": edges, "open": edges} == report["checks"][0]["edges"]
    assert "--only T1.all-edges --seed 0 --capability async" in report["checks"][0]["repeat"]
