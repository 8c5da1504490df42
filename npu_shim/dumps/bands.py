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
from npu_shim.dumps.figures import difference_figures_of_tensors
from npu_shim.dumps.reference_writer import write_index
from npu_shim.rehearsal.comparing.half_band import ROUNDOFF, student_t_quantile


def add_bands_and_remove_perturbed_runs(folder: str, perturbed: Sequence[str], dtype: str) -> None:
    """Add the bands to the indexes of a reference, and remove the dumps of the perturbed runs.

    Args:
        folder: of the reference.
        perturbed: folders of the perturbed runs; one that is missing is left out.
        dtype: float16 or bfloat16.
    """
    runs = [reference.read_steps(path, {}) for path in perturbed if os.path.isdir(path)]
    for step, exact in reference.read_steps(folder, {}).items() if runs else ():
        for place, output in enumerate(exact.outputs):
            if output.dtype.startswith(("float", "bfloat", "complex")):
                distances = [_output_distance(exact, place, run.get(step)) for run in runs]
                mean = sum(distance * distance for distance in distances) / len(runs)
                band = student_t_quantile(len(runs)) * math.sqrt(mean) + ROUNDOFF[dtype]
                output.band = band if math.isfinite(band) else None
        write_index(exact.folder, exact.outputs)
    for path in filter(os.path.isdir, perturbed):
        shutil.rmtree(path)


def _output_distance(exact: reference.Reference, place: int, run: reference.Reference | None) -> float:
    """Return the distance of an output in a perturbed run; NaN if it is not there, or of another shape."""
    output = exact.outputs[place]
    other = run.position_of_output(output.op, output.output) if run else None
    if run is None or other is None:
        return math.nan
    ours, theirs = exact.load_output(place), run.load_output(other)
    return difference_figures_of_tensors(theirs, ours).relative_euclidean if ours.shape == theirs.shape else math.nan
