"""Dumps of another run on the device as the reference: where two runs differ, an operator is not repeatable."""

from __future__ import annotations

import numpy as np

from npu_shim.dumps import dump, files
from npu_shim.dumps.dump import DumpData
from npu_shim.dumps.reference import Output, Reference


class DeviceRun(Reference):
    """The outputs of a step of another run."""

    of_device = True

    def __init__(self, folder: str, dumps: list[tuple[files.DumpFile, DumpData]]) -> None:
        outputs, self._tensors = [], []
        for file, data in dumps:
            for index, tensor in enumerate(data.outputs):
                name, shape = data.op_name or file.op_name, list(tensor.original_shape)
                outputs.append(Output(name, index, file.path, file.op_type, dump.type_name(tensor), shape))
                self._tensors.append(tensor)
        super().__init__(folder, outputs, True)

    def load(self, place: int) -> np.ndarray:
        """Return the elements of an output.

        Raises:
            ValueError: its type or layout cannot be read.
        """
        return dump.original(self.outputs[place].file, self._tensors[place])


def steps(folder: str, problems: dict[str, str]) -> dict[int, Reference]:
    """Return the steps of a folder of dumps, nothing for a folder that has files of NumPy."""
    if next(files.below(folder, (".npy",)), None):
        return {}
    found = files.find(folder)[0]
    latest = files.latest(found) if found else []
    numbers = sorted({each.step for each in latest})
    return {
        number: DeviceRun(folder, dump.read_all([each for each in latest if each.step == number], problems))
        for number in numbers
    }
