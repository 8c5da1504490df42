"""Draws how cost grows: with files, ranks, variables and elements, from the figures in results.json.

    python benchmarks/plots.py              writes benchmarks/plots/*.svg; needs matplotlib
    python benchmarks/plots.py --out DIR    writes them there

Both axes are logarithmic: cost that is proportional to what it grows with is a
straight line with slope one, and a constant cost is level.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import results

PLOTS = results.RESULTS.with_name("plots")
KEPT = ", memory kept"  # at the end of the name of a line: drawn as the line without it, but dashed

# By the name of a line: its points.
Lines = Dict[str, List[Tuple[float, float]]]


class Panel(NamedTuple):
    """One pair of axes."""

    title: str
    x: str
    y: str
    lines: Lines


def files() -> list[Panel]:
    """The migration tool on more and more files."""
    rows = results.kept("tool_growth")
    return [
        Panel(
            "Time",
            "files",
            "CPU seconds",
            {
                "convert_tf2npu": _points(rows, "files", "cpu_s"),
                "read, parse, write": _points(rows, "files", "floor_s"),
            },
        ),
        Panel("Memory", "files", "peak MB", {"convert_tf2npu": _points(rows, "files", "peak_mb")}),
    ]


def ranks() -> list[Panel]:
    """Steps and collectives on more and more ranks of one host."""
    steps = results.kept("ranks")
    sums: dict[str, Lines] = {"1 MB": {}, "16 MB": {}}
    for row in results.kept("collectives"):
        for engine, seconds in row["seconds"].items():
            if row["size"] in sums:
                sums[row["size"]].setdefault(engine, []).append((row["ranks"], seconds * 1e3))
    return [
        Panel(
            "A training step of the same work",
            "ranks",
            "ms",
            {
                "one process": _points(steps, "ranks", "one_process_s", 1e3),
                "the ranks": _points(steps, "ranks", "ranks_s", 1e3),
            },
        )
    ] + [Panel("All-reduce of " + size, "ranks", "ms", lines) for size, lines in sums.items()]


def scale() -> list[Panel]:
    """Steps on more and more ranks of one host, and what a model says of many hosts."""
    rows = results.kept("scale")
    steps = [row for row in rows if "step_s" in row]
    names = list(dict.fromkeys(row["model"] for row in rows if "model" in row))
    per_rank = [(row["ranks"], row["step_s"] / row["ranks"] * 1e3) for row in steps]
    return [Panel("A step, measured, by ranks", "ranks", "ms for each rank", {"the ranks": per_rank})] + [
        Panel(
            f"Calculated: {name}",
            "ranks",
            "ms",
            {
                form: _points([row for row in rows if row.get("model") == name], "ranks", f"{form}_s", 1e3)
                for form in ("ring", "tree", "hierarchical")
            },
        )
        for name in names
    ]


def variables() -> list[Panel]:
    """The same number of bytes in more and more gradients."""
    rows = results.kept("variables")
    return [
        Panel("One sum", "variables", "ms", {"fused": _points(rows, "variables", "seconds", 1e3)}),
        Panel(
            "Building the graph", "variables", "ms", {"all-reduce": _points(rows, "variables", "build_seconds", 1e3)}
        ),
    ]


def elements() -> list[Panel]:
    """Forward and backward of the ops that have kernels of their own, for more and more elements."""
    panels = []
    for op in ("gelu", "dropout"):
        rows = [row for row in results.kept(op) if (row["type"], row["shape"]) == ("float32", "static")]
        for version in sorted(
            {row["TensorFlow"] for row in rows}, key=lambda text: [int(part) for part in text.split(".")]
        ):
            lines: Lines = {}
            for row in rows:
                for name, seconds in row["both"].items() if row["TensorFlow"] == version else ():
                    note = KEPT if row["memory"] == "kept" else ""
                    lines.setdefault(name + note, []).append((row["elements"], seconds * 1e3))
            panels.append(Panel(f"{op}, TensorFlow {version}", "elements", "ms", lines))
    return panels


def _points(rows: list[dict[str, Any]], x: str, y: str, scale: float = 1.0) -> list[tuple[float, float]]:
    return [(row[x], row[y] * scale) for row in rows if y in row]


FIGURES: dict[str, Callable[[], list[Panel]]] = {
    "files": files,
    "ranks": ranks,
    "scale": scale,
    "variables": variables,
    "elements": elements,
}


def draw(panels: list[Panel], path: pathlib.Path) -> None:
    """One file for all panels; the same figures make the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": path.stem, "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullFormatter

    columns = min(len(panels), 4)
    figure, axes = pyplot.subplots(
        -(-len(panels) // columns), columns, squeeze=False, figsize=(3.6 * columns, 3.2 * -(-len(panels) // columns))
    )
    for axis, panel in zip(axes.flat, panels):
        names = sorted(name for name, points in panel.lines.items() if points)
        colours = {name: f"C{index}" for index, name in enumerate(name for name in names if not name.endswith(KEPT))}
        for name in names:
            axis.plot(
                *zip(*sorted(panel.lines[name])),
                marker=".",
                linewidth=1,
                label=name,
                color=colours.get(name.replace(KEPT, "")),
                linestyle="--" if name.endswith(KEPT) else "-",
            )
        axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, xscale="log", yscale="log")
        xs, ys = zip(*(point for points in panel.lines.values() for point in points))
        if len(set(xs)) < 5:
            axis.set_xticks(sorted(set(xs)), minor=False)
            axis.set_xticks([], minor=True)
        plain = FuncFormatter(lambda value, _: f"{value:g}")
        axis.xaxis.set_major_formatter(plain)
        axis.yaxis.set_major_formatter(plain)
        axis.yaxis.set_minor_formatter(plain if max(ys) < 10 * min(ys) else NullFormatter())
        axis.grid(True, linewidth=0.3)
        axis.legend(frameon=False, fontsize=6)
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    figure.tight_layout()
    figure.savefig(str(path), metadata={"Date": None})
    pyplot.close(figure)


def main(argv: list[str]) -> int:
    """Draws all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=PLOTS, help="the folder to write into (benchmarks/plots)")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, all_panels in FIGURES.items():
        panels = [panel for panel in all_panels() if any(panel.lines.values())]
        if panels:  # else nothing of it was measured yet
            draw(panels, args.out / (name + ".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
