"""A folder of a reference with the outputs of one step, for tests that compare with it."""

from __future__ import annotations

from typing import Iterable

import numpy as np

from npu_shim.dumps.reference import Output
from npu_shim.dumps.reference_writer import Writer


def write(folder: str, outputs: Iterable[tuple[Output, np.ndarray]]) -> None:
    """Write the outputs of a step, in the order of the graph, and their index."""
    writer = Writer(folder)
    for place, (entry, array) in enumerate(outputs):
        writer.write_output(place, entry, array)
    writer.close()
