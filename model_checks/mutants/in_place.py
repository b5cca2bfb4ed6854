"""A fault planted into a core that is imported already: the code of the functions that it changes is replaced.

A fresh process takes longer to import the core than most faults take to be found. Where a fault lies within functions,
a fork of a process that has imported everything gets their new code instead (`plant_in_place`). What runs while a
module is imported (a constant, a default, a table that a function fills) keeps what it was; a fault that survives in
such a fork has therefore to be tried in a fresh process before it is said to survive.
"""

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from inspect import CO_OPTIMIZED
from types import CodeType, FunctionType

from tenure.model_checks.mutants.mutant import changed_source


class NotInPlaceError(Exception):
    """A fault changes what its module does while it is imported, or code that no function has."""


def plant_in_place(module: str, old: str, new: str) -> int:
    """Let the functions of a module that is imported do what they would with `new` in place of `old`.

    Returns:
        How many functions have other code now.

    Raises:
        PlantingError: `old` does not stand in the module's source exactly once.
        NotInPlaceError: nothing is changed; the fault has to be planted before the module is imported.
    """
    spec = sys.modules[module].__spec__
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise NotInPlaceError(module)
    path = spec.loader.get_filename(module)
    source = spec.loader.get_data(path).decode("utf-8")
    before = compile(source, path, "exec", dont_inherit=True)
    after = compile(changed_source(source, module, old, new), path, "exec", dont_inherit=True)
    pairs = list(_changed(before, after))
    alive = _functions_of(path)
    found: list[tuple[FunctionType, CodeType]] = []
    for was, becomes in pairs:
        those = alive.get((was.co_qualname, was.co_firstlineno), [])
        if not those or was.co_freevars != becomes.co_freevars:
            raise NotInPlaceError(was.co_qualname)
        found += [(each, becomes) for each in those]
    for function, code in found:
        function.__code__ = code
    return len(found)


def _changed(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Functions whose code differs, as it was and as it becomes.

    Raises:
        NotInPlaceError: what differs runs while the module, or a class of it, is made.
    """
    if _is_function(before):
        if _essence(before) != _essence(after):
            yield before, after
        return
    if _own(before) != _own(after):
        raise NotInPlaceError(before.co_qualname)
    for was, becomes in zip(_nested(before), _nested(after), strict=True):
        if was.co_name.startswith("<") and _essence(was) != _essence(becomes):
            raise NotInPlaceError(was.co_qualname)
        yield from _changed(was, becomes)


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & CO_OPTIMIZED)


def _nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """What a piece of code does, but for what it makes functions and classes of; where it stands does not count."""
    # repr tells 1 from True and 0.0 from -0.0, which are equal.
    consts = tuple("code" if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return (
        code.co_code,
        consts,
        code.co_name,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_posonlyargcount,
        code.co_exceptiontable,
    )


def _essence(code: CodeType) -> tuple[object, ...]:
    """What a piece of code does, with all that is in it."""
    return (_own(code), *map(_essence, _nested(code)))


def _functions_of(path: str) -> dict[tuple[str, int], list[FunctionType]]:
    """The functions of a file that are alive, wherever they are kept, by name and first line."""
    found: dict[tuple[str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        # Not `isinstance`, which asks objects for their class, and some warn when they are asked.
        if type(each) is FunctionType and each.__code__.co_filename == path:
            found.setdefault((each.__code__.co_qualname, each.__code__.co_firstlineno), []).append(each)
    return found
