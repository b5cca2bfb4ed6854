"""One planted fault, and how it is planted: the source of one module, changed while it is first imported.

This module needs the standard library alone, and has to: importing `tenure` imports its core, and a fault can only be
planted before that. A fresh process therefore runs this file as a script:

    python model_checks/mutants/mutant.py MODULE OLD NEW TARGET [ARGUMENT...]

which plants the fault and then runs the module TARGET as `python -m TARGET ARGUMENT...` would.
"""

import importlib.abc
import importlib.machinery
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutant:
    """A core with one fault.

    Attributes:
        id: its name in tables and tests.
        module: what is changed, `tenure.core.blocks.leases`.
        old: text that stands in the module's source exactly once.
        new: what stands there instead.
        scope: the scope in which it must be refuted.
        rule: the rule by which.
        what: the fault in one sentence.
        source: the case it comes from, if it comes from one.
    """

    id: str
    module: str
    old: str
    new: str
    scope: str
    rule: str
    what: str
    source: str = ""


class PlantingError(Exception):
    """A fault cannot be planted: its module is imported already, or the text to change is not there exactly once."""


def changed_source(source: str, module: str, old: str, new: str) -> str:
    """The source of a module with a fault in it.

    Raises:
        PlantingError: the text is not there, or more than once.
    """
    count = source.count(old)
    if count != 1:
        msg = f"{count} times is {old!r} in {module}; a fault is planted where it stands exactly once"
        raise PlantingError(msg)
    return source.replace(old, new)


class _PlantedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from its source with a piece of text replaced; byte code of others is neither read nor written."""

    def __init__(self, fullname: str, path: str, old: str, new: str) -> None:
        super().__init__(fullname, path)
        self._old, self._new = old, new

    def get_code(self, fullname: str) -> CodeType:
        """The module's code, with the fault in it.

        Raises:
            PlantingError: the text is not there, or more than once.
        """
        path = self.get_filename(fullname)
        source = changed_source(self.get_data(path).decode("utf-8"), fullname, self._old, self._new)
        return compile(source, path, "exec", dont_inherit=True)


class _Planter(importlib.abc.MetaPathFinder):
    """Finds the module as everybody else does, and gives it another loader."""

    def __init__(self, module: str, old: str, new: str) -> None:
        self._module, self._old, self._new = module, old, new

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the faulty module; None for all others."""
        if fullname != self._module:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.origin is not None:
                spec.loader = _PlantedLoader(fullname, spec.origin, self._old, self._new)
                return spec
        return None


def plant(module: str, old: str, new: str) -> None:
    """Let `module`, when it is imported, have `new` in place of `old`.

    Raises:
        PlantingError: it is imported already. On import: `old` does not stand in it exactly once.
    """
    if module in sys.modules:
        msg = f"{module} is imported already; a fault is planted in a fresh process, before anything of tenure"
        raise PlantingError(msg)
    sys.meta_path.insert(0, _Planter(module, old, new))


def command_with(mutant: Mutant, target: str, *arguments: str) -> list[str]:
    """The command line that runs a module in a fresh process over the faulty core."""
    return [sys.executable, __file__, mutant.module, mutant.old, mutant.new, target, *arguments]


FIXED_ARGUMENTS: Final = 4
"""What the script takes before the arguments of its target."""


def main(arguments: Sequence[str]) -> None:
    """Plant a fault and run a module.

    Raises:
        PlantingError: too few arguments, or as in `plant`.
    """
    if len(arguments) < FIXED_ARGUMENTS:
        msg = f"{len(arguments)} arguments; MODULE OLD NEW TARGET are needed"
        raise PlantingError(msg)
    module, old, new, target, *rest = arguments
    # As a script, this file's folder is in front of the path; nothing is to be found there by a bare name.
    del sys.path[0]
    plant(module, old, new)
    sys.argv = [target, *rest]
    runpy.run_module(target, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
