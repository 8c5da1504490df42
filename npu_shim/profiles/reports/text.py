"""The page of a profile as text, and that of a comparison; the sections of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, NamedTuple, Sequence

from npu_shim.dumps.reports.text import columns

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_MOST = {"devices": 16, "problems": 12}
_WIDTH = 60  # of a name


class Section(NamedTuple):
    """A part of a page: a title, sentences, and a table with heads, rows, and the columns that are numbers."""

    title: str
    lines: Sequence[str]
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: Sequence[int] = ()


def short(name: str) -> str:
    """Return a name that fits in a column; its end says more than its beginning."""
    return name if len(name) <= _WIDTH else "..." + name[3 - _WIDTH :]


def percent(value: float | None) -> str:
    """Return a share as text, empty for none."""
    return "" if value is None else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Return milliseconds as text, empty for none."""
    return "" if value is None else f"{value:.3f}"


def _calls(value: float) -> str:
    return f"{value:.4g}"


def _probability(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _change(value: float | None) -> str:
    return "new" if value is None else f"{100 * value:+.1f} %"


def _parts(value: dict[str, float]) -> str:
    return ", ".join(f"{name} {ms:.3f}" for name, ms in value.items())


# head of a column -> key of its cells, and their format
_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "what": ("what", short), "why": ("why", short), "op": ("name", short), "of it": ("waits", _parts),
    "calls": ("calls", _calls), "steps": ("steps", format), "ms": ("ms", number), "bound ms": ("bound_ms", number),
    "step ms": ("mean_ms", number), "busy ms": ("busy_ms", number), "communication ms": ("communication_ms", number),
    "old ms": ("old_ms", number), "new ms": ("new_ms", number), "change": ("change", _change), "p": ("p", _probability),
    **{name: (name, percent) for name in ("share", "matrix", "vector", "memory")},
    **{name: (name, str) for name in ("phase", "type", "unit", "line", "device", "verdict")},
}  # fmt: skip
_TEXTS = (str, short, _parts)
_FIGURES = ("calls", "ms", "share", "matrix", "vector", "memory", "bound ms")
_EVIDENCE = ("what", "type", "line", "calls", "ms", "why")
_CHANGES = ("what", "old ms", "new ms", "change", "p", "verdict")
_PAGE = (
    ("the step waits for", "waits", ("what", "ms", "share")),
    ("phases", "phases", ("phase", "ms", "share", "of it")),
    ("devices", "devices", ("device", "steps", "step ms", "busy ms", "communication ms")),
    ("ops that cost most", "ops", ("op", "type", "line", *_FIGURES)),
    ("types that cost most", "types", ("type", "unit", *_FIGURES)),
)
_COMPARISON = (("waits", "waits", _CHANGES), ("phases", "phases", _CHANGES), ("types of ops", "types", _CHANGES))


def to_text(result: JsonObject) -> str:
    """Return the page of a profile, or of a comparison, as text that ends with a line feed."""
    lines = answers(result)
    for each in sections(result):
        lines += ["", each.title if each.title[0].isdigit() else f"{each.title}:", *each.lines]
        lines += columns(each.heads, each.rows) if each.rows else []
    return "\n".join(lines) + "\n"


def answers(result: JsonObject) -> list[str]:
    """Return the sentences that a page begins with."""
    step = result["step"]
    if not step:
        return ["no runs of ops: only sums by type can be read. Export op_summary with msprof --export=on"]
    if "old" in result:
        number_of = f"({step['new_steps']} and {step['old_steps']} steps)"
        took = f"{step['new_ms']:.3f} ms, before {step['old_ms']:.3f} ms"
        return [f"a step takes {took}: {step['verdict']} {number_of}"]
    takes = f"takes {step['mean_ms']:.3f} ms on device {result['device']}"
    if step["source"] == "the whole profile":
        first = f"the profile {takes}: no step trace, so it counts as one step"
    else:
        span = f"median {step['median_ms']:.3f}, {step['shortest_ms']:.3f} to {step['longest_ms']:.3f}"
        first = f"a step {takes}: {span}, {_steps(step['number'])} by {step['source']}"
        first += f", without {_steps(step['left_out'])} before them" if step["left_out"] else ""
    found = result["findings"]
    if not found:
        return [first, "no bottleneck costs 3 % of it"]
    return [first, f"first bottleneck: {found[0]['title']}, {_cost(found[0])}"]


def _steps(count: int) -> str:
    return f"{count} {'steps' if count > 1 else 'step'}"


def _cost(finding: JsonObject) -> str:
    return f"{number(finding['ms'])} ms, {percent(finding['share'])} of the step"


def sections(result: JsonObject) -> Iterator[Section]:
    """Yield the sections of a page."""
    for title, key, heads in _COMPARISON if "old" in result else _PAGE:
        rows = result[key]
        if len(rows) > (key == "devices"):
            yield _section(_first(title, key, rows), (), heads, rows[: _MOST.get(key)])
    for place, each in enumerate(result.get("findings", ()), 1):
        faster = f"; a fix makes the step at most {each['gain']:.2f} times as fast" if each["gain"] else ""
        title = f"{place}. {each['title']}: {_cost(each)} [{each['id']}]{faster}"
        yield _section(title, [f"   {each['fix']} ({each['see']})"], _EVIDENCE, each["evidence"])
    problems = result["problems"]
    if problems:
        lines = [f"  {each['file']}: {each['problem']}." for each in problems[: _MOST["problems"]]]
        yield Section(_first("files with problems", "problems", problems), lines)


def _first(title: str, key: str, rows: Sequence[JsonObject]) -> str:
    most = _MOST.get(key, len(rows))
    return f"{title}, the first {most} of {len(rows)}" if len(rows) > most else title


def _section(title: str, lines: Sequence[str], heads: Sequence[str], rows: Sequence[JsonObject]) -> Section:
    kinds = [_COLUMNS[head] for head in heads]
    numbers = [place for place, (_, write) in enumerate(kinds) if write not in _TEXTS]
    return Section(title, lines, heads, [[write(row[key]) for key, write in kinds] for row in rows], numbers)
