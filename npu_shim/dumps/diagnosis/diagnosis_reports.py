"""The page that ``npu-shim diagnose`` ends with: cause, evidence, fix, stages. Each form is made from the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterator, Mapping

import npu_shim
from npu_shim.rehearsal.web import escape_html, page_html, section_html, verdict_html

if TYPE_CHECKING:
    from npu_shim.dumps.diagnosis.stage_results import Diagnosis

_VERDICTS = {
    "agrees": "The card agrees with the recording: there is no cause to look for.",
    "no cause found": "The card differs, and no stage found the cause.",
    "not run": "The script did not run to its end on the card.",
}


def to_text(result: Diagnosis) -> str:
    """Return the page as text that ends with a line feed."""
    return "\n".join(_text_lines(result)) + "\n"


def to_html(result: Diagnosis) -> str:
    """Return the page as HTML."""
    footer = f"npu-shim diagnose {npu_shim.__version__}"
    about = " ".join([result.script, *result.arguments])
    title = f"Diagnosis of {result.script}"
    return page_html(title, "Diagnosis on the card", [about, result.recording], _html_body(result), footer)


def _text_lines(result: Diagnosis) -> Iterator[str]:
    cause = result.cause
    yield f"cause: {cause.title}" if cause else _VERDICTS[result.verdict]
    if cause:
        yield from (f"  {line}" for line in cause.evidence)
        yield f"fix: {cause.fix}"
    yield ""
    for row in result.stages:
        yield f"{row.name}, {row.seconds:.0f} s: {row.sentence}"
        yield f"  {row.folder}"
    if result.findings and not cause:
        yield "findings of the migration tool in the script:"
        yield from (f"  {finding.place}: {finding.code} {finding.message}" for finding in result.findings)


def _html_body(result: Diagnosis) -> Iterator[str]:
    cause = result.cause
    state = "agree" if result.verdict == "agrees" else "differ"
    yield from verdict_html(state, cause.title if cause else _VERDICTS[result.verdict])
    if cause:
        yield "<h2>Evidence</h2>" + "".join(f"<p>{escape_html(line)}</p>" for line in cause.evidence)
        yield f"<h2>Fix</h2><p>{escape_html(cause.fix)}</p>"
    columns = {"stage": "name", "looks at": "title", "seconds": "seconds", "found": "sentence", "folder": "folder"}
    rows = [[str(getattr(row, name)) for name in columns.values()] for row in result.stages]
    yield section_html("Stages", list(columns), rows, (2,))
    findings = [[finding.code, finding.place, finding.message] for finding in result.findings]
    yield section_html("Findings of the migration tool", ("code", "place", "finding"), findings)


WRITERS: Mapping[str, Callable[[Diagnosis], str]] = {"diagnose.txt": to_text, "diagnose.html": to_html}
