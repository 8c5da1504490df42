"""Give training batches made by other functions than batch a static size.

As ``dataset.batch`` does with ``drop_remainder`` (see NPU109), for the functions that read, parse and
batch in one. Evaluation and prediction keep every example and are told.

Before::

    import tensorflow as tf

    def train_input_fn(files):
        dataset = tf.data.TFRecordDataset(files)
        return dataset.apply(tf.contrib.data.map_and_batch(parse, batch_size=32, num_parallel_batches=2))

After::

    import tensorflow as tf

    def train_input_fn(files):
        dataset = tf.data.TFRecordDataset(files)
        return dataset.apply(tf.contrib.data.map_and_batch(parse, batch_size=32, num_parallel_batches=2, drop_remainder=True))

Before::

    import tensorflow as tf

    train_set = tf.data.experimental.make_csv_dataset('train.csv', 32)

After::

    import tensorflow as tf

    train_set = tf.data.experimental.make_csv_dataset('train.csv', 32, drop_final_batch=True)

Untouched::

    import tensorflow as tf

    def train_input_fn(dataset):
        return dataset.apply(tf.data.experimental.map_and_batch(parse, 32, drop_remainder=flag))

Untouched::

    import tensorflow as tf

    def eval_input_fn(dataset):
        return dataset.apply(tf.data.experimental.map_and_batch(parse, 32))

Untouched::

    import tensorflow as tf

    def train_input_fn(dataset):
        return dataset.apply(tf.contrib.data.batch_and_drop_remainder(32))
"""
from __future__ import annotations

from typing import Dict, Iterator, Optional, Tuple

from ..edits import add_argument
from ..phase import TRAIN, phase_of
from ..registry import Change, Context, Finding, Result
from ..scopes import Call
from ..signatures import bind

CODE = 'NPU114'
_MAP = ('map_func', 'batch_size', 'num_parallel_batches', 'drop_remainder', 'num_parallel_calls')
_BUCKET = ('element_length_func', 'bucket_boundaries', 'bucket_batch_sizes', 'padded_shapes',
           'padding_values', 'pad_to_bucket_boundary', 'no_padding', 'drop_remainder')
_CSV = ('file_pattern', 'batch_size')
_SIGNATURES: Dict[str, Tuple[Tuple[str, ...], str]] = {
    'tensorflow.data.experimental.map_and_batch': (_MAP, 'drop_remainder'),
    'tensorflow.contrib.data.map_and_batch': (_MAP, 'drop_remainder'),
    'tensorflow.data.experimental.bucket_by_sequence_length': (_BUCKET, 'drop_remainder'),
    'tensorflow.contrib.data.bucket_by_sequence_length': (_BUCKET, 'drop_remainder'),
    'tensorflow.data.experimental.make_csv_dataset': (_CSV, 'drop_final_batch'),
    'tensorflow.contrib.data.make_csv_dataset': (_CSV, 'drop_final_batch'),
    'tensorflow.data.experimental.make_batched_features_dataset': (_CSV, 'drop_final_batch'),
    'tensorflow.contrib.data.make_batched_features_dataset': (_CSV, 'drop_final_batch'),
}
CALLS = frozenset(_SIGNATURES)


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    signature, flag = _SIGNATURES[name or '']
    short = (name or '').rsplit('.', 1)[1]
    bound = bind(call.node, signature)
    if flag in bound.args:
        return
    phase = phase_of(call.node, call.where, context.names, context.source.text)
    if phase.name != TRAIN or bound.hidden:
        yield Finding(call.node, '%s feeds %s (by %s) and stays as it is; for training write %s=True, so '
                      'that its last, smaller batch costs no graph compilation' % (
                          short, phase.name or 'what cannot be told', phase.because, flag))
        return
    edit = add_argument(context.source, call.node, flag + '=True')
    if edit:
        yield Change(call.node, 'training batches have one static size', (edit,))
