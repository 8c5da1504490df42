"""The ranges of predicted times: of the device by measured profiles, of a whole step by published ones."""

from __future__ import annotations

import json
import pkgutil
from typing import NamedTuple

from npu_shim.rehearsal.predict.prediction import Range


def range_of_device(seconds: float) -> Range:
    """Return seconds of ops with the range that held for 80 % of the profiles whose model the fit had not seen."""
    factor = json.loads(pkgutil.get_data(__name__, "op_times.json") or b"")["errors"]["one model"]["within_80"]
    return Range(seconds, seconds / factor, seconds * factor)


class StepRange(NamedTuple):
    """The range of a step by the published ones: docs/make_predictions.py fits it, step_range.json has it.

    Attributes:
        low, high: factors of the predicted time.
        added: seconds above them, of the host and the input, that a short step may take, too.
        steps, networks: the number of published ones.
        held: the share of steps inside the range that is fitted without their network.
    """

    low: float
    high: float
    added: float
    steps: int
    networks: int
    held: float

    def around(self, seconds: float) -> Range:
        """Return the predicted seconds of a step with the range."""
        return Range(seconds, self.low * seconds, self.high * seconds + self.added)


def shipped_step_range() -> StepRange:
    """Return the range that ships."""
    return StepRange(**json.loads(pkgutil.get_data(__name__, "step_range.json") or b""))
