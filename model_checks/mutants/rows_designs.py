"""Designs of the row machine that look right, planted."""

from typing import Final

from tenure.model_checks.mutants.mutant import Mutant
from tenure.model_checks.mutants.row_mutant import row_mutant

DESIGNS: Final = (
    row_mutant(
        "w01-planned-once",
        "settling",
        "np.array_equal(read.claims, claims)",
        "True",
        "same-step-hit",
        "R02",
        "A hit's read is planned at the start and never again.",
        "D01, W1, A01",
    ),
    row_mutant(
        "w02-one-claim-a-write",
        "claims",
        "    requests = [saved.batch[place] for place in having.tolist()]\n",
        "    requests = [saved.batch[place] for place in having.tolist()]\n"
        "    old = tables.chunks[0:]\n"
        "    for place, request in enumerate(requests):\n"
        "        if request in tables.open_write:\n"
        "            mine = old[CHUNK_WRITE] == tables.open_write[request]\n"
        "            claims[place] = old[CHUNK_CLAIM][mine][0]\n"
        "    for each in saved.deferred:\n"
        "        tables.newest[each.name][saved.slots] = np.repeat(claims, stops - starts)\n",
        "growing-deferred-write",
        "R16",
        "A growing deferred write has one claim number for all its chunks.",
        "W2",
    ),
    row_mutant(
        "w03-one-claim-a-step",
        "claims",
        "claims = np.arange(first, first + len(having), dtype=np.int64)",
        "claims = np.full(len(having), first, dtype=np.int64)",
        "one-write-a-request",
        "R16",
        "All deferred rows of a step have one claim.",
        "W3",
    ),
    row_mutant(
        "w04-preserves-what-looks-committed",
        "claims",
        "    # R21: what the step does not emit becomes ABSENT",
        "    looks = {name: tables.effective(name, np.arange(tables.num_slots)) for name in tables.newest}\n"
        "    for number, read in list(tables.reads.items()):\n"
        "        absent = looks[read.format.name][read.slots] != read.claims\n"
        "        edit.put(tables.reads, number, read._replace(claims=np.where(absent, -1, read.claims)))\n"
        "    # R21: what the step does not emit becomes ABSENT",
        "rows-that-look-absent",
        "R13",
        "Only rows that look committed are set aside.",
        "W4",
    ),
    row_mutant(
        "w05-raw-claims",
        "reads",
        "claims = tables.effective(name, hit.slots)",
        "claims = tables.newest[name][hit.slots]",
        "raw-claims-at-the-save",
        "R02",
        "A save compares raw claims instead of effective ones.",
        "W5",
    ),
    row_mutant(
        "w06-read-holds-nothing",
        "reads",
        "write._replace(readers=(*write.readers, number))",
        "write",
        "read-holds-buffers",
        "R13",
        "A read does not hold the buffers of the write that it reads.",
        "W6",
    ),
    row_mutant(
        "w07-page-free-when-asked-for",
        "consuming",
        "    saved = step.saved\n    assert saved is not None\n",
        "    saved = step.saved\n    assert saved is not None\n    step_lets_go(edit, step.page)\n",
        "page-under-a-reader",
        "R06",
        "The page is free as soon as its step is asked for.",
        "W7",
    ),
    row_mutant(
        "w08-running-read-forgotten",
        "reads",
        "    if READ_DROPS[read.phase] is ReadPhase.LEFT:\n"
        "        edit.put(tables.reads, number, read._replace(phase=ReadPhase.LEFT))\n"
        "        return\n",
        "    edit.remove(tables.running, number)\n",
        "running-read-is-dropped",
        "R23",
        "A dropped read that is running is forgotten.",
        "W8",
    ),
    row_mutant(
        "w09-never-saved",
        "starts",
        "    if tables.pending:\n",
        "    if tables.pending and tables.steps[tables.pending].phase is StepPhase.RESERVED:\n",
        "protocol-breaking",
        "R22",
        "A step that was started and never saved is no reason to refuse the next start.",
        "W9",
    ),
    row_mutant(
        "w10-reset-frees-pages",
        "resets",
        "write._replace(fenced=True))\n        return\n",
        "write._replace(fenced=True, page=-1))\n        edit.hold_page(write.page, (0, 0))\n        return\n",
        "reset-behind-a-write",
        "R24",
        "A reset frees the pages of copies that are still running.",
        "W10, A16",
    ),
    row_mutant(
        "w11-reset-looks-at-requests-only",
        "resets",
        "(tables.live or tables.steps)",
        "tables.live",
        "reset-with-a-step",
        "R24",
        "A reset looks at live requests only, not at steps.",
        "W11",
    ),
    row_mutant(
        "w12-scatters-in-any-order",
        "writes",
        "ScatterRows(edit.number(), Lane.POOL,",
        "ScatterRows(edit.number(), Lane.GATHER,",
        "scatters-in-order",
        "R20",
        "Scatters of one name run in no particular order.",
        "W12",
    ),
    row_mutant(
        "w13-reads-start-with-their-consumer",
        "reads",
        "def _schedule(edit: Edit, number: ReadId) -> None:\n",
        "def _schedule(edit: Edit, number: ReadId) -> None:\n    return\n",
        "same-step-hit",
        "R11",
        "Reads are started by nobody but their consumer.",
        "W13",
    ),
    Mutant(
        "w14-depth-equals-lag",
        "tenure.core.config",
        "if self.builder_lag_max >= self.pages:",
        "if self.builder_lag_max > self.pages:",
        "rows/builder-lag",
        "R07",
        "The staging pool may be as deep as its builders lag.",
        "W14",
    ),
    row_mutant(
        "w15-hole-costs-the-step",
        "settling",
        "        if verdict is not None:\n",
        "        if verdict is not None:\n"
        "            from tenure.core.errors import UnreadableHitError\n"
        "            raise UnreadableHitError(number, *verdict)\n",
        "hit-with-a-hole",
        "R14",
        "One unreadable hit makes the whole save raise.",
        "W15",
    ),
)
"""The fifteen designs that look right."""
