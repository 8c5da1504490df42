"""The report as JUnit XML, a test case for each kind of value, so that CI shows it."""

from __future__ import annotations

from typing import Iterator, NamedTuple
from xml.etree import ElementTree

from npu_shim.rehearsal.reports.text import full_name, number_text, to_text
from npu_shim.rehearsal.result import DIFFER, NOT_REPRODUCIBLE, NOT_RUN, Result

_AGREES = "migrated script agrees with the original"


class Case(NamedTuple):
    """A test case: its name, and the message of its failure, None if it passes; an error is a run that did not end."""

    name: str
    message: str | None
    element: str = "failure"
    seconds: float = 0.0


def to_junit(result: Result) -> str:
    """Return one test suite. A kind of value that departs is a failure; a run that did not end is an error."""
    cases = list(_test_cases(result))
    failed = [case.element for case in cases if case.message is not None]
    counts = {"tests": len(cases), "failures": failed.count("failure"), "errors": failed.count("error")}
    attributes = {"name": "npu-shim verify", **{name: str(number_of) for name, number_of in counts.items()}}
    suite = ElementTree.Element("testsuite", attributes)
    for case in cases:
        attributes = {"classname": "verify", "name": case.name, "time": f"{case.seconds:.3f}"}
        element = ElementTree.SubElement(suite, "testcase", attributes)
        if case.message is not None:
            ElementTree.SubElement(element, case.element, message=case.message)
    ElementTree.SubElement(suite, "system-out").text = to_text(result)
    text = ElementTree.tostring(suite, encoding="unicode").replace("<testcase", "\n<testcase")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _test_cases(result: Result) -> Iterator[Case]:
    for part, run in (("original", result.original), ("migrated", result.migrated)):
        name = f"{run.precision} run ends" if run.precision else f"{part} script runs"
        problem = None if run.completed else f"exit code {run.exit_code}, see {run.log}"
        yield Case(name, problem, "error", run.seconds or 0.0)
    if result.verdict == NOT_RUN:
        return
    for kind in dict.fromkeys(stream.kind for stream in result.streams):
        steps = [(stream.first_departure_step, stream.name) for stream in result.streams if stream.kind == kind]
        departing = sorted(departure for departure in steps if departure[0] is not None)
        yield Case(f"{kind} agrees", f"first at step {departing[0][0]}: {departing[0][1]}" if departing else None)
    for band in result.bands:
        values = [number_text(value, ".6g") for value in (band.original, band.migrated, band.band)]
        outside = "means {} and {}, band {}".format(*values)
        yield Case(f"{full_name(band)} is within its band", None if band.inside else outside)
    differs = result.verdict in (DIFFER, NOT_REPRODUCIBLE)
    name = f"{result.half.dtype} run is within the band of float32" if result.half else _AGREES
    yield Case(name, " ".join(result.problems) if differs else None)
