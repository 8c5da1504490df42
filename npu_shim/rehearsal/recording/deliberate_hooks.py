"""Note the deliberate changes of a migrated script while it runs, or make the same changes while the original runs."""

from __future__ import annotations

import inspect
import os
import sys
from collections import Counter
from typing import NamedTuple, Sequence

import tensorflow as tf

from npu_shim._tensorflow import (
    script_frames,
    tf_api,
    tf_data,
    tf_estimator,
    tf_graph,
    tf_op_creation,
    tf_recording,
)
from npu_shim._tensorflow.types import (
    Dataset,
    Estimator,
    Function,
    InputFn,
    Iterator,
    KerasLayer,
    KerasModel,
    KerasPolicy,
    Result,
    Value,
)
from npu_shim.data import batching, dropped_in_training, fit_on_full_batches, static_batch
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import (
    BATCH,
    FIT,
    GIVEN,
    INPUT_FN,
    LIBRARY_CODE,
    POLICY,
    POLICY_CODE,
    STATIC_INITIALIZER,
    TRAINING_BATCH,
)
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.settings import Changes

_STATIC_CODES = ("NPU109", "NPU114")
_INPUT_CODE = "NPU103"
_FIT_CODE = "NPU248"
_FLOAT32 = "both run in float32, and npu-shim verify --half compares the rest"
_LIBRARY = "both train with tf.keras, and --strict compares with the package"
_HALF = ("float16", "bfloat16")
_CALL = "npu_shim_batching_call"  # attribute of a dataset
_OF_KERAS = ("fit", "evaluate", "predict")


def watch_deliberate_changes(recorder: Recorder, changes: Changes) -> None:
    """Note the deliberate changes of this process, or make them.

    Args:
        recorder: its writer receives the events.
        changes: for the original, those that the migrated script has.
    """
    watch = _Changes(recorder, changes)
    methods.wrap_methods(tf.compat.v2.data.Dataset, ("batch", "padded_batch"), watch.batch_dataset)
    methods.wrap_methods(tf_data.MAP_AND_BATCH, ("__init__",), watch.batch_dataset)
    methods.wrap_methods(tf_api.v1.data.Iterator, ("make_initializer",), watch.make_initializer)
    setattr(dropped_in_training, "mark_as_dropping", watch.wrap_mark(dropped_in_training.mark_as_dropping))
    methods.wrap_methods(tf.keras.Model, ("fit",), watch.fit)
    setattr(fit_on_full_batches, "note_dropped", watch.note_dropped_rows)
    watch.watch_estimators()
    watch.note_keras_library()
    methods.wrap_methods(tf.keras.layers.Layer, ("add_weight",), watch.note_half_layer)
    if watch.to_float32:
        for owner in _policy_classes():
            methods.wrap_methods(owner, ("__init__",), watch.init_policy)


def _policy_classes() -> set[type]:
    """Return the classes of the policies of Keras."""
    home = getattr(tf.keras, "mixed_precision", None)
    classes = [getattr(module, "Policy", None) for module in (home, getattr(home, "experimental", None))]
    classes.append(getattr(home, "DTypePolicy", None))
    return {policy for policy in classes if isinstance(policy, type)}


class _BatchingCall(NamedTuple):
    """A call that makes batches.

    Attributes:
        function, number: of the script, and the number of the call in it.
        code, place: the rule that acts there, and the line; else two times "".
    """

    function: str
    number: int
    code: str
    place: str


class _Changes:
    def __init__(self, recorder: Recorder, changes: Changes) -> None:
        self._recorder = recorder
        self._places = changes.places
        self._batches, self._training_batches = changes.batches or (), changes.training_batches
        self._static_initializers = changes.static_initializers
        self._fits = changes.fits
        self._fit_calls: Counter[str] = Counter()  # function of the script -> its calls of fit so far
        self._fit: tuple[tuple[str, int], str] | None = None  # the running fit, and its line if it is given the change
        self._is_input_static = changes.input
        self._is_half = False  # noted already
        self._is_library_given = changes.library
        has_policies = hasattr(tf.keras.layers.Layer, "compute_dtype")  # not TensorFlow 1.15
        self.to_float32 = changes.float32 and POLICY_CODE in self._places and has_policies
        self._calls: Counter[str] = Counter()  # function of the script -> its batching calls so far
        self._initializers: Counter[str] = Counter()  # the same of its calls that make initializers
        self._folder = os.getcwd()  # the script may change it

    def batch_dataset(self, original: Function, owner: object, *args: object, **kwargs: object) -> Result:
        """Batch a dataset, without the last partial batch if the migrated script does so."""
        recorder = self._recorder
        with recorder.inside("batch") as outermost:
            if not outermost or recorder.is_inside(*_OF_KERAS):
                return original(owner, *args, **kwargs)
            call = inspect.signature(original).bind(owner, *args, **kwargs)
            function = tf_recording.script_function_name()
            self._calls[function] += 1
            key = function, self._calls[function]
            code, place = self._acting_rule_and_line(_STATIC_CODES)
            cost = None
            if _is_true(call.arguments.get("drop_remainder", False)):
                recorder.writer.write_event("deliberate", what=BATCH, function=key[0], number=key[1])
            elif code and (key in self._batches or key in self._training_batches):
                dataset = call.arguments.get("input_dataset", owner)
                cost = self._size_of_partial_batch(dataset, call.arguments.get("batch_size"))
            if cost is not None:
                self._record_given_change(code, place, cost)
                call.arguments["drop_remainder"] = key in self._batches
            result = original(*call.args, **call.kwargs)
            batched = owner if result is None else result  # of a method, or of __init__
            setattr(tf_data.unwrap_dataset(batched), _CALL, _BatchingCall(*key, code, place))
            if cost is not None and key not in self._batches:
                dropped_in_training.drop_in_training(batched)
            return result

    def make_initializer(
        self, original: Function, iterator: Iterator, dataset: Dataset, *args: object, **kwargs: object
    ) -> Result:
        """Begin a dataset with an iterator, without its partial batches if the migrated script does so."""
        function = tf_recording.script_function_name()
        self._initializers[function] += 1
        key = function, self._initializers[function]
        sources = tf_graph.reachable_nodes([tf_data.unwrap_dataset(dataset)], tf_data.dataset_inputs)
        calls: list[_BatchingCall] = [
            getattr(source, _CALL)
            for source in sources
            if hasattr(source, _CALL) and batching.has_dynamic_batch(source)
        ]
        acting = next((call for call in calls if call.code), None)
        if calls and not batching.has_dynamic_batch(dataset):
            self._recorder.writer.write_event("deliberate", what=STATIC_INITIALIZER, function=function, number=key[1])
        elif acting is not None and key in self._static_initializers:
            dataset = self._enforce_static_batches(dataset, acting.code, acting.place)
        return original(iterator, dataset, *args, **kwargs)

    def wrap_mark(self, original: Function) -> Function:
        """Note a dataset that drops its partial batches in training, or one that is made from such batches."""

        def mark(dataset: Dataset) -> None:
            for source in tf_graph.reachable_nodes([tf_data.unwrap_dataset(dataset)], _inputs_up_to_batches):
                call: _BatchingCall | None = getattr(source, _CALL, None)
                if call is not None:
                    self._recorder.writer.write_event(
                        "deliberate", what=TRAINING_BATCH, function=call.function, number=call.number
                    )
            original(dataset)

        return mark

    def fit(self, original: Function, model: KerasModel, *args: object, **kwargs: object) -> Result:
        """Train a model, without the partial batches of arrays if the migrated script does so."""
        if self._fit is not None or "shuffle" not in inspect.signature(original).parameters:
            return original(model, *args, **kwargs)
        call = inspect.signature(original).bind(model, *args, **kwargs)
        function = tf_recording.script_function_name()
        self._fit_calls[function] += 1
        key, place = (function, self._fit_calls[function]), ""
        if key in self._fits and call.arguments.get("shuffle", True) is True:
            code, place = self._acting_rule_and_line((_FIT_CODE,))
            if code:
                call.arguments["shuffle"] = fit_on_full_batches.full_batches()
        self._fit = key, place
        try:
            return original(*call.args, **call.kwargs)
        finally:
            self._fit = None

    def note_dropped_rows(self, rows: int, size: int) -> None:
        """Note that the running fit leaves out a partial batch in each epoch."""
        if self._fit is None:
            return
        (function, number), place = self._fit
        if place:
            self._record_given_change(_FIT_CODE, place, _cost_text(rows % size, rows, " of each epoch"))
        else:
            self._recorder.writer.write_event("deliberate", what=FIT, function=function, number=number)

    def _size_of_partial_batch(self, dataset: Dataset, size: Value) -> str | None:
        """Return how many examples a last partial batch has, as text: "" if unknown, None if there is no such batch."""
        if getattr(tf.compat.v1.get_default_graph(), "building_function", False) or tf.is_tensor(size):
            return ""
        with self._recorder.inside("evaluate"):  # the session that computes it is not recorded
            # In a scope of its own, so that the names of the script's ops stay.
            with tf_op_creation.suspend_hooks(), tf.compat.v1.name_scope("npu_shim_verify"):
                examples = tf_data.cardinality(dataset)
        if examples == tf_data.UNKNOWN_CARDINALITY:
            return ""
        lost = 0 if examples == tf_data.INFINITE_CARDINALITY else examples % int(size)
        if not lost:
            return None
        of_epoch = "" if _is_repeated(dataset) else " of each epoch"
        return _cost_text(lost, examples, of_epoch)

    def watch_estimators(self) -> None:
        """Note that an NPUEstimator makes its training input static, or do so in Estimators."""
        owner = tf_estimator.estimator_class()
        if owner is not None:
            from npu_shim.estimator import static_batches  # needs Estimators

            make = static_batches.enforce_static_batch
            setattr(static_batches, "enforce_static_batch", lambda dataset: make(self._note_dynamic_batches(dataset)))
        if owner is not None and self._is_input_static:
            for base in owner.__mro__[:-1]:
                methods.wrap_methods(base, ("_call_input_fn",), self._call_input_fn)

    def note_keras_library(self) -> None:
        """Note that the script takes tf.keras in place of the package keras, or in the end that it has that package."""
        if self._is_library_given:
            path, line, _ = self._places[LIBRARY_CODE][0]
            self._record_given_change(LIBRARY_CODE, f"{path}:{line}", _LIBRARY)
        writer = self._recorder.writer
        self._recorder.at_end.append(lambda: writer.write_event("note", keras=True) if "keras" in sys.modules else None)

    def _note_dynamic_batches(self, dataset: Dataset) -> Dataset:
        if batching.has_dynamic_batch(dataset):
            self._recorder.writer.write_event("deliberate", what=INPUT_FN)
        return dataset

    def _call_input_fn(
        self, original: Function, estimator: Estimator, input_fn: InputFn, mode: str, *rest: object, **more: object
    ) -> Result:
        if mode != "train":
            return original(estimator, input_fn, mode, *rest, **more)

        def enforce_static_input(dataset: Dataset) -> Dataset:
            return self._enforce_static_batches(dataset, _INPUT_CODE, self._running_line())

        with tf_estimator.change_iterator_datasets(enforce_static_input):
            result = original(estimator, input_fn, mode, *rest, **more)
        return enforce_static_input(result) if isinstance(result, tf.compat.v2.data.Dataset) else result

    def _enforce_static_batches(self, dataset: Dataset, code: str, place: str) -> Dataset:
        steps = batching.find_batching_steps(dataset) if batching.has_dynamic_batch(dataset) else None
        costs = [self._size_of_partial_batch(step.examples, step.size) for step in steps or ()]
        if all(cost is None for cost in costs):
            return dataset
        self._record_given_change(code, place, ", ".join(filter(None, costs)))
        return static_batch.enforce_static_batch(dataset)

    def init_policy(self, original: Function, policy: KerasPolicy, *args: object, **kwargs: object) -> Result:
        """Make a policy of Keras: float32 in place of a mixed one."""
        name = args[0] if args else kwargs.get("name")
        if isinstance(name, str) and name.startswith("mixed_"):
            self._record_given_change(POLICY_CODE, self._running_line(), _FLOAT32)
            args, kwargs = (("float32", *args[1:]), kwargs) if args else ((), {**kwargs, "name": "float32"})
        return original(policy, *args, **kwargs)

    def note_half_layer(self, original: Function, layer: KerasLayer, *args: object, **kwargs: object) -> Result:
        """Note a layer of Keras that computes in 16 bits."""
        if not self._is_half and str(getattr(layer, "compute_dtype", "")) in _HALF:
            self._is_half = True
            self._recorder.writer.write_event("deliberate", what=POLICY)
        return original(layer, *args, **kwargs)

    def _record_given_change(self, code: str, place: str, cost: str) -> None:
        self._recorder.writer.write_event("deliberate", what=GIVEN, code=code, place=place, cost=cost)

    def _acting_rule_and_line(self, codes: tuple[str, ...]) -> tuple[str, str]:
        """Return the code and the line of the running statement if a rule of these acts there; else two times ""."""
        frame = next(script_frames.running_frames(), None)
        if frame is not None:
            path, line = self._path_from_folder(frame.f_code.co_filename), frame.f_lineno
            for code in codes:
                for known, first, last in self._places.get(code, ()):
                    if known == path and (first <= line <= last or code == _FIT_CODE):  # which reports once a file
                        return code, f"{path}:{line}"
        return "", ""

    def _running_line(self) -> str:
        frame = next(script_frames.running_frames(), None)
        return "" if frame is None else f"{self._path_from_folder(frame.f_code.co_filename)}:{frame.f_lineno}"

    def _path_from_folder(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(os.path.join(self._folder, path)), os.path.realpath(self._folder))


def _inputs_up_to_batches(dataset: Dataset) -> Sequence[Dataset]:
    """Return what a dataset is made from; nothing for one that a call of batch() made."""
    return () if hasattr(dataset, _CALL) else tf_data.dataset_inputs(dataset)


def _cost_text(lost: int, examples: int, of_epoch: str) -> str:
    return f"{lost:,} of {examples:,} examples{of_epoch} ({100 * lost / examples:.2g} %)"


def _is_true(value: object) -> bool:
    return bool(tf_api.static_value(value) if tf.is_tensor(value) else value)


def _is_repeated(dataset: Dataset) -> bool:
    return tf_data.dataset_kind(dataset) == "Repeat" or any(map(_is_repeated, tf_data.dataset_inputs(dataset)))
