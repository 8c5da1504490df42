"""The band of each output of a reference: what it may depart by in 16 bits, from dumps of perturbed runs.

    band = t * sqrt(mean over the perturbed runs of d^2) + u

d is the relative Euclidean distance to the float32 run; t and u are those of rehearsal.comparing.half_band.
"""

from __future__ import annotations

import math
import os
import shutil
from typing import Sequence

from npu_shim.dumps import reference
from npu_shim.dumps.figures import compare
from npu_shim.dumps.writer import write_index
from npu_shim.rehearsal.comparing.half_band import ROUNDOFF, quantile


def add(folder: str, perturbed: Sequence[str], dtype: str) -> None:
    """Add the bands to the indexes of a reference, and remove the dumps of the perturbed runs.

    Args:
        folder: of the reference.
        perturbed: folders of the perturbed runs; one that is missing is left out.
        dtype: float16 or bfloat16.
    """
    present = [each for each in perturbed if os.path.isdir(each)]
    for step, path in reference.steps(folder).items() if present else ():
        exact = reference.read(path, {})
        runs = [reference.read(os.path.join(each, str(step)), {}) for each in present]
        for place, output in enumerate(exact.outputs):
            if not output.dtype.startswith(("float", "bfloat", "complex")):
                continue
            distances = [_distance(exact, place, run) for run in runs]
            band = quantile(len(runs)) * math.sqrt(sum(each * each for each in distances) / len(runs)) + ROUNDOFF[dtype]
            output.band = band if math.isfinite(band) else None
        write_index(path, exact.outputs)
    for each in present:
        shutil.rmtree(each)


def _distance(exact: reference.Reference, place: int, run: reference.Reference) -> float:
    """Return the distance of an output in a perturbed run; NaN if it is not there, or of another shape."""
    output = exact.outputs[place]
    other = run.place(output.op, output.output)
    if other is None:
        return math.nan
    ours, theirs = exact.load(place), run.load(other)
    return compare(theirs, ours).relative_euclidean if ours.shape == theirs.shape else math.nan
