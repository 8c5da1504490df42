"""Record the metrics, the number of batches and the predictions of Estimators."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from npu_shim._tensorflow.tf_estimator import estimator_class
from npu_shim._tensorflow.types import Estimator, Function, Result, Value
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import METRIC, PREDICTION
from npu_shim.rehearsal.recording.recorder import Watcher

_ROWS = 256  # predictions that are recorded together


def watch_estimators(recorder: Watcher) -> None:
    """Record ``evaluate`` and ``predict`` of all Estimators of this process, if TensorFlow has them."""

    def evaluate(original: Function, estimator: Estimator, *args: object, **kwargs: object) -> Result:
        with recorder.inside("evaluate") as outermost:
            result = original(estimator, *args, **kwargs)
        if outermost:
            recorder.record_values(METRIC, [(f"evaluate {name}", value) for name, value in sorted(result.items())])
        return result

    def predict(original: Function, estimator: Estimator, *args: object, **kwargs: object) -> Iterator[Value]:
        rows: list[Value] = []
        with recorder.inside("predict") as outermost:
            try:
                for row in original(estimator, *args, **kwargs):
                    rows.append(row)
                    if outermost and len(rows) == _ROWS:
                        _record_predictions(recorder, rows)
                    yield row
            finally:
                if outermost:
                    _record_predictions(recorder, rows)

    owner = estimator_class()
    for base in owner.__mro__[:-1] if owner else ():  # EstimatorV2 is the base class of Estimator
        methods.wrap_methods(base, ("evaluate",), evaluate)
        methods.wrap_methods(base, ("predict",), predict)


def _record_predictions(recorder: Watcher, rows: list[Value]) -> None:
    if rows:
        names = sorted(rows[0]) if isinstance(rows[0], dict) else [""]
        columns = [[row[name] if name else row for row in rows] for name in names]
        recorder.record_values(
            PREDICTION, [(f"predict {name}".strip(), np.asarray(c)) for name, c in zip(names, columns)]
        )
        rows.clear()
