"""Let tf.data and Keras read data in the same order in every run, and with the same random numbers."""

from __future__ import annotations

import inspect

import tensorflow as tf

from npu_shim._tensorflow import tf_data, tf_recording
from npu_shim._tensorflow.types import Dataset, DatasetOptions, Function, KerasModel, Result, Structure, Value
from npu_shim.rehearsal.recording import epochs, methods

_CALLS = ("fit", "fit_generator", "evaluate", "evaluate_generator", "predict", "predict_generator")
# Before TensorFlow 2.8, random ops of parallel calls draw from one generator in the order of their threads. Those of
# map_and_batch do so in all versions.
_PARALLEL_DRAWS = tuple(map(int, tf.__version__.split(".")[:2])) < (2, 8)


def make_data_deterministic() -> None:
    """Make data sets deterministic, and let one thread prepare the batches of a Keras Sequence."""

    def ordered(original: Function, dataset: Dataset, *args: object, **kwargs: object) -> Result:
        given = arguments_by_name(original, dataset, args, kwargs)
        function = given.get("map_func")
        if function is not None and epochs.is_order_of_keras_3(function):
            return epochs.continuing_orders(original, dataset, function)
        if given.get("deterministic") is not None:
            given["deterministic"] = True
        if _PARALLEL_DRAWS and original.__name__ == "map" and "num_parallel_calls" in given:
            given["num_parallel_calls"] = None
        return original(**given)

    def with_options(
        original: Function, dataset: Dataset, options: DatasetOptions, *args: object, **kwargs: object
    ) -> Result:
        name = "deterministic" if hasattr(options, "deterministic") else "experimental_deterministic"
        if getattr(options, name) is False:
            options = tf.data.Options().merge(options)
            setattr(options, name, True)
        return original(dataset, options, *args, **kwargs)

    def one_call(original: Function, dataset: Dataset, *args: object, **kwargs: object) -> Result:
        return original(**{**arguments_by_name(original, dataset, args, kwargs), "num_parallel_calls": 1})

    def interleave(original: Function, dataset: Dataset, *args: object, **kwargs: object) -> Result:
        return original(**{**arguments_by_name(original, dataset, args, kwargs), "sloppy": False})

    def call(original: Function, model: KerasModel, *args: object, **kwargs: object) -> Result:
        given = arguments_by_name(original, model, args, kwargs)
        if given.get("workers", 0) > 1 or given.get("use_multiprocessing"):
            given.update(workers=1, use_multiprocessing=False)
            return original(**given)
        return original(model, *args, **kwargs)

    methods.wrap_methods(tf.compat.v2.data.Dataset, ("map", "interleave", "batch", "padded_batch"), ordered)
    methods.wrap_methods(tf.compat.v2.data.Dataset, ("with_options",), with_options)
    methods.wrap_methods(tf_data.MAP_AND_BATCH, ("__init__",), one_call)
    methods.wrap_methods(tf_recording.ParallelInterleaveDataset, ("__init__",), interleave)
    methods.wrap_methods(tf.keras.Model, _CALLS, call)
    epochs.avoid_idle_iterators()
    sequence = getattr(tf.keras.utils, "PyDataset", None)  # of Keras 3
    if sequence is not None:
        sequence.workers = property(lambda _: 1, sequence.workers.fset)
        sequence.use_multiprocessing = property(lambda _: False, sequence.use_multiprocessing.fset)


def arguments_by_name(function: Function, owner: object, args: Structure, kwargs: Structure) -> dict[str, Value]:
    """Return the arguments of a call of a method by name; ``**kwargs`` of its signature are among them."""
    bound = inspect.signature(function).bind(owner, *args, **kwargs).arguments
    names = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD
    ]
    given = {name: value for name, value in bound.items() if name not in names}
    for name in names:
        given.update(bound.get(name, {}))
    return given
