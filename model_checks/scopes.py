"""All scopes there are, by family, and which of them a command line means.

A family is imported when it is asked for. One that cannot be imported hides no other, and is not passed over in
silence: in its place stands a scope that cannot be searched.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar, Final, get_args

from tenure.core.errors.base import ContractError
from tenure.core.errors.base import Scope as Damage
from tenure.model_checks.model import NOTHING, Marks, Model, Scope, ScopeSet
from tenure.spec.blocks.rules import RULES as BLOCK_RULES
from tenure.spec.joined.rules import RULES as JOINED_RULES
from tenure.spec.rows.rules import RULES as ROW_RULES
from tenure.spec.rule import Rule

MODULES: Final[dict[str, str]] = {
    family: f"tenure.model_checks.{family}.scopes" for family in ("blocks", "rows", "joined")
}
"""Where the scopes of each model stand."""
SETS: Final[tuple[str, ...]] = get_args(ScopeSet)
DEFAULT_SET: Final = "ci"
RULES: Final[tuple[Rule, ...]] = (*BLOCK_RULES, *ROW_RULES, *JOINED_RULES)
"""Every rule of every machine."""
RULES_BY_ID: Final = {rule.id: rule for rule in RULES}


@dataclass(eq=False)
class UnknownScopeError(ContractError):
    """There is no scope, set or model of this name; or no scope among those of the models that are asked for."""

    scope: ClassVar[Damage] = Damage.REQUEST
    name: str
    known: tuple[str, ...]
    models: tuple[str, ...] = ()

    def sentence(self) -> str:
        """The message."""
        if self.models:
            asked = ", ".join(self.models)
            return f"{self.name!r} has no scope of what is asked for, which is {asked}; leave the model out, or name it"
        near = get_close_matches(self.name, self.known, n=3, cutoff=0.5)
        hint = f"; near it: {', '.join(near)}" if near else ""
        return f"{self.name!r} is no model, set or scope{hint}; `tenure check --list` shows all"


@dataclass(frozen=True, slots=True)
class Family:
    """The scopes of one model.

    Attributes:
        claims: what all scopes of `ci` together must see.
        trouble: why its module cannot be imported; empty if it can.
    """

    name: str
    scopes: tuple[Scope, ...]
    claims: Marks
    trouble: str = ""


def family(name: str) -> Family:
    """The scopes of a model."""
    module = MODULES[name]
    try:
        found = import_module(module)
        return Family(name, tuple(found.SCOPES), frozenset(found.CLAIMS))
    except Exception as error:
        trouble = f"{module} cannot be imported: {type(error).__name__}: {error}"
        return Family(name, (_stand_in(name, trouble),), NOTHING, trouble)


def _stand_in(name: str, trouble: str) -> Scope:
    def make() -> Model[Any]:
        raise ImportError(trouble)

    sets: frozenset[ScopeSet] = frozenset(("smoke", "ci", "deep"))
    return Scope(f"{name}/import", "free", sets, {}, NOTHING, make, source=trouble, heavy=0)


def all_scopes() -> list[Scope]:
    """Every scope, family by family."""
    return [scope for name in MODULES for scope in family(name).scopes]


def scope_named(name: str) -> Scope:
    """The scope of a full name.

    Raises:
        UnknownScopeError: there is none.
    """
    model = name.split("/", 1)[0]
    if model in MODULES:
        of_model = family(model)
        found = [scope for scope in of_model.scopes if scope.name == name or of_model.trouble]
        if found:
            return found[0]
    raise UnknownScopeError(name, tuple(_names()))


def chosen(models: Sequence[str] = (), names: Sequence[str] = ()) -> list[Scope]:
    """The scopes that a command line means, each once, in the order of the families.

    Args:
        models: models, or full names of scopes.
        names: sets, full names, or names without their model; without any, `models` that are models mean those of
            their scopes that are in `ci`, and nothing at all means all of `ci`.

    Raises:
        UnknownScopeError: something that is none of these.
    """
    wanted_models = [model for model in models if "/" not in model]
    for model in wanted_models:
        if model not in MODULES:
            raise UnknownScopeError(model, tuple(_names()))
    single = {scope_named(model).name for model in models if "/" in model}
    families = wanted_models or list(MODULES)
    wanted = list(names) or ([] if single and not wanted_models else [DEFAULT_SET])
    within = [scope for name in families for scope in family(name).scopes]
    for name in wanted:
        meant = {scope.name for scope in _meant(name, within)}
        if wanted_models and not meant & {scope.name for scope in within}:
            raise UnknownScopeError(name, tuple(_names()), tuple(wanted_models))
        single |= meant
    return [scope for scope in all_scopes() if scope.name in single]


def _meant(name: str, within: Iterable[Scope]) -> list[Scope]:
    if name in SETS:
        return [scope for scope in within if name in scope.sets]
    if "/" in name:
        return [scope_named(name)]
    found = [scope for scope in within if scope.name.split("/", 1)[1] == name]
    if not found:
        raise UnknownScopeError(name, tuple(_names()))
    return found


def _names() -> Iterable[str]:
    yield from MODULES
    yield from SETS
    for scope in all_scopes():
        yield scope.name
        yield scope.name.split("/", 1)[1]


def claims_of(scopes: Iterable[Scope]) -> Marks | None:
    """What these scopes together must have seen, if all of `ci` is among them; else None: parts need not see all."""
    names = {scope.name for scope in scopes}
    if not names.issuperset(scope.name for scope in all_scopes() if DEFAULT_SET in scope.sets):
        return None
    return NOTHING.union(*(family(name).claims for name in MODULES))


def rule_named(name: str) -> Rule:
    """A rule by its id; for a rule of somebody's own machine one without words."""
    return RULES_BY_ID.get(name) or Rule(name, "", "", "", "predicate")
