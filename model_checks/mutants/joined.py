"""Faults of the joined cache."""

from typing import Final

from tenure.model_checks.mutants.mutant import Mutant

CORE: Final = "tenure.core.joined."


def _mutant(name: str, module: str, old: str, new: str, scope: str, rule: str, what: str, source: str = "") -> Mutant:
    return Mutant(name, CORE + module, old, new, f"joined/{scope}", rule, what, source)


JOINED_MUTANTS: Final = (
    _mutant(
        "visible-before-its-rows",
        "steps",
        '    if state.config.visibility == "computed":\n        return CacheTransition(replace(state, batch=(*state.batch, scheduled)), block_values.Done(), ())\n',
        "",
        "two-requests-computed",
        "X01",
        "A hash is visible when its tokens are scheduled, also where it should be when they are computed.",
        "B14",
    ),
    _mutant(
        "group-not-compared",
        "leases",
        "    return state.rows.tables.identities.get(block) == expected\n",
        "    found = state.rows.tables.identities.get(block)\n    return found is not None and found.hash == expected.hash\n",
        "colliding-hashes",
        "X05",
        "A block is shared by whoever has its hash, of whatever isolation group.",
        "B19",
    ),
    _mutant(
        "group-of-owed-rows-not-compared",
        "leases",
        "        return state.tracks[owed_by].group == expected.group\n",
        "        return True\n",
        "colliding-hashes-scheduled",
        "X05",
        "A block whose rows are still to come is shared by whoever has its hash, of whatever isolation group.",
        "B19",
    ),
    _mutant(
        "whole-prompt-is-a-hit",
        "leases",
        "    most = (lease.length - 1) // tables.block_size\n",
        "    most = lease.length // tables.block_size\n",
        "whole-prompt",
        "X01",
        "All of a prompt is to be shared, and no token is left with which a step would announce the hit.",
    ),
    _mutant(
        "adapter-not-compared",
        "leases",
        "repr((keys.isolation_group, keys.adapter))",
        "repr((keys.isolation_group,))",
        "adapters",
        "X05",
        "A block is shared by whoever has its hash, with whatever adapter its rows were computed.",
    ),
    _mutant(
        "owed-rows-abandoned",
        "leases",
        "            raise RowsOwedError(request, block, request)\n",
        "            pass\n",
        "two-requests-scheduled",
        "X04",
        "A request ends whose visible blocks have no rows yet.",
        "B14",
    ),
    _mutant(
        "ends-inside-its-step",
        "leases",
        "    if track.ahead:\n        raise RequestInStepError(request)\n",
        "",
        "one-request-twice",
        "R15",
        "A request gives up blocks that a started step computes.",
        "B09",
    ),
    _mutant(
        "reset-keeps-hashes",
        "resets",
        "    blocks, found = _without_content(blocks)\n    commands += found\n",
        "",
        "reset",
        "X01",
        "A reset forgets rows and leaves the hashes.",
        "A16",
    ),
    _mutant(
        "second-hit-of-a-dropped-step-is-lost",
        "steps",
        "    for request, was in started.hits:\n",
        "    for request, was in started.hits[:1]:\n",
        "hits-given-up",
        "X01",
        "Of a step that is given up only the first request announces its hit again.",
    ),
    _mutant(
        "content-not-told",
        "steps",
        "        computes += _completed(after, each)\n",
        "",
        "one-request-twice",
        "X01",
        "A publication does not say what its blocks hold.",
    ),
    _mutant(
        "hit-on-rows-that-nobody-computes",
        "steps",
        "        if track.hit:\n            _check_owed(state, each.request, lease, track)\n",
        "",
        "steps-given-up",
        "X01",
        "A step starts with a hit on rows that nobody in it computes.",
    ),
    _mutant(
        "slots-of-another-block",
        "steps",
        "        first = before // size\n        blocks",
        "        first = -(-before // size)\n        blocks",
        "in-chunks",
        "R15",
        "A chunk that begins inside a block goes to the block behind it.",
    ),
    # Only a scheduler that keeps to no protocol touches this guard.
    _mutant(
        "shares-what-it-asks-for",
        "leases",
        "            raise IsolationError(event.request, block, expected, state.rows.tables.identities.get(block))\n",
        "            pass\n",
        "protocol-breaking-scheduled",
        "X05",
        "Whoever asks to share more than it may is given another group's block.",
        "B19",
    ),
)
"""Every fault of the joined cache."""
