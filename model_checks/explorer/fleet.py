"""Several scopes: whole ones in processes of their own, the heaviest first; results in the order asked for."""

import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import TypeAlias

from tenure.model_checks.explorer.forks import Forked, Link, fork
from tenure.model_checks.explorer.results import ScopeResult
from tenure.model_checks.explorer.scopes import DEFAULT, Options, check_scope, unsearched
from tenure.model_checks.explorer.search import Progress
from tenure.model_checks.explorer.verdicts import Verdict
from tenure.model_checks.model import Scope

Done: TypeAlias = Callable[[ScopeResult], None]


def run_scopes(
    scopes: Sequence[Scope],
    workers: int = 1,
    options: Options = DEFAULT,
    *,
    progress: Progress | None = None,
    done: Done | None = None,
) -> list[ScopeResult]:
    """The verdict on every scope, in the order asked for.

    With one scope the processes go into its search; with several each is searched by one process.

    Args:
        scopes: what to search.
        workers: how many processes may work at a time.
        options: how.
        progress: is told how far every search has come.
        done: is told of every result as it comes.
    """
    if workers == 1 or len(scopes) < 2:
        results: list[ScopeResult] = []
        for scope in scopes:
            result = check_scope(scope, options, workers=workers, progress=progress)
            results.append(result)
            if done is not None:
                done(result)
        return results
    return _Fleet(scopes, options, progress, done).run(workers)


def _work(link: Link, others: Sequence[Link], scope: Scope, options: Options, is_watched: bool) -> None:
    """The life of a process: one scope."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        other.close()
    try:
        progress: Progress | None = (lambda snapshot: link.send(("progress", snapshot))) if is_watched else None
        link.send(("done", check_scope(scope, options, progress=progress)))
    except OSError:
        # There is nobody to hear it.
        os._exit(1)
    link.close()
    os._exit(0)


class _Fleet:
    """Processes, and the scopes they are at."""

    def __init__(self, scopes: Sequence[Scope], options: Options, progress: Progress | None, done: Done | None) -> None:
        self._scopes = scopes
        self._options = options
        self._progress = progress
        self._done = done
        # Stable: of scopes that weigh the same the first is begun first. The last of the list is next.
        self._waiting = sorted(range(len(scopes)), key=lambda place: -scopes[place].heavy)[::-1]
        self._busy: dict[Link, tuple[int, Forked]] = {}
        self._results: dict[int, ScopeResult] = {}

    def run(self, workers: int) -> list[ScopeResult]:
        """All of them."""
        try:
            while self._waiting or self._busy:
                while self._waiting and len(self._busy) < workers:
                    self._begin(self._waiting.pop())
                for link in wait(list(self._busy)):
                    assert isinstance(link, Connection)
                    self._hear(link)
        finally:
            for _, forked in self._busy.values():
                forked.end()
        return [self._results[place] for place in range(len(self._scopes))]

    def _begin(self, place: int) -> None:
        scope = self._scopes[place]
        forked = fork(_work, list(self._busy), (scope, self._options, self._progress is not None), scope.name)
        self._busy[forked.link] = (place, forked)

    def _hear(self, link: Link) -> None:
        place, forked = self._busy[link]
        try:
            said, what = link.recv()
        except (EOFError, OSError):
            scope = self._scopes[place]
            code = forked.exit_code() or 0
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            reason = f"the process that searched it ended early, by {how}; search it again"
            self._end(link, unsearched(scope, Verdict.UNDETERMINED, reason))
            return
        if said == "progress" and self._progress is not None:
            self._progress(what)
        elif said == "done":
            self._end(link, what)

    def _end(self, link: Link, result: ScopeResult) -> None:
        place, forked = self._busy.pop(link)
        forked.exit_code()
        forked.end()
        self._results[place] = result
        if self._done is not None:
            self._done(result)
