"""The rules of the row machine in words: what holds, what would go wrong without it, where it comes from."""

from typing import Final

from tenure.spec.rule import Rule, RuleKind

MANAGER: Final = "manager of the prefix cache of vLLM-Omni"
STRICT: Final = "the same, made strict where its manager leaves it to timing or to its callers"
OWN: Final = "found by exploring a small model of the rules: without it there is a counterexample"


def _rule(name: str, sentence: str, reason: str, source: str, kind: RuleKind, *also: RuleKind) -> Rule:
    return Rule(id=name, sentence=sentence, reason=reason, source=source, kind=kind, also=also)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "R01",
        "A step is consumed once, by the materialize that returns or by the discard; one that raises consumes nothing, "
        "and only requests of the save's batch can be asked for.",
        "Otherwise rows are delivered twice, or lost by a call that could have been mended.",
        MANAGER,
        "transition",
        "predicate",
        "facade",
    ),
    _rule(
        "R02",
        "A hit is read as its slots stand after the save of its own step: each row from where the newest claim that "
        "counts says, then the step's rows.",
        "Otherwise a request is served rows of an earlier tenant, a mixture, or zeros.",
        STRICT,
        "transition",
        "predicate",
        "interpreter",
        "executor",
    ),
    _rule(
        "R03",
        "What a name holds at a slot follows from its effective claim and the write of that claim: absent, in transit, "
        "committed or lost.",
        "Otherwise rows are served that are not there, or are there and never served.",
        MANAGER,
        "predicate",
    ),
    _rule(
        "R04",
        "Claims only grow, per name and slot and altogether, as do steps and all other numbers, also over a reset; no "
        "number is given out twice.",
        "Otherwise a late completion or a late reader takes a later row for its own.",
        STRICT,
        "transition",
        "predicate",
    ),
    _rule(
        "R05",
        "A write scatters exactly the rows whose newest claim is its own, in one lane with whatever else touches the "
        "pool.",
        "Otherwise a superseded row lands late, on top of its successor.",
        MANAGER,
        "transition",
        "interpreter",
    ),
    _rule(
        "R06",
        "A page is free exactly if it has no holder, is taken only when free, and is held by its step until the rows "
        "are copied out and by its write until that ends.",
        "Otherwise a materialize or a scatter takes the rows of a later step.",
        MANAGER,
        "predicate",
        "transition",
        "interpreter",
    ),
    _rule(
        "R07",
        "A wait ends after the configured time at the latest, with a typed error that names the steps not consumed, "
        "the open writes and what was waited for; trying again waits again.",
        "Otherwise an engine hangs, or cannot tell who hangs it.",
        MANAGER,
        "facade",
        "transition",
    ),
    _rule(
        "R08",
        "What is charged is the sum of the clones, each charged once and given back once, when its last holder lets "
        "go; only the clones of a single step may exceed the budget.",
        "Otherwise device memory leaks on paper, and saves block for ever, or it is used twice.",
        MANAGER,
        "predicate",
        "transition",
    ),
    _rule(
        "R09",
        "A write moves along its chain only, one phase at a time, by completions that name it; nothing leaves a "
        "terminal phase.",
        "Otherwise a completion is taken for another, and rows are served before they are there.",
        MANAGER,
        "transition",
        "predicate",
    ),
    _rule(
        "R10",
        "The end of a request, and a flush, queue its open deferred write and close it; immediate writes are never "
        "pending.",
        "Otherwise rows behind published hashes never reach the pool.",
        MANAGER,
        "predicate",
        "transition",
    ),
    _rule(
        "R11",
        "Whoever waits does so for what is open and will be brought without the waiter, and all work is given to a "
        "device, once; so that all ends if devices complete what they have.",
        "Otherwise everybody waits for somebody else.",
        OWN,
        "transition",
        "executor",
        "facade",
    ),
    _rule(
        "R12",
        "The first write that fails is the failure of the cache until a reset: nothing is started, saved or consumed, "
        "and its rows are never served.",
        "Otherwise rows behind published hashes are missing, and nobody is told.",
        MANAGER,
        "transition",
        "predicate",
        "facade",
    ),
    _rule(
        "R13",
        "A read that was planned finds its rows, whatever is claimed later: what a publication takes from it, by raw "
        "claims, is set aside, and a scatter waits for the reads that are running on its rows.",
        "Otherwise a reader that is late is served the next tenant.",
        OWN,
        "transition",
        "predicate",
        "interpreter",
    ),
    _rule(
        "R14",
        "Whether a hit can be read is judged at the save of its step and never again: hidden with a hole cannot, a mm "
        "name without a row gives zeros.",
        "Otherwise the same history is served or refused as timing will have it.",
        STRICT,
        "transition",
        "predicate",
    ),
    _rule(
        "R15",
        "Bad input is refused before anything changes; whoever is told to wait finds all as it was, but for a flush.",
        "Otherwise half a call stays behind, and the next one stumbles over it.",
        STRICT,
        "transition",
        "predicate",
    ),
    _rule(
        "R16",
        "A save gives the immediate rows one claim, and each request with deferred rows one more for the chunk that "
        "its open write takes.",
        "Otherwise a row is as old as the first chunk of its write, and a later tenancy hides it.",
        OWN,
        "transition",
    ),
    _rule(
        "R17",
        "The same events give the same answers, commands and states.",
        "Otherwise a run cannot be replayed, and what was explored is not what runs.",
        STRICT,
        "transition",
    ),
    _rule(
        "R18",
        "When every step is consumed, every request ended and every write and read run out, nothing is held.",
        "Otherwise something leaks with every request.",
        MANAGER,
        "predicate",
        "executor",
    ),
    _rule(
        "R19",
        "No lock is held across a wait, a copy, or an allocation of memory for rows.",
        "Otherwise one slow copy stops every caller.",
        MANAGER,
        "facade",
        "executor",
    ),
    _rule(
        "R20",
        "Commands carry the order they need: on no legal device do two of them touch the same rows at once, if one of "
        "them writes.",
        "Otherwise the result depends on the device.",
        OWN,
        "interpreter",
        "transition",
        "executor",
    ),
    _rule(
        "R21",
        "A row belongs to the computation of its slot: a step that computes a slot makes every name absent there that "
        "it does not emit.",
        "Otherwise a block that changed hands shows a row of its earlier tenant.",
        OWN,
        "transition",
    ),
    _rule(
        "R22",
        "A step with scheduled tokens is saved or given up before the next one starts.",
        "Otherwise its computation leaves an earlier tenant's rows to be served under a new hash.",
        OWN,
        "transition",
        "predicate",
    ),
    _rule(
        "R23",
        "A read that is dropped while it runs keeps its edges and its buffer until it ends, nothing is set aside for "
        "it, and every other dropped read is gone at once.",
        "Otherwise a buffer is used again, or a pool row written, under a running gather.",
        OWN,
        "transition",
        "predicate",
        "interpreter",
    ),
    _rule(
        "R24",
        "A reset is refused while it would forget a request or a step, unless a write failed; what a device is still "
        "at is fenced, and gives back what it holds when it ends, and nothing else.",
        "Otherwise an old copy or scatter runs over the rows of a new life.",
        OWN,
        "transition",
        "predicate",
        "interpreter",
    ),
)
