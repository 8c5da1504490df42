"""The report as text."""

from __future__ import annotations

from typing import Callable, Iterator, Sequence

from npu_shim.rehearsal.reports.half_rows import half_rows
from npu_shim.rehearsal.result import (
    AGREE,
    DIFFER,
    NOT_REPRODUCIBLE,
    Alone,
    Change,
    Departing,
    FirstDeparture,
    MeanBand,
    Result,
    RunPart,
    StreamPart,
)
from npu_shim.rehearsal.sections import first_names_text, table_lines

KINDS = ("recorded", "names", "values", "largest difference", "names that depart")  # heads of kinds()
_MOST = 12  # rows of a table
_FEW = 5
_VERDICTS = {
    AGREE: "The two scripts agree.",
    DIFFER: "The two scripts differ.",
    NOT_REPRODUCIBLE: "The original is not reproducible.",
}
_HALF_VERDICTS = {
    AGREE: "The {dtype} run is within the band of float32.",
    DIFFER: "The {dtype} run is beyond the band of float32.",
}
NOT_RUN_TEXT = "The comparison could not run to its end."


def to_text(result: Result) -> str:
    """Return the report as text that ends with a line feed."""
    return "\n".join(_report_lines(result)) + "\n"


def verdict_text(result: Result) -> str:
    """Return the verdict as a sentence, and the deliberate changes that both runs have."""
    if result.half and result.verdict in _HALF_VERDICTS:
        text = _HALF_VERDICTS[result.verdict].format(dtype=result.half.dtype)
    else:
        text = _VERDICTS.get(result.verdict, NOT_RUN_TEXT)
    text = " ".join([text, *result.forced_order[:1]])
    text += _checkpoints_sentence(result.original.restored, result.migrated.restored)
    changes = ". ".join(map(_change_text, result.deliberate))
    return f"{text} Deliberate: {changes}." if changes else text


def _checkpoints_sentence(original: Sequence[str], migrated: Sequence[str]) -> str:
    """Return a sentence about the checkpoints from which the scripts start, if any."""
    ours, theirs = (
        f"the checkpoint {first_names_text(paths)}" if paths else "no checkpoint" for paths in (original, migrated)
    )
    if original == migrated:
        return f" Both start from {ours}." if original else ""
    return f" The original starts from {ours}, the migrated script from {theirs}."


def _change_text(change: Change) -> str:
    """Return a deliberate change with its cost and its place."""
    return f"{change.code} " + ", ".join(filter(None, (change.change, change.cost, change.place)))


def side_names(result: Result) -> list[str]:
    """Return the names of the two runs: the scripts, or their precision."""
    return [result.original.precision or "original", result.migrated.precision or "migrated"]


def _report_lines(result: Result) -> Iterator[str]:
    names = side_names(result)
    yield from _table_lines(["", *names], run_rows(result))
    if result.metrics:
        yield from _table_lines(["metric", *names], metric_rows(result)[-_MOST:])
    if result.bands:
        yield from _band_lines(result.bands)
    elif result.streams:
        yield from _table_lines(KINDS, kind_rows(result.streams))
    for side, alone in (("original", result.only_original), ("migrated", result.only_migrated)):
        if alone:
            yield f"only in the {side} script: {first_names_text(list(map(full_name, alone)))}"
    if result.undetermined_variables:
        yield f"not compared, gradients are zero but for rounding: {first_names_text(result.undetermined_variables)}"
    for text in result.redefined:
        yield f"not compared: {text}"
    if result.enlarged_rounding:
        yield "rounding explains the differences: perturbed by it, the original departs from itself as far"
    if result.unsteady_prints:
        yield f"not compared, the original prints other numbers each time: {first_names_text(result.unsteady_prints)}"
    if result.first_departure:
        yield from _departure_lines(result.first_departure, names)
    if result.half:
        yield from (f"{name}: {text}" for name, text in half_rows(result.half))
    yield from result.problems
    yield verdict_text(result)


_PARTS: tuple[tuple[str, Callable[[RunPart], str]], ...] = (
    ("script", lambda part: part.script + (" (converted in memory)" if part.converted_in_memory else "")),
    ("ranks", lambda part: str(part.ranks)),
    ("exit code", lambda part: str(part.exit_code)),
    ("training steps", lambda part: str(part.steps)),
    ("seconds", lambda part: number_text(part.seconds, ".1f")),
    ("seconds per step", lambda part: number_text(part.seconds_per_step, ".4f")),
    ("peak memory", lambda part: "unknown" if part.peak_bytes is None else f"{part.peak_bytes / 1e6:.0f} MB"),
    ("TensorFlow, Python", lambda part: f"{part.tensorflow or 'unknown'}, {part.python or 'unknown'}"),
)


def run_rows(result: Result) -> list[list[str]]:
    """Return a row for each fact about the runs: its name, and its text for both."""
    return [[name, value(result.original), value(result.migrated)] for name, value in _PARTS]


def metric_rows(result: Result) -> list[list[str]]:
    """Return a row for each metric: its name and both values."""
    return [[metric.name, number_text(metric.original), number_text(metric.migrated)] for metric in result.metrics]


def number_text(value: float | None, form: str = ".8g") -> str:
    """Return a number as text; None stands for Inf or NaN."""
    return "-" if value is None else format(value, form)


def kind_rows(streams: Sequence[StreamPart]) -> list[list[str]]:
    """Return a row for each kind of value: its name, streams, values, largest difference, streams that depart."""
    rows = []
    for kind in dict.fromkeys(stream.kind for stream in streams):
        own = [stream for stream in streams if stream.kind == kind]
        differences = [stream.largest_difference for stream in own]
        finite = [value for value in differences if value is not None]
        largest = "-" if None in differences else f"{max(finite):.1e}"
        departs = sum(1 for stream in own if stream.first_departure_step is not None)
        rows.append([kind, str(len(own)), str(sum(stream.values_original for stream in own)), largest, str(departs)])
    return rows


def full_name(value: StreamPart | Departing | Alone | MeanBand) -> str:
    """Return kind and name of a value, such as "metric accuracy" or "loss"."""
    kind, name = value.kind, value.name
    return name if name.split(" ")[0] == kind else f"{kind} {name}"


def _band_lines(bands: Sequence[MeanBand]) -> Iterator[str]:
    rows = []
    for band in bands:
        values = [number_text(band.original, ".6g"), number_text(band.migrated, ".6g")]
        outside = "" if band.inside else "outside"
        rows.append([full_name(band), *values, number_text(band.band, ".2g"), outside])
    yield from _table_lines(["mean over the seeds", "original", "migrated", "99 % band", ""], rows)


def _departure_lines(first: FirstDeparture, names: list[str]) -> Iterator[str]:
    title = f"tensors that depart at step {first.step}, the first"
    yield from table_lines([departing_heads(title, names), *departing_rows(first)[:_MOST]])
    left = first.tensors_departing_there - _MOST
    if left > 0:
        yield f"and {left} more"
    yield ""
    rows = element_rows(first)
    if rows:
        yield from _table_lines([f"elements of {first.name}", *names], rows[:_FEW])


def _table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from (*table_lines([heads, *rows]), "")


def departing_heads(title: str, names: Sequence[str]) -> list[str]:
    """Return the heads of departing()."""
    return [title, "difference", "allowed", " and ".join(names)]


def departing_rows(first: FirstDeparture) -> list[list[str]]:
    """Return a row for each tensor that departs at the first departing step."""
    numbers = [(number_text(tensor.difference, ".1e"), number_text(tensor.allowed, ".1e")) for tensor in first.tensors]
    return [[full_name(tensor), *both, tensor.values] for tensor, both in zip(first.tensors, numbers)]


def element_rows(first: FirstDeparture) -> list[list[str]]:
    """Return a row for each element of the first departure that a result has: index and both values."""
    return [[str(element.index), element.original, element.migrated] for element in first.elements]
