"""Trials in forks of one process that has imported everything: most faults are found before a core would be imported."""

from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from threading import Lock
from typing import Any

from tenure.model_checks.mutants.in_place import NotInPlaceError, plant_in_place
from tenure.model_checks.mutants.mutant import Mutant, PlantingError
from tenure.model_checks.mutants.trial import try_scope
from tenure.model_checks.scopes import UnknownScopeError


class Nursery:
    """Where trials are forked. Several threads may ask for one each."""

    def __init__(self) -> None:
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([__name__])
        self._lock = Lock()
        self._running: set[BaseProcess] = set()
        self._is_over = False

    def say(self, mutant: Mutant, budget_s: float, timeout_s: float) -> dict[str, Any] | None:
        """What a trial of the mutant's scope says with the fault planted in place; None where a fork cannot tell."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_try, args=(theirs, mutant, budget_s), daemon=True)
        with ours:
            with theirs, self._lock:
                if self._is_over:
                    return None
                _start(process)
                self._running.add(process)
            try:
                return ours.recv() if ours.poll(timeout_s) else None
            except EOFError:
                return None
            finally:
                with self._lock:
                    self._running.discard(process)
                process.kill()
                process.join()

    def end(self) -> None:
        """End all trials, and let none begin."""
        with self._lock:
            self._is_over = True
            for process in self._running:
                process.kill()


def _start(process: BaseProcess) -> None:
    # An interrupt of the terminal is for whoever asks, who then ends the trials; they, and what they are forked from,
    # inherit that it is blocked, and have no last words about it. Starting the tracker would unblock it.
    resource_tracker.ensure_running()
    before = pthread_sigmask(SIG_BLOCK, {SIGINT})
    try:
        process.start()
    finally:
        pthread_sigmask(SIG_SETMASK, before)


def _try(answer: Connection, mutant: Mutant, budget_s: float) -> None:
    try:
        plant_in_place(mutant.module, mutant.old, mutant.new)
        answer.send(try_scope(mutant.scope, budget_s, mutant.id))
    except (NotInPlaceError, PlantingError, UnknownScopeError):
        answer.send(None)
