"""Count the shapes of the batches that Keras trains on, by the line of the script that calls fit."""

from __future__ import annotations

import collections
import threading
from typing import Counter

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Dataset, DType, Function, Result, Structure, TensorShape
from npu_shim.data.reading_call import current_reading_call

tf = tf_api.tf
_MAX_SHOWN = 4  # signatures of one call, in the summary


class SignatureCounts:
    """Counts of signatures, by the place in the script. Subclasses say what has the signatures."""

    _title, _noun = "", ""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = collections.defaultdict(collections.Counter)

    def changes(self) -> list[tuple[str, dict[str, int]]]:
        """Return the places for which the NPU compiles more than one graph, with the count of each signature."""
        return [(source, dict(counts)) for source, counts in self._counts.items() if self._is_change(counts)]

    def summary(self) -> str:
        """Return the changes as text, or an empty string if there is none."""
        lines = []
        for source, counts in self.changes():
            shown = "; ".join(f"({text}) {count:,}x" for text, count in list(counts.items())[:_MAX_SHOWN])
            hidden = f"; and {len(counts) - _MAX_SHOWN:,} more" if len(counts) > _MAX_SHOWN else ""
            lines.append(f"  {source}: {sum(counts.values()):,} {self._noun}: {shown}{hidden}")
        return "\n".join([f"npu_shim: {self._title}", *lines] if lines else [])

    def _is_change(self, counts: Counter[str]) -> bool:
        return len(counts) > 1


class FitWatch(SignatureCounts):
    """Count the signatures of training batches: the type and shape of each part.

    It counts ``Model.fit`` of data sets, arrays and generators, and ``Model.train_on_batch``. Batches of evaluation and
    prediction are not counted, nor are those that a tf.distribute strategy of TensorFlow distributes.
    """

    _title, _noun = "batches of Keras training. The NPU compiles a graph for each signature:", "batches"

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def count_and_iterate(self, dataset: Dataset, original: Function) -> Result:
        """Return an iterator of a dataset, which counts the batches if Keras asks for it to train."""
        source = _training_call_text() if tf.executing_eagerly() else None
        return original(dataset if source is None else self._with_counting_step(dataset, source))

    def count_call(self, data: Structure) -> None:
        """Count the data of a call of Keras' training function, if they are a batch and no iterator."""
        parts = [part for part in tf.nest.flatten(data) if hasattr(part, "dtype") and hasattr(part, "shape")]
        if not parts or not tf.executing_eagerly() or any(None in tuple(part.shape) for part in parts):
            return
        source = _training_call_text()
        if source is not None:
            self._count_shapes_and_warn(source, ", ".join(_spec_text(part.dtype, part.shape) for part in parts))

    def _with_counting_step(self, dataset: Dataset, source: str) -> Dataset:
        """Return the dataset with a step that counts its elements."""
        specs = tf.nest.flatten(dataset.element_spec)
        is_tuple = isinstance(dataset.element_spec, tuple)

        def note(*shapes: object) -> None:
            remaining = iter(shapes)
            texts = [
                _spec_text(spec.dtype, next(remaining)) if _is_dense(spec) else type(spec).__name__.replace("Spec", "")
                for spec in specs
            ]
            self._count_shapes_and_warn(source, ", ".join(texts))

        def counted(*element: Structure) -> Structure:
            shapes = [tf.shape(part) for part, spec in zip(tf.nest.flatten(element), specs) if _is_dense(spec)]
            tf.numpy_function(note, shapes, [])
            return element if is_tuple else element[0]

        return dataset.map(counted)

    def _count_shapes_and_warn(self, source: str, text: str) -> None:
        with self._lock:
            counts = self._counts[source]
            counts[text] += 1
            is_second = len(counts) == 2 and counts[text] == 1
            before = next(iter(counts))
        if is_second:
            tf_api.logging.warning(
                f"npu_shim: {source} trains on a batch of ({text}) after ({before}), and the NPU compiles a graph for "
                "each. Drop or pad the last batch: batch(n, drop_remainder=True), npu_shim.data. Reported once."
            )


def _is_dense(spec: Structure) -> bool:
    return isinstance(spec, tf.TensorSpec)


def _spec_text(dtype: DType, shape: TensorShape) -> str:
    return f"{getattr(dtype, 'name', dtype)} {[int(size) for size in shape]}"


def _training_call_text() -> str | None:
    """Return the method of Keras that trains now, with the line of the script that calls it; None if none does."""
    call = current_reading_call()
    return str(call) if call is not None and call.trains else None
