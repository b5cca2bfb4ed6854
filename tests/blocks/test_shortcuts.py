"""The short ways of decode steps and of computed prompts give what the long ways give, whatever is in force.

Every event is taken twice, by a machine as it ships and by one whose short ways are closed.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import pytest

from tenure.core.blocks import computed, steps
from tenure.core.blocks.hashing import IdentityKeys, chain_hash, local_hash
from tenure.core.blocks.values import (
    DependencySatisfied,
    Event,
    GrowthReady,
    GrowthScheduled,
    PublishStored,
    Sources,
    StepAppended,
    StepComputed,
    StoreSourcesSnapshotted,
    TokensComputed,
    WritesAuthorized,
)
from tenure.core.config import U32_MAX
from tenure.core.errors import OutputExhaustedError, TenureError, TokenRangeError
from tests.blocks.harness import Machine

STEPS: Final = 14
REQUESTS: Final = ("a", "b", "c")


class Drawn:
    """Numbers of a seed."""

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.default_rng(seed)

    def below(self, bound: int) -> int:
        """At least 0."""
        return int(self._numbers.integers(bound))

    def one_of(self, things: Sequence[Any]) -> Any:
        """Any of them."""
        return things[self.below(len(things))]


def nothing(*_: object) -> None:
    """In place of a short way that is not taken."""


def never(*_: object) -> bool:
    """In place of a question."""
    return False


def finalized(edit: Any, lease: Any) -> None:
    """The last token by the long way."""
    computed.finalize(edit, lease, lease.length - 1, lease.length)


def close_short_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on everything goes the long way."""
    monkeypatch.setattr(steps, "finalize_last", finalized)
    monkeypatch.setattr(steps, "_grow_one", nothing)
    monkeypatch.setattr(steps, "_are_tokens", never)
    monkeypatch.setattr(computed, "_complete_whole", nothing)


class Run:
    """One machine, and all that it answered.

    Attributes:
        said: answers, refusals, commands and the state behind each event.
    """

    def __init__(self, *, caching: bool, size: int) -> None:
        self.machine = Machine(24, size, caching=caching, kv_events=True, trace=True)
        self.said: list[object] = []

    def tell(self, event: Event) -> Any:
        """Take an event; None where it is refused."""
        try:
            answer = self.machine.tell(event)
        except TenureError as error:
            answer = None
            self.said.append(str(error))
        self.said += [answer, self.machine.take_events(), self.machine.view()]
        return answer


def lived(seed: int, size: int, *, caching: bool, options: dict[str, Any]) -> list[object]:
    """Three requests of one to five tokens that decode, with transfers that come and go beside them."""
    drawn, run = Drawn(seed), Run(caching=caching, size=size)
    machine = run.machine
    for place, request in enumerate(REQUESTS):
        prompt = [drawn.below(3) for _ in range(1 + drawn.below(5))]
        machine.open(request, prompt, 12 - 3 * place, planned=prompt[:2], **options)
        machine.allocate(request, len(prompt))
        run.tell(TokensComputed(request, 0, len(prompt)))
    dependencies: list[int] = []
    for number in range(STEPS):
        chosen = tuple(each for each in REQUESTS if drawn.below(4))
        if not drawn.below(4):
            _transfer(run, drawn, dependencies, 100 + number)
        given = tuple(drawn.one_of((0, 1, 2, U32_MAX)) for _ in chosen)
        run.tell(StepComputed(chosen, drawn.one_of((None, given))))
        grown = run.tell(GrowthScheduled(chosen))
        if isinstance(grown, GrowthReady):
            for fenced, fences in grown.dependencies:
                if drawn.below(2):
                    run.tell(WritesAuthorized(fenced, fences))
    return run.said


def _transfer(run: Run, drawn: Drawn, dependencies: list[int], number: int) -> None:
    """A snapshot is taken, attached to a transfer, or a transfer ends."""
    request = drawn.one_of(REQUESTS)
    if dependencies and not drawn.below(3):
        run.tell(DependencySatisfied(dependencies.pop()))
    elif run.machine.hashes(request)[0] is not None:
        answer = run.tell(StoreSourcesSnapshotted(request, (0,)))
        if isinstance(answer, Sources) and drawn.below(2):
            run.machine.attach(request, (0,), number)
            dependencies.append(number)


OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "no local hashes": {"retain_local_hashes": False},
    "tokens in events": {"emit_token_ids": True},
    "keys": {"keys": IdentityKeys(isolation_group="g")},
    "not in the cache": {"caching": False},
}


@pytest.mark.parametrize("what", OPTIONS)
def test_i27_i32_short_ways_of_decode_steps_change_nothing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers, refusals, KV events, traces and states: all are equal."""
    cases = [*product(range(6), (2, 3))]

    def all_lived() -> Iterator[list[object]]:
        for seed, size in cases:
            yield lived(seed, size, caching=what != "not in the cache", options=OPTIONS[what])

    short = [*all_lived()]
    close_short_ways(monkeypatch)

    for case, one, other in zip(cases, short, all_lived(), strict=True):
        assert one == other, case


def test_i27_names_of_decoded_blocks_are_those_of_a_prompt_with_the_same_tokens() -> None:
    """Block by block, with each parent; and a prompt that repeats the output finds all of it."""
    machine = Machine(16, 2, kv_events=True)
    machine.open("a", (1, 2, 3), 9, planned=())
    machine.allocate("a", 3)
    machine.tell(TokensComputed("a", 0, 3))
    tokens = [1, 2, 3]
    for token in (4, 0, U32_MAX, 7, 8, 9):
        machine.tell(StepComputed(("a",), (token,)))
        machine.tell(GrowthScheduled(("a",)))
        tokens.append(token)
    parent: int | None = None
    expected: list[tuple[int, int | None, int]] = []
    for start in range(0, 8, 2):
        local = local_hash(b"".join(each.to_bytes(4, "little") for each in tokens[start : start + 2]))
        expected.append((chain_hash(parent, local), parent, local))
        parent = chain_hash(parent, local)
    stored = [each for each in machine.take_events() if isinstance(each, PublishStored)]

    assert expected == [
        (block, each.parent_hash if place == 0 else each.block_hashes[place - 1], local)
        for each in stored
        for place, (block, local) in enumerate(zip(each.block_hashes, each.tokens_hashes, strict=True))
    ]
    machine.open("b", tokens[:8])
    assert tuple(block for block, _, _ in expected) == machine.hashes("b")
    machine.allocate("b", 8, reuse=4)
    assert machine.blocks("a")[:4] == machine.blocks("b")


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[object]:
    """A list that grows with every call of a function from now on."""
    calls: list[object] = []
    called: Callable[..., Any] = getattr(module, name)

    def counting(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return called(*given, **named)

    monkeypatch.setattr(module, name, counting)
    return calls


def test_short_ways_are_taken_where_nothing_is_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are what makes a decode step quick: three requests that decode never need the long way."""
    machine = Machine(24, 2)
    for request in REQUESTS:
        machine.open(request, (1, 2, 3, 4), 9)
        machine.allocate(request, 4)
        machine.tell(TokensComputed(request, 0, 4))
    machine.tell(StepComputed(REQUESTS, (0, 0, 0)))
    machine.tell(GrowthScheduled(REQUESTS))
    long_ways = [
        counted(monkeypatch, module, name)
        for module, name in ((computed, "finalize"), (steps, "grow"), (steps, "next_token"))
    ]
    for token in range(6):
        machine.tell(StepComputed(REQUESTS, (token, token, token)))
        machine.tell(GrowthScheduled(REQUESTS))

    assert not any(long_ways), [len(each) for each in long_ways]


@pytest.mark.parametrize("token", [-1, U32_MAX + 1])
def test_token_out_of_range_is_refused_whichever_request_it_is_for(token: int) -> None:
    """The bounds themselves are tokens."""
    machine = Machine(24, 2)
    for request in REQUESTS[:2]:
        machine.open(request, (1,), 2)
        machine.allocate(request, 1)
        machine.tell(TokensComputed(request, 0, 1))
    machine.refuses(StepComputed(("a", "b"), (0, token)), TokenRangeError)
    machine.refuses(StepComputed(("a", "b"), (token, 0)), TokenRangeError)

    assert StepAppended((0, U32_MAX)) == machine.tell(StepComputed(("a", "b"), (0, U32_MAX)))
    machine.tell(GrowthScheduled(("a", "b")))
    assert StepAppended((U32_MAX, 0)) == machine.tell(StepComputed(("a", "b"), (U32_MAX, 0)))
    machine.tell(GrowthScheduled(("a", "b")))
    machine.refuses(StepComputed(("a", "b"), (0, 0)), OutputExhaustedError)
