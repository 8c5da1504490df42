"""Profiles with a planted bottleneck: a balanced step, with one thing that costs time."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Callable, NamedTuple

from tests.profiles import card
from tests.profiles.card import Op, Step, balanced, idle, matmul, message

Make = Callable[[int], Step]


class Planted(NamedTuple):
    """A bottleneck.

    Attributes:
        id: of the finding.
        us: that it costs in a step, on average.
        make: the steps.
        text: in the evidence.
    """

    id: str
    us: float
    make: Make
    text: str = ""


def add(phase: str, *ops: Op) -> Make:
    """Return steps with further ops at the begin of a phase."""

    def make(number: int) -> Step:
        step = balanced()
        getattr(step, phase)[:0] = ops
        return step

    return make


def change(type: str, **changes: object) -> Make:
    """Return steps in which the ops of a type are different."""

    def make(number: int) -> Step:
        step = balanced()
        step.training = [replace(op, **changes) if op.type == type else op for op in step.training]  # type: ignore[arg-type]
        return step

    return make


def gaps(us: float) -> Make:
    """Return steps in which ops follow each other slowly."""

    def make(number: int) -> Step:
        step = balanced()
        step.training = [op if op.type else idle(us) for op in step.training]
        return step

    return make


def other_shapes(number: int) -> Step:
    """Return steps of which two have other shapes, and wait for the compiler."""
    step = balanced()
    if number in (4, 9):
        step.data[:1] = [idle(60000)]
        step.training = [replace(op, shapes=f"{number},1024") if op.type == "Relu" else op for op in step.training]
    return step


def checkpoint(number: int) -> Step:
    """Return steps of which one writes a checkpoint."""
    step = balanced()
    if number == 6:
        step.refresh.append(Op("save/SaveV2", "SaveV2", 50000, "AI_CPU"))
    return step


def ai_cpu(name: str, type: str, us: float, **changes: object) -> Op:
    """Return an op of the AI CPU."""
    return replace(Op(name, type, us, "AI_CPU", ratios=(0, 0, 0)), **changes)  # type: ignore[arg-type]


_DROPOUT = ("RandomUniform", "GreaterEqual", "Mul")
_GELU = ("Pow", "Mul", "Add", "Tanh")

PLANTED: dict[str, Planted] = {
    "slow input pipeline": Planted("data-bound", 3020, add("data", Op("GetNext_1", "GetNext", 3000, "AI_CPU"))),
    "slow dataset in a queue": Planted("data-bound", 2020, add("data", Op("q", "QueueDequeue", 2000, "AI_CPU")), "q"),
    "feed_dict": Planted("host-bound", 4040, add("data", idle(4000)), "idle before"),
    "py_function": Planted("host-bound", 2540, add("data", Op("augment", "PyFunc", 2500, "HOST")), "augment"),
    "Where": Planted(
        "ai-cpu", 2100, add("training", ai_cpu("boxes/Where", "Where", 2000), ai_cpu("u", "Unique", 100)), "Where"
    ),
    "strings": Planted("ai-cpu", 900, add("training", ai_cpu("hash", "StringToHashBucketFast", 900)), "hash"),
    "non-maximum suppression": Planted(
        "ai-cpu", 1500, add("training", ai_cpu("nms", "NonMaxSuppressionV3", 1500)), "nms"
    ),
    "format conversions": Planted(
        "format-conversion", 1200, add("training", *[Op(f"trans_TransData_{n}", "TransData", 60) for n in range(20)])
    ),
    "transposes": Planted("format-conversion", 800, add("training", Op("to_nchw", "Transpose", 800)), "to_nchw"),
    "casts": Planted("casts", 1030, add("training", *[Op(f"Cast_{n}", "Cast", 50) for n in range(20)])),
    "launch gaps": Planted("launch-gaps", 3200, gaps(80)),
    "many small ops": Planted(
        "small-ops",
        1600 + 80,
        add("training", *[part for n in range(400) for part in (Op(f"Add_{n}", "Add", 2), idle(2))]),
    ),
    "two shapes": Planted("recompile", 2 / 11 * 60000, other_shapes, "shapes"),
    "odd sizes": Planted(
        "matrix-sizes", 8000 * (1 - 0.2 / 0.8), change("MatMulV2", shapes="4096,1001;1001,1024", ratios=(0.2, 0, 0.6))
    ),
    "float32": Planted(
        "matrix-float32", 8000 * (1 - 0.25 / 0.8), change("MatMulV2", types="FLOAT;FLOAT", ratios=(0.25, 0, 0.6))
    ),
    "small batch": Planted(
        "matrix-batch", 8000 * (1 - 0.1 / 0.8), change("MatMulV2", shapes="16,1024;1024,1024", ratios=(0.1, 0, 0.9))
    ),
    "bad tiling": Planted("matrix-unit", 8000 * (1 - 0.3 / 0.8), change("MatMulV2", ratios=(0.3, 0, 0.9))),
    "one message": Planted("few-messages", 4000, lambda number: _messages(1, 4000)),
    "messages by the hundred": Planted("many-messages", 4000, lambda number: _messages(100, 40)),
    "no overlap": Planted("communication", 3000, lambda number: _messages(6, 500)),
    "summaries": Planted(
        "summaries", 700, add("refresh", ai_cpu("loss", "ScalarSummary", 400), ai_cpu("w", "HistogramSummary", 300))
    ),
    "checkpoint": Planted("summaries", 50000 / 11, checkpoint, "SaveV2"),
    "dropout": Planted(
        "dropout-gelu", 900, add("training", *[Op(f"d/dropout/{name}", name, 300) for name in _DROPOUT])
    ),
    "gelu": Planted("dropout-gelu", 1000, add("training", *[Op(f"dense/gelu/{name}", name, 250) for name in _GELU])),
    "float64": Planted("float64", 1200, add("training", Op("norm", "Mul", 1200, types="DOUBLE;DOUBLE")), "norm"),
    "copies": Planted("transfers", 1500, add("refresh", Op("", "N/A", 1500, "MEMCPY_ASYNC"))),
}


def _messages(number: int, us: float) -> Step:
    step = balanced()
    step.training = [op for op in step.training if op.core != "COMMUNICATION"]
    step.refresh[:0] = [message(f"allReduce_{place}", us, beside=False) for place in range(number)]
    return step


def slow_rank(root: pathlib.Path) -> float:
    """Write four ranks, of which the third computes longer; return what the others wait, in microseconds."""
    late = 3000.0
    for rank in range(4):

        def make(number: int, rank: int = rank) -> Step:
            step = _messages(1, 200 if rank == 2 else 200 + late)
            step.training.append(matmul("more", late) if rank == 2 else idle(0))
            return step

        card.write(root, card.run(make), device=rank)
    return late


def slow_link(root: pathlib.Path, export: str) -> float:
    """Write a rank that sends over a link of a tenth of the bandwidth; return what that costs, in microseconds.

    Args:
        root: folder of the profile.
        export: "base", or "timeline" or "messages" beside tables.
    """
    steps, size, usual = 12, 2e8, 20.0  # bytes, GB/s
    rank = card.run(lambda number: _messages(2, 6000), steps)
    slow = size / usual * 10 / 1000
    links = [*((0, target, size, size / usual / 1000) for target in (1, 2, 3)), (3, 0, size, slow)]
    if export == "base":
        card.write_database(root / "PROF_000001_1_A" / "msprof_20240101000000.db", rank, links)
    elif export == "messages":
        card.write_messages(card.write(root, rank), [(0, 0, 1e9, 1.0), *links])
    else:
        card.write_timeline(card.write(root, rank) / "msprof_20240101000000.json", rank, links)
    return (slow - size / usual / 1000) / (steps - 1)


def told_waits(root: pathlib.Path, cluster: bool) -> None:
    """Write three ranks that work equally long, and files that say how long the first two wait for the third."""
    for rank in range(3):
        card.write(root / f"rank_{rank}", card.run(lambda number: _messages(1, 4000)), device=rank)
    card.write_waits(root, (3.0, 2.0, 0.5), cluster)
