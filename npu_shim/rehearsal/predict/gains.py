"""The seconds of a step that the advice of assess saves at most."""

from __future__ import annotations

import collections
import math
import re
from typing import Sequence

from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.sizes import element_count
from npu_shim.rehearsal.precision_modes import ALL_FORCED, MIXED
from npu_shim.rehearsal.predict.configuration_edit import FUNCTION, KERAS_SESSION
from npu_shim.rehearsal.predict.device_ops import Run
from npu_shim.rehearsal.predict.features import MATRIX
from npu_shim.rehearsal.predict.of_graph import Step, precision_mode
from npu_shim.rehearsal.predict.op_times import shipped_op_times
from npu_shim.rehearsal.predict.prediction import Gain

# A call of a session or function costs the host no more than this: the shortest published step without a loop on the
# device is 0.91 ms (Deep-SLR_ID2122 of Ascend/ModelZoo-TensorFlow). No public profile separates the host's part.
CALL_SECONDS = 0.9e-3
_LEAST = 0.001  # of the step on the device, below which a gain is not shown
_OF_CALLS = 0.05  # of a step that calls may take in a loop of steps, as in profile
_TILE = 16
LOOPS, PRECISION = "several steps in one call", "mixed precision"
SIZES, INPUT = "sizes that are multiples of 16", "a faster input pipeline"
_PAGES = {
    LOOPS: "performance.md#several-steps-in-one-call",
    PRECISION: "precision.md",
    SIZES: "performance.md#fix",
    INPUT: "performance.md#fix",
}
_OWN_OPS = {"npu_ops.dropout": "dropout", "npu_unary_ops.gelu": "gelu"}
_ANY = r"Cast|Mul|RealDiv|Add(V2|N)?|Sub|Neg|Sum|Tile|"
_PARTS = {
    "dropout": re.compile(_ANY + r"(Stateless)?Random\w*|Greater(Equal)?|Floor|Select(V2)?|Fill|ZerosLike"),
    "gelu": re.compile(_ANY + r"Erfc?|Tanh(Grad)?|Pow|Sqrt|Square|Exp|Log"),
}
_IMAGE = 4  # channels


def gains_of_step(step: Step, seconds: float, runs: Sequence[Run], by_run: Sequence[float], reads: float) -> list[Gain]:
    """Return the gains that count, the largest first.

    Args:
        step: that is predicted.
        seconds: of the step on the device.
        runs: of its ops.
        by_run: seconds of each of them.
        reads: seconds of the input pipeline for the batches of a step; 0 if they are not known.
    """
    products = [run for run in runs if MATRIX.search(run.op.type)]
    estimates = shipped_op_times().estimates([run.op for run in products], step.device)
    filling = (
        run.count * float(estimate.parts[2]) * _share_of_filling(step.flat.nodes, run)
        for run, estimate in zip(products, estimates)
    )
    saved = {
        LOOPS: CALL_SECONDS * (1 - 1 / steps_of_call(seconds)) if can_loop(step) else 0.0,
        PRECISION: seconds - in_mixed_precision(step).seconds() if can_mix(step) else 0.0,
        SIZES: sum(filling),
        INPUT: reads - seconds - host_seconds(step),
        **{name: _seconds_of_parts(step.flat.nodes, runs, by_run, word) for name, word in _OWN_OPS.items()},
    }
    gains = [Gain(advice, gain, _PAGES.get(advice, "porting.md")) for advice, gain in saved.items()]
    return sorted((gain for gain in gains if gain.seconds > _LEAST * seconds), key=lambda gain: -gain.seconds)


def host_seconds(step: Step) -> float:
    """Return what the host needs for a step at most: a call makes as many steps as the session's options say."""
    return CALL_SECONDS / int(step.parameters.get("iterations_per_loop") or 1)


def can_loop(step: Step) -> bool:
    """Return True if a call could make several steps: the device reads the data itself, and runs all of the step."""
    if step.trainer in (FUNCTION, KERAS_SESSION):
        return False
    reads = any(node.op.startswith("IteratorGetNext") for node in step.flat.nodes)
    parameters = step.parameters
    return reads and not parameters.get("mix_compile_mode") and int(parameters.get("iterations_per_loop") or 1) == 1


def steps_of_call(seconds: float) -> int:
    """Return the number of steps in a call with which calls take less than 5 % of a step on the device."""
    return max(1, math.ceil(CALL_SECONDS * (1 - _OF_CALLS) / (_OF_CALLS * seconds))) if seconds else 1


def can_mix(step: Step) -> bool:
    """Return True if the step computes in float32 what mixed precision computes in 16 bits."""
    mode = precision_mode(step.parameters, step.device.family)
    return "mix" not in mode and mode not in ALL_FORCED


def in_mixed_precision(step: Step) -> Step:
    """Return the step with mixed precision."""
    others = {name: value for name, value in step.parameters.items() if name != "precision_mode_v2"}
    return step._replace(parameters={**others, "precision_mode": MIXED})


def _share_of_filling(nodes: Sequence[Node], run: Run) -> float:
    """Return the share of its operations in which the matrix unit multiplies the zeros that fill sizes up to 16."""
    real = filled = 1.0
    for size in _sizes_of_matrices(nodes, run):
        real, filled = real * size, filled * _TILE * math.ceil(size / _TILE)
    return 1 - real / filled


def _sizes_of_matrices(nodes: Sequence[Node], run: Run) -> Sequence[float]:
    """Return rows, columns and the summed length of a product, or the channels of a filter but those of an image."""
    for node in (nodes[place] for place in run.nodes):
        if not MATRIX.search(node.op) or not node.inputs:
            continue
        shapes = [nodes[source].shapes[output] for source, output in node.inputs]
        if "Conv" in node.op:
            kernel = node.shapes[0] if "Filter" in node.op else shapes[1] if "Depthwise" not in node.op else None
            return [size for size in (kernel or ())[-2:] if size and size > _IMAGE]
        first, result = element_count(shapes[0]), element_count(node.shapes[0])
        rows, columns = (None, None, *(node.shapes[0] or ()))[-2:]
        if first and result and rows and columns:
            return [size for size in (rows, columns, first * columns // result) if size > 1]
    return ()


def _seconds_of_parts(nodes: Sequence[Node], runs: Sequence[Run], by_run: Sequence[float], word: str) -> float:
    """Return what the ops of a formula take more than one op of each phase would, by the scopes that name it."""
    scopes: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    for run, took in zip(runs, by_run):
        matches = [re.match(rf"(?:.*?/)??[^/]*{word}[^/]*", nodes[place].name, re.I) for place in run.nodes]
        is_part = all(_PARTS[word].fullmatch(nodes[place].op) for place in run.nodes)
        if is_part and matches and matches[0] and all(matches):
            scopes[matches[0][0], "AI CPU" if run.on_ai_cpu else run.phase].append(took)
    return sum(sum(took) - max(took) for took in scopes.values())
