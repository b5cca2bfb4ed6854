"""The toy `Slots` for Spin, whose count of states must be the same as ours.

One process, whose every option is one indivisible step from the same place, so that Spin's states are the toy's.
"""

from tenure.model_checks.explorer.toys import Slots


def slots_promela(model: Slots) -> str:
    """The model in Promela; check it without partial order reduction (`-DNOREDUCE`)."""
    slots, pages = model.slots, model.pages
    lines = [
        f"byte who[{slots}];",
        f"byte phase[{slots}];",
        f"byte filled[{slots * pages}];",
        "",
        "active proctype system() {",
        "  do",
    ]
    for slot in range(slots):
        every = range(pages)
        page = [f"filled[{slot * pages + place}]" for place in every]
        empty = [f"{name} = 0" for name in page]
        free = "; ".join([f"who[{slot}] = 0", f"phase[{slot}] = 0", *empty])
        taken = f"who[{slot}] != 0 && phase[{slot}]"
        for request in range(1, model.requests + 1):
            absent = " && ".join(f"who[{other}] != {request}" for other in range(slots))
            lines.append(_option(f"who[{slot}] == 0 && {absent}", f"who[{slot}] = {request}"))
        for place in every:
            issue = f"{taken} == {Slots.RUNNING} && {page[place]} == {Slots.IDLE}"
            lines.append(_option(issue, f"{page[place]} = {Slots.FLYING}"))
            complete = f"{taken} <= {Slots.DRAINING} && {page[place]} == {Slots.FLYING}"
            lines.append(_option(complete, f"{page[place]} = {Slots.FULL}"))
        full = " && ".join(f"{name} == {Slots.FULL}" for name in page)
        quiet = " && ".join(f"{name} != {Slots.FLYING}" for name in page)
        lines += [
            _option(f"{taken} == {Slots.RUNNING}", f"phase[{slot}] = {Slots.DRAINING}"),
            _option(f"{taken} == {Slots.RUNNING} && {full}", "; ".join([f"phase[{slot}] = {Slots.READY}", *empty])),
            _option(f"{taken} == {Slots.DRAINING} && {quiet}", free),
            _option(f"{taken} == {Slots.READY}", f"phase[{slot}] = {Slots.CONSUMED}"),
            _option(f"{taken} == {Slots.CONSUMED}", free),
        ]
    return "\n".join([*lines, "  od", "}", ""])


def _option(guard: str, effect: str) -> str:
    return f"  :: d_step {{ ({guard}) -> {effect} }}"
