"""The reports of ``npu-shim migrate``: text, JSON and one HTML page."""

from __future__ import annotations

from typing import Callable, Iterator, Mapping, Sequence

from npu_shim.distributed.ranktable.model import count_text
from npu_shim.rehearsal.migrating.migration import FACTS, SOURCE, TAKEN_BACK, Migration, Rewrite, UnconvertedPlace
from npu_shim.rehearsal.reports import text, to_json
from npu_shim.rehearsal.sections import table_lines
from npu_shim.rehearsal.web import page_html, section_html, verdict_html as sentences

_MOST = 30  # places that the text shows; the page has all
_BASIS = {SOURCE: "the source proves it", FACTS: "seen in {0}", TAKEN_BACK: "taken back"}


def to_text(result: Migration) -> str:
    """Return the report as text that ends with a line feed."""
    return "\n".join(_report_lines(result)) + "\n"


def _report_lines(result: Migration) -> Iterator[str]:
    yield from _summary_lines(result)
    ran, others = _split_by_reached(result.left)
    for title, places in (
        ("to change by hand, in code that ran", ran),
        ("to change by hand, not reached by the observed runs", others),
    ):
        if places:
            yield ""
            yield from table_lines([[title, "", ""], *([p.place_text, p.code, p.message] for p in places[:_MOST])])
            if len(places) > _MOST:
                yield f"and {count_text(len(places) - _MOST, 'other place')}, which the page lists"
    yield ""
    yield from result.notes
    yield from result.verified.problems
    yield text.verdict_text(result.verified)


def _summary_lines(result: Migration) -> Iterator[str]:
    kept = [rewrite for rewrite in result.rewrites if rewrite.basis != TAKEN_BACK]
    of_facts = sum(rewrite.basis == FACTS for rewrite in kept)
    ran, others = _split_by_reached(result.left)
    yield (
        f"{result.output}: {count_text(result.files, 'file')}, {result.changed_files} changed; "
        f"{count_text(len(kept), 'rewrite')}, {of_facts or 'none'} by what "
        f"{count_text(len(result.observed), 'observed run')} showed."
    )
    yield f"To change by hand: {count_text(len(ran), 'place')} in code that ran, {len(others)} not reached."


def _split_by_reached(places: Sequence[UnconvertedPlace]) -> tuple[list[UnconvertedPlace], list[UnconvertedPlace]]:
    return [place for place in places if place.reached], [place for place in places if not place.reached]


def to_html(result: Migration) -> str:
    """Return the page."""
    footer = f"npu-shim migrate {result.verified.tool_version}"
    about = [" ".join([result.script, *result.arguments]), f"migrated to {result.output}"]
    return page_html(f"Migration of {result.script}", "Migration of a program", about, _page_body(result), footer)


def _page_body(result: Migration) -> Iterator[str]:
    state = result.verified.verdict.replace(" ", "-")
    yield from sentences(
        state, text.verdict_text(result.verified), *_summary_lines(result), *result.notes, *result.verified.problems
    )
    ran, others = _split_by_reached(result.left)
    heads = ["place", "rule", "what to do"]
    for title, places in (("To change by hand, in code that ran", ran), ("To change by hand, not reached", others)):
        yield section_html(title, heads, [[place.place_text, place.code, place.message] for place in places])
    rows = [[rewrite.place_text, rewrite.code, rewrite.message, _basis_text(rewrite)] for rewrite in result.rewrites]
    yield section_html("Rewrites", ["place", "rule", "rewrite", "basis"], rows)
    observed = [
        [" ".join(run.command), run.tensorflow, run.python, str(run.steps), run.ended] for run in result.observed
    ]
    yield section_html("Observed runs", ["command", "TensorFlow", "Python", "training steps", "ended"], observed)
    yield section_html("Verification", ["", *text.side_names(result.verified)], text.run_rows(result.verified))


def _basis_text(rewrite: Rewrite) -> str:
    return _BASIS[rewrite.basis].format(count_text(rewrite.runs or 0, "run"))


WRITERS: Mapping[str, Callable[[Migration], str]] = {
    "migrate.txt": to_text,
    "migrate.json": lambda result: to_json(result.to_json()),
    "migrate.html": to_html,
}
