"""The report as JUnit XML, a test case for each kind of value, so that CI shows it."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from npu_shim.rehearsal.reports.text import full_name, number, to_text
from npu_shim.rehearsal.result import DIFFER, NOT_REPRODUCIBLE, NOT_RUN, Result

_AGREES = "migrated script agrees with the original"


def to_junit(result: Result) -> str:
    """Return one test suite. A kind of value that departs is a failure; a run that did not end is an error."""
    cases, failures, errors = [], 0, 0
    for part in ("original", "migrated"):
        run = {"original": result.original, "migrated": result.migrated}[part]
        text = "" if run.completed else f"exit code {run.exit_code}, see {run.log}"
        errors += bool(text)
        cases.append(
            _case(
                f"{run.precision} run ends" if run.precision else f"{part} script runs",
                run.seconds or 0,
                "error" if text else "",
                text,
            )
        )
    if result.verdict != NOT_RUN:
        for kind in dict.fromkeys(stream.kind for stream in result.streams):
            own = [stream for stream in result.streams if stream.kind == kind]
            steps = [(stream.first_departure_step, stream.name) for stream in own]
            departing = sorted(departure for departure in steps if departure[0] is not None)
            text = f"first at step {departing[0][0]}: {departing[0][1]}" if departing else ""
            failures += bool(text)
            cases.append(_case(f"{kind} agrees", 0, "failure" if text else "", text))
        for band in result.bands:
            values = [number(value, ".6g") for value in (band.original, band.migrated, band.band)]
            text = "" if band.inside else "means {} and {}, band {}".format(*values)
            failures += bool(text)
            cases.append(_case(f"{full_name(band)} is within its band", 0, "failure" if text else "", text))
        differs = result.verdict in (DIFFER, NOT_REPRODUCIBLE)
        failures += differs
        text = " ".join(result.problems) if differs else ""
        name = f"{result.half.dtype} run is within the band of float32" if result.half else _AGREES
        cases.append(_case(name, 0, "failure" if differs else "", text))
    head = f'<testsuite name="npu-shim verify" tests="{len(cases)}" failures="{failures}" errors="{errors}">'
    output = f"<system-out>{escape(to_text(result))}</system-out>"
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, output, "</testsuite>", ""])


def _case(name: str, seconds: float, element: str, text: str) -> str:
    start = f'<testcase classname="verify" name={quoteattr(name)} time="{seconds:.3f}"'
    return f"{start}><{element} message={quoteattr(text)}/></testcase>" if element else f"{start}/>"
