"""Results as JUnit XML: a test case for every scope, and none is ever skipped."""

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from tenure.model_checks.explorer.results import ScopeResult
from tenure.model_checks.explorer.verdicts import Verdict


def junit_text(results: Iterable[ScopeResult], suite: str = "tenure check") -> str:
    """The XML: REFUTED is a failure, UNDETERMINED and BAD MODEL are errors."""
    found = list(results)
    seconds = [0.0 if result.search is None else result.search.seconds for result in found]
    root = ET.Element(
        "testsuite",
        name=suite,
        tests=str(len(found)),
        failures=str(sum(result.verdict is Verdict.REFUTED for result in found)),
        errors=str(sum(result.verdict in (Verdict.UNDETERMINED, Verdict.BAD_MODEL) for result in found)),
        skipped="0",
        time=f"{sum(seconds):.3f}",
    )
    for result, second in zip(found, seconds, strict=True):
        model, _, name = result.name.partition("/")
        case = ET.SubElement(root, "testcase", classname=model, name=name or model, time=f"{second:.3f}")
        if result.verdict is not Verdict.PROVED:
            kind = "failure" if result.verdict is Verdict.REFUTED else "error"
            message = result.reasons[0] if result.reasons else result.verdict.value
            trouble = ET.SubElement(case, kind, type=result.verdict.value, message=_plain(message))
            trouble.text = _plain("\n".join((*result.reasons, *_stories(result))))
        if result.search is not None:
            out = ET.SubElement(case, "system-out")
            out.text = f"{result.search.distinct} distinct states, {result.search.transitions} transitions"
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _stories(result: ScopeResult) -> Iterable[str]:
    for example in result.counterexamples:
        yield f"{example.rule}:"
        yield from (f"  {number}. {list(event)}" for number, event in enumerate(example.events, 1))
        yield from (f"  for ever: {list(event)}" for event in example.loop)


def _plain(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(letter if letter in "\n\t" or letter >= " " else "?" for letter in text)
