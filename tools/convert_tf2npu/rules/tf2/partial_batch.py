"""Keras training on arrays or generators of images, whose last batch may be smaller.

``fit(x, y)`` cuts arrays into batches. If the number of rows is no multiple of the batch size, the last batch is
smaller, and the NPU compiles the model for it, too. Train on a multiple: ``n = len(x) // 32 * 32`` and
``model.fit(x[:n], y[:n])``, or on a dataset with ``batch(32, drop_remainder=True)``. ``evaluate`` and ``predict`` keep
all rows. The rule does not report arrays of a known length, such as the digits of MNIST, in batches that divide it. It
reports a slice only if its length is known, as that of ``x[:133]`` is.

The iterators of ``ImageDataGenerator`` have a smaller last batch in each round, also with ``steps_per_epoch``. Train on
the full batches: ``model.fit((b for b in train if len(b[0]) == train.batch_size), steps_per_epoch=train.n //
train.batch_size)``. If the iterator shuffles, ``fit(train, shuffle=npu_shim.data.full_batches())`` does the same.

With facts of ``npu-shim observe``, the rule does not report arrays and images whose number the batch size divided in
all observed runs. If it left a partial batch, and ``fit`` shuffles, ``fit`` gets ``shuffle=npu_data.full_batches()``:
each epoch leaves out other rows, fewer than a batch, and validation keeps all. The iterator of images must shuffle,
too, and ``steps_per_epoch`` must not exceed the full batches. A later run with fewer rows than one batch, or on images
that are not shuffled, trains on all of them, with a message. Without shuffling, each epoch would leave out the same
rows, so the finding stays. It also stays if a class of the program that derives from a Keras model defines ``fit``, or
if a callback decides something in a batch, such as to save after the last one. A callback that only prints, or that
nothing names, decides nothing.

Generators of the script that yield slices are reported, and objects of ``keras.utils.Sequence`` whose ``__len__`` rounds up.

Reported::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels, batch_size=32, validation_split=0.1)

Reported::

    import tensorflow as tf

    def train(model: tf.keras.Model, x, y):
        model.fit(x[:133], y[:133], 33)

Reported::

    import tensorflow as tf

    class State:
        pass

    state = State()
    state.model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    state.model.compile('adam', 'mse')
    state.model.fit(images, labels, batch_size=32)

Reported::

    from tensorflow.keras.preprocessing.image import ImageDataGenerator
    import tensorflow as tf

    train = ImageDataGenerator(rescale=1 / 255).flow_from_directory('train', batch_size=32)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(train, epochs=2)

Reported::

    import math
    import tensorflow as tf

    class Batches(tf.keras.utils.Sequence):
        def __len__(self):
            return math.ceil(len(self.x) / self.size)

        def __getitem__(self, index):
            return self.x[index * self.size:(index + 1) * self.size]

    def train(model: tf.keras.Model, x):
        model.fit(Batches(x, 32))

Reported::

    import tensorflow as tf

    def batches(x, y, size):
        while True:
            for i in range(0, len(x), size):
                yield x[i:i + size], y[i:i + size]

    def train(model: tf.keras.Model, x, y):
        model.fit(batches(x, y, 32), steps_per_epoch=100)

Untouched::

    import tensorflow as tf

    class Batches(tf.keras.utils.Sequence):
        def __len__(self):
            return len(self.x) // self.size

        def __getitem__(self, index):
            return self.x[index * self.size:(index + 1) * self.size]

    def train(model: tf.keras.Model, x):
        model.fit(Batches(x, 32))

Untouched::

    from tensorflow.keras.preprocessing.image import ImageDataGenerator
    import tensorflow as tf

    def train(model: tf.keras.Model, images, labels):
        batches = ImageDataGenerator().flow(images, labels, batch_size=32)
        full = (b for b in batches if len(b[0]) == batches.batch_size)
        model.fit(full, steps_per_epoch=batches.n // batches.batch_size)
        model.evaluate(batches)

Untouched::

    from tensorflow.keras.preprocessing.image import ImageDataGenerator
    from npu_shim import data as npu_data
    import tensorflow as tf

    def train(model: tf.keras.Model, images, labels):
        batches = ImageDataGenerator().flow(images, labels, batch_size=32)
        model.fit(batches, shuffle=npu_data.full_batches())

Untouched::

    import tensorflow as tf

    class Net(tf.keras.Model):
        def fit(self, batches, labels):
            for batch in zip(batches, labels):
                self.step(batch)

    def train(batches, labels):
        Net().fit(batches, labels)

Untouched::

    import tensorflow as tf

    def train(model: tf.keras.Model, images, labels, n):
        model.fit(images[:n], labels[:n], batch_size=32)
        model.evaluate(images, labels)

Untouched::

    import tensorflow as tf

    def train(model: tf.keras.Model):
        (x_train, y_train), _ = tf.keras.datasets.mnist.load_data()
        model.fit(x_train / 255.0, y_train, batch_size=100)

Untouched::

    import numpy as np
    import tensorflow as tf

    x_data = [[0, 0], [0, 1], [1, 0], [1, 1]]
    y_data = np.array([[0], [1], [1], [0]], dtype=np.float32)

    def train(model: tf.keras.Model):
        model.fit(x_data, y_data, epochs=1000)

Untouched::

    import tensorflow.compat.v1 as tf

    def train(model: tf.keras.Model, dataset):
        model.fit(dataset)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    class Net(tf.keras.Model):
        def fit(self, datasets, in_graph):
            for batch in datasets[0]:
                self.step(batch, in_graph)

    npu.open().as_default()
    model = Net()
    model.fit([train, test], in_graph)
"""

from __future__ import annotations

import ast
import itertools
from typing import Iterator

from ...analysis.array_rows import integer_of, row_count_of_array
from ...analysis.batch_hooks import may_batch_hooks_decide
from ...analysis.device_placement import is_in_test
from ...analysis.generators import uneven_sequence_class, yielded_slice
from ...analysis.keras_methods import is_keras_method, may_model_define
from ...analysis.slices import advice_for_full_range, value_of_argument
from ...analysis.tensorflow_version import is_tf2_program
from ...facts.kinds import SHAPE
from ...facts.seen import Seen
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename
from ...rewrite.npu_imports import first_taken_name
from ...semantics.model import Call
from ...semantics.signatures import Bound, bind_arguments
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, constant_or, is_none, last_name, last_part
from ...syntax.source import Edit
from ..base import Change, Context, Finding, Message, Question

CODE = "NPU248"
DELIBERATE = "leaves out the partial batches of arrays and images in training"
ONCE_A_FILE = True
METHODS = frozenset({"fit", "fit_generator"})
_DEFAULT_SIZE = 32  # of the batches of fit()
_FULL_BATCHES = "npu_data.full_batches()"  # a value for shuffle
_PARAMETERS = tuple(
    """x y batch_size epochs verbose callbacks validation_split validation_data shuffle class_weight sample_weight
    initial_epoch steps_per_epoch""".split()
)
_PARAMETERS_OF_GENERATOR = tuple(
    """generator steps_per_epoch epochs verbose callbacks validation_data validation_steps validation_freq class_weight
    max_queue_size workers use_multiprocessing shuffle initial_epoch""".split()
)
_FLOWS = frozenset({"flow", "flow_from_dataframe", "flow_from_directory"})


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    if not is_keras_method(context, call):
        return
    bound = bind_arguments(call.node, _PARAMETERS if method.attr == "fit" else _PARAMETERS_OF_GENERATOR)
    batches = bound.args.get("x") or bound.args.get("generator")
    if batches is not None and _is_image_flow(context, call, batches):
        is_left_out = _leaves_out_partial_batches(context, call, bound)
        if not is_left_out and not is_in_test(context, call.node) and is_tf2_program(context):
            yield from _check_image_flow(context, call, batches, bound)
        return
    message = _message_on_generator(context, call, batches) if batches is not None else ""
    if message:
        if not is_in_test(context, call.node) and is_tf2_program(context):
            yield Finding(call.node, message)
        return
    rows = _first_array(bound.args["y"]) if "y" in bound.args else None
    if (
        method.attr != "fit"
        or rows is None
        or "steps_per_epoch" in bound.args
        or not _may_have_partial_batch(context, call, rows, bound)
        or _leaves_out_partial_batches(context, call, bound)
        or is_in_test(context, call.node)
        or not is_tf2_program(context)
        or _is_own_fit(context, call)
    ):
        return
    size, split = bound.args.get("batch_size"), bound.args.get("validation_split")
    seen = context.observed_at(CODE, SHAPE, rows)
    numbers, sizes = _observed_rows(seen), _possible_numbers(context, size, _DEFAULT_SIZE)
    shares = _possible_numbers(context, split, 0)
    if seen is not None and numbers and shares and sizes and min(sizes) > 0 and not bound.hidden:
        if not any(_has_partial_batch(*case) for case in itertools.product(numbers, shares, sizes)):
            return
        edit = _edit_to_shuffle_full_batches(context, call, bound)
        if edit is not None:
            text = "partial batches of fit() left out in training"
            yield Change(call.node, text, (edit,), ("npu_data",), runs=seen.runs)
            return
    asked = [rows, *(value for value in (size, split) if value is not None and boxed_constant(value) is None)]
    yield Finding(
        call.node,
        "the last batch of fit() may be smaller, and the NPU compiles it, too. Pass arrays whose length is a multiple "
        "of the batch size, such as x[:n]",
        asks=tuple(Question(SHAPE, value) for value in asked),
    )


def _check_image_flow(context: Context, call: Call, batches: ast.expr, bound: Bound) -> Iterator[Change | Finding]:
    """Yield the change or the finding of training on an iterator of images; nothing if all its batches were full."""
    steps, seen = bound.args.get("steps_per_epoch"), context.observed_at(CODE, SHAPE, batches)
    numbers, counted = _observed_rows(seen), _possible_numbers(context, steps, 0)
    sizes = [size for size in (seen and seen.all("batch")) or () if isinstance(size, int)]
    if seen is not None and numbers and sizes and min(sizes) > 0:
        if not any(_has_partial_batch(number, 0, size) for number in numbers for size in sizes):
            return
        is_enough = counted and max(counted) <= min(numbers) // max(sizes)  # else an epoch needs the partial batch
        if is_enough and seen.only("mixed") is True and not bound.hidden and not _is_own_fit(context, call):
            edit = _edit_to_shuffle_full_batches(context, call, bound)
            if edit is not None:
                text = "partial batches of images left out in training"
                yield Change(call.node, text, (edit,), ("npu_data",), runs=seen.runs)
                return
    yield Finding(
        call.node,
        "the last batch of the generator g may be smaller, and the NPU compiles it, too. Pass (b for b in g if "
        "len(b[0]) == g.batch_size) and steps_per_epoch=g.n // g.batch_size",
        asks=tuple(Question(SHAPE, value) for value in (batches, steps) if value and boxed_constant(value) is None),
    )


def _message_on_generator(context: Context, call: Call, batches: ast.expr) -> str:
    """Return the message about a generator or a Sequence whose last batch may be smaller, or ""."""
    batches = value_of_argument(context, call, batches)
    owner = uneven_sequence_class(context, call, batches)
    if owner is not None:
        return Message(
            "the last batch of {0} may be smaller, and the NPU compiles it, too. For training, round its __len__ down",
            owner.node.name,
        )
    piece = yielded_slice(context, batches) if isinstance(batches, ast.Call) else None
    if piece is None:
        return ""
    assert isinstance(batches, ast.Call)
    return Message(
        "the last batch of {0}() may be smaller, and the NPU compiles it, too. In training drop it: {1}",
        last_name(batches.func),
        advice_for_full_range(context, piece),
    )


def _is_image_flow(context: Context, call: Call, value: ast.expr) -> bool:
    """Return True if a value is an iterator of an ImageDataGenerator."""
    for origin in origins(value, call.where, context.names):
        function = origin.node.func if isinstance(origin.node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in _FLOWS:
            for maker in origins(function.value, origin.where, origin.names):
                if isinstance(maker.node, ast.Call) and last_part(maker.resolve()) == "ImageDataGenerator":
                    return True
    return False


def _leaves_out_partial_batches(context: Context, call: Call, bound: Bound) -> bool:
    """Return True if fit shuffles full batches already."""
    value = bound.args.get("shuffle")
    return isinstance(value, ast.Call) and context.resolve(value.func, call.where) == "npu_shim.data.full_batches"


def _is_own_fit(context: Context, call: Call) -> bool:
    """Return True if the model may be of a class of the project that defines ``fit`` itself."""
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    name = function.value
    bindings = context.names.bindings_of_name(name.id, call.where) or [] if isinstance(name, ast.Name) else []
    for binding in bindings:
        creation = binding.node
        if isinstance(creation, ast.Call):
            its_class = context.names.class_definition(creation.func, binding.where)
            if its_class and its_class.names.attribute_bindings(its_class.node, function.attr):
                return True
    return False


def _first_array(value: ast.expr) -> ast.expr:
    """Return the first of the arrays that a list, a tuple or a dictionary of several outputs has, or the argument."""
    parts: list[ast.expr] = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    is_known = bool(parts) and _is_structure(value) and not isinstance(parts[0], ast.Starred)
    return _first_array(parts[0]) if is_known else value


def _is_structure(value: ast.expr) -> bool:
    """Return True for a list, a tuple or a dictionary of arrays; False for a list of numbers or of lists of them."""
    if isinstance(value, ast.Dict):
        return True
    parts: list[ast.expr] = getattr(value, "elts", [])
    return any(boxed_constant(part) is None and (not hasattr(part, "elts") or _is_structure(part)) for part in parts)


def _observed_rows(seen: Seen | None) -> list[int]:
    """Return the numbers of rows of the arrays of all observed runs; none if one is unknown, or of a list of arrays."""
    if seen is None or True in (seen.all("arrays") or ()):
        return []
    shapes = seen.all("shape") or ()
    numbers = [shape[0] for shape in shapes if isinstance(shape, tuple) and shape]
    return numbers if len(numbers) == len(shapes) else []


def _possible_numbers(context: Context, value: ast.expr | None, default: float) -> tuple[float, ...]:
    """Return the number that an argument of fit is, or those that it was in observed runs; none if one is unknown."""
    if value is None or is_none(value):
        return (default,)
    constant, seen = constant_or(value, None), context.observed_at(CODE, SHAPE, value)
    known = (constant,) if constant is not None else seen.all("number") if seen is not None else None
    numbers = tuple(number for number in known or () if isinstance(number, (int, float)))
    return numbers if len(numbers) == len(known or ()) else ()


def _edit_to_shuffle_full_batches(context: Context, call: Call, bound: Bound) -> Edit | None:
    """Return the edit that lets fit leave out other rows in each epoch; None if it does not shuffle, or may not."""
    given = bound.args.get("shuffle")
    if (
        first_taken_name(("npu_data",), context.names)
        or given is not None
        and constant_or(given, None) is not True
        or may_model_define(context, "fit")
        or may_batch_hooks_decide(context)
    ):
        return None
    if given is not None:
        return edit_to_rename(context.source, given, _FULL_BATCHES)
    return edit_to_add_argument(context.source, call.node, f"shuffle={_FULL_BATCHES}")


def _has_partial_batch(rows: int, share: float, size: float) -> bool:
    trained = int(rows * (1 - share))
    return trained > size and trained % size != 0  # else all rows are one batch


def _may_have_partial_batch(context: Context, call: Call, rows: ast.expr, bound: Bound) -> bool:
    """Return True if the size of a batch may not divide the number of rows, less those for validation.

    A slice of unknown length is taken for one that it divides.
    """
    is_structure = _is_structure(value_of_argument(context, call, rows))
    number = row_count_of_array(context, rows, call.where) if not is_structure else None
    size, split = bound.args.get("batch_size"), bound.args.get("validation_split")
    share = constant_or(split, None) if split is not None else 0
    value = integer_of(context, size, call.where) if size is not None and not is_none(size) else _DEFAULT_SIZE
    if number is None or not isinstance(share, (int, float)) or value is None or value < 1 or bound.hidden:
        return not isinstance(rows, ast.Subscript)
    return _has_partial_batch(number, share, value)
