"""Processes that are forked: a model, however it was made, is there from the beginning."""

import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias

Link: TypeAlias = "Connection[Any, Any]"
"""One end of a pipe between two processes."""


def fork(work: Callable[..., None], held: Sequence[Link], arguments: Sequence[object], name: str) -> "Forked":
    """Begin a process and a pipe to it.

    Args:
        work: what it does; is given its end of the pipe, the ends it must close at once, and the arguments. A pipe
            tells its end only when nobody holds the other side, and a forked process is born with a copy of each.
        held: this process' ends of the pipes to other processes.
        arguments: what else `work` is given.
        name: the name of the process.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, (here, *held), *arguments), name=name, daemon=True)
    with warnings.catch_warnings():
        # Newer Pythons warn of any thread, those of a numeric library too; the new process runs a model and no more.
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        process.start()
    there.close()
    return Forked(here, process)


class Forked:
    """A process and the pipe to it."""

    def __init__(self, link: Link, process: BaseProcess) -> None:
        self.link = link
        self.process = process

    def exit_code(self) -> int | None:
        """How it ended, waiting a little for that; negative: the signal."""
        self.process.join(10)
        return self.process.exitcode

    def end(self) -> None:
        """End it, whatever it is doing."""
        self.link.close()
        if self.process.is_alive():
            self.process.terminate()
        self.process.join()
        self.process.close()
