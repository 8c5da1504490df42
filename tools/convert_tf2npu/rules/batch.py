"""Give training batches a static size.

The NPU compiles a graph for each shape it sees; the smaller batch at the end of a pass over the data
would cost a compilation. ``drop_remainder=True`` leaves it out and makes the batch dimension static.
That is done where a dataset feeds training, or repeats for ever before it is batched, so that nothing
is lost. Where it feeds evaluation or prediction it stays, for every example counts there, and is
told; so is what cannot be decided. A ``drop_remainder`` that the script gives is the script's.

Before::

    import tensorflow as tf

    def train_input_fn():
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        dataset = dataset.shuffle(1000)
        dataset = dataset.batch(FLAGS.batch_size)
        return dataset.prefetch(1)

After::

    import tensorflow as tf

    def train_input_fn():
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        dataset = dataset.shuffle(1000)
        dataset = dataset.batch(FLAGS.batch_size, drop_remainder=True)
        return dataset.prefetch(1)

Before::

    from tensorflow.data import TFRecordDataset

    def make(files):
        return TFRecordDataset(files).repeat().padded_batch(32, shapes)

After::

    from tensorflow.data import TFRecordDataset

    def make(files):
        return TFRecordDataset(files).repeat().padded_batch(32, shapes, drop_remainder=True)

Before::

    import tensorflow as tf

    dataset = tf.data.TextLineDataset(files).map(parse)
    if is_training:
        dataset = dataset.shuffle(100).batch(8)
    else:
        dataset = dataset.batch(100)

After::

    import tensorflow as tf

    dataset = tf.data.TextLineDataset(files).map(parse)
    if is_training:
        dataset = dataset.shuffle(100).batch(8, drop_remainder=True)
    else:
        dataset = dataset.batch(100)

Untouched::

    import tensorflow as tf

    def eval_input_fn():
        return tf.data.Dataset.from_tensor_slices(images).batch(100)

Untouched::

    import tensorflow as tf

    class Trainer:
        def train(self, loader):
            for images in loader.batch(5):
                self.step(images)

Untouched::

    import tensorflow as tf

    def train_input_fn(flag):
        return tf.data.Dataset.range(10).batch(3, drop_remainder=flag)

Untouched::

    import tensorflow as tf

    def train_input_fn():
        return tf.data.Dataset.range(10).batch(4, True)
"""
from __future__ import annotations

import ast
from typing import Iterator

from ..edits import add_argument
from ..infer import DATASET
from ..phase import TRAIN, mode_parameter, phase_of
from ..registry import Change, Context, Finding, Result
from ..scopes import Call, Where
from ..signatures import bind, constant

CODE = 'NPU109'
_SIGNATURES = {
    'batch': ('batch_size', 'drop_remainder', 'num_parallel_calls', 'deterministic', 'name'),
    'padded_batch': ('batch_size', 'padded_shapes', 'padding_values', 'drop_remainder', 'name'),
}
METHODS = frozenset(_SIGNATURES)


def check_method(context: Context, call: Call) -> Iterator[Result]:
    node = call.node
    assert isinstance(node.func, ast.Attribute)
    if context.types.of(node.func.value, call.where) != DATASET:
        return
    bound = bind(node, _SIGNATURES[node.func.attr])
    if 'drop_remainder' in bound.args:
        return
    if bound.hidden:
        yield Finding(node, 'the arguments of %s are hidden behind * or **; training needs '
                      'drop_remainder=True among them' % node.func.attr)
        return
    phase = phase_of(node, call.where, context.names, context.source.text)
    if phase.name == TRAIN or _endless(context, node.func.value, call.where):
        edit = add_argument(context.source, node, 'drop_remainder=True')
        if edit:
            yield Change(node, 'training batches have one static size', (edit,))
    elif phase.name:
        yield Finding(node, 'it feeds %s (by %s) and stays, so that no example is lost; its last, '
                      'smaller batch makes the card compile the graph once more' % phase)
    else:
        parameter = next((mode_parameter(a) for a in context.names.ancestors(node)
                          if mode_parameter(a) not in (None, 'mode')), None)
        yield Finding(node, 'cannot tell whether it feeds training or evaluation (%s); for training '
                      'write drop_remainder=%s' % (phase.because, parameter or True))


def _endless(context: Context, node: ast.AST, where: Where) -> bool:
    """Whether a dataset repeats for ever before it is batched, so that no batch is a smaller one."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == 'repeat':
            count = (node.args + [k.value for k in node.keywords] + [None])[0]
            if count is None or constant(count) in ((None,), (-1,)):
                return True
        elif node.func.attr not in ('shuffle', 'map', 'prefetch', 'filter', 'cache', 'with_options'):
            return False
        node = node.func.value
    if isinstance(node, ast.Name):
        bindings = context.names.lookup(node.id, where) or []
        return len(bindings) == 1 and bindings[0].kind == 'value' and _endless(
            context, bindings[0].node, bindings[0].where)  # type: ignore[arg-type]
    return False
