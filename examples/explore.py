"""The explorer on a machine of one's own: two workers that raise a counter without a lock, and lose an update.

Run it: `python examples/explore.py`. It prints the shortest way to the lost update.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tenure.model_checks.explorer import Search, explore
from tenure.model_checks.explorer.toys import Quiet
from tenure.model_checks.model import Broken, Event, Judged, Taken

BEFORE, AFTER = -1, -2
State: TypeAlias = tuple[int, int, int]
"""The counter; then per worker what it read, or whether it is `BEFORE` its read or `AFTER` its write."""


class Counter(Quiet[State]):
    """Each of two workers reads the counter once, and then writes what it read plus one."""

    def initial(self) -> Iterable[State]:
        """Zero, and nobody has begun."""
        return [(0, BEFORE, BEFORE)]

    def events(self, state: State) -> Sequence[Event]:
        """The next move of each worker."""
        busy = [worker for worker in (1, 2) if state[worker] != AFTER]
        return [(f"worker {worker}", "reads" if state[worker] == BEFORE else "writes", worker) for worker in busy]

    def take(self, state: State, event: Event) -> Taken:
        """What that leads to."""
        worker = int(event[2])
        count, seen = state[0], state[worker]
        count, seen = (count, count) if event[1] == "reads" else (seen + 1, AFTER)
        return Taken((count, seen, state[2]) if worker == 1 else (count, state[1], seen))

    def encode(self, state: State) -> bytes:
        """No two states that differ are alike."""
        return repr(state).encode()

    def judge(self, state: State) -> Judged:
        """The rule: after two updates the counter is two."""
        is_lost = state[1:] == (AFTER, AFTER) and state[0] != 2
        return Judged(broken=(Broken("no update is lost", f"{state[0]} after two updates"),) if is_lost else ())


def main() -> Search:
    search = explore(Counter())
    print(f"{search.distinct} states, {search.transitions} transitions")
    for example in search.broken:
        print(f"{example.rule!r} is broken: {example.found}")
        for actor, kind, _ in example.events:
            print("  ", actor, kind)
    return search


if __name__ == "__main__":
    main()
