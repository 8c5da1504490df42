"""One spelling for each TensorFlow name, whatever path a script reached it by.

``tensorflow.compat.v1.Session``, ``tensorflow.python.client.session.Session`` and
``tensorflow.Session`` are one thing; rules name it ``tensorflow.Session``.
"""
from __future__ import annotations

import functools

# Modules of TensorFlow's implementation that scripts import from, and where their names are public.
_PRIVATE = {
    'tensorflow.core.protobuf.config_pb2': 'tensorflow',
    'tensorflow.core.protobuf.rewriter_config_pb2.RewriterConfig': 'tensorflow.RewriterConfig',
    'tensorflow.python.client.session': 'tensorflow',
    'tensorflow.python.data.ops.dataset_ops': 'tensorflow.data',
    'tensorflow.python.data.ops.readers': 'tensorflow.data',
    'tensorflow.python.data': 'tensorflow.data',
    'tensorflow.python.estimator.estimator': 'tensorflow.estimator',
    'tensorflow.python.estimator.model_fn': 'tensorflow.estimator',
    'tensorflow.python.estimator.run_config': 'tensorflow.estimator',
    'tensorflow.python.estimator.training': 'tensorflow.estimator',
    'tensorflow_estimator.python.estimator.estimator': 'tensorflow.estimator',
    'tensorflow_estimator.python.estimator.model_fn': 'tensorflow.estimator',
    'tensorflow_estimator.python.estimator.run_config': 'tensorflow.estimator',
    'tensorflow_estimator.python.estimator.training': 'tensorflow.estimator',
    'tensorflow_estimator.estimator': 'tensorflow.estimator',
    'tensorflow.contrib.learn.python.learn.estimators.run_config': 'tensorflow.contrib.learn',
    'tensorflow.python.framework.ops': 'tensorflow',
    'tensorflow.python.keras': 'tensorflow.keras',
    'tensorflow.python.layers.core': 'tensorflow.layers',
    'tensorflow.python.layers.layers': 'tensorflow.layers',
    'tensorflow.python.ops.math_ops': 'tensorflow.math',
    'tensorflow.contrib.slim.python.slim.learning': 'tensorflow.contrib.slim.learning',
    'tensorflow.contrib.slim.python.slim.evaluation': 'tensorflow.contrib.slim.evaluation',
    'tensorflow.contrib.framework.python.ops': 'tensorflow.contrib.framework',
    'tensorflow.contrib.layers.python.layers': 'tensorflow.contrib.layers',
    'tensorflow.contrib.layers.python.layers.layers': 'tensorflow.contrib.layers',
    'tensorflow.contrib.gan.python.train': 'tensorflow.contrib.gan',
    'tensorflow.contrib.training.python.training.evaluation': 'tensorflow.contrib.training',
    'tensorflow.contrib.training.python.training.training': 'tensorflow.contrib.training',
    'tensorflow.contrib.tpu.python.tpu.tpu_config': 'tensorflow.contrib.tpu',
    'tensorflow.contrib.tpu.python.tpu.tpu_estimator': 'tensorflow.contrib.tpu',
    'tensorflow.contrib.tpu.python.tpu.tpu_optimizer': 'tensorflow.contrib.tpu',
    'tensorflow.python.tpu.tpu_config': 'tensorflow.estimator.tpu',
    'tensorflow.python.tpu.tpu_estimator': 'tensorflow.estimator.tpu',
    'tensorflow_estimator.python.estimator.tpu.tpu_config': 'tensorflow.estimator.tpu',
    'tensorflow_estimator.python.estimator.tpu.tpu_estimator': 'tensorflow.estimator.tpu',
    'tensorflow.python.training.monitored_session': 'tensorflow.train',
    'tensorflow.python.training.session_manager': 'tensorflow.train',
    'tensorflow.python.training.supervisor': 'tensorflow.train',
    'tensorflow.python.ops.nn': 'tensorflow.nn',
    'tensorflow.python.ops.nn_ops': 'tensorflow.nn',
}
# Names that live in two public places; the left one is written as the right one.
_SAME = {
    'tensorflow.math.tanh': 'tensorflow.tanh',
    'tensorflow.nn.tanh': 'tensorflow.tanh',
    'tensorflow.keras.backend.tanh': 'tensorflow.tanh',
    'tensorflow.keras.activations.tanh': 'tensorflow.tanh',
    'tensorflow.math.pow': 'tensorflow.pow',
    'tensorflow.keras.backend.pow': 'tensorflow.pow',
    'tensorflow.math.sqrt': 'tensorflow.sqrt',
    'tensorflow.keras.backend.sqrt': 'tensorflow.sqrt',
    'tensorflow.math.square': 'tensorflow.square',
    'tensorflow.keras.backend.square': 'tensorflow.square',
    'tensorflow.math.multiply': 'tensorflow.multiply',
    'tensorflow.math.add': 'tensorflow.add',
    'tensorflow.math.sigmoid': 'tensorflow.sigmoid',
    'tensorflow.nn.sigmoid': 'tensorflow.sigmoid',
    'tensorflow.train.SessionRunHook': 'tensorflow.estimator.SessionRunHook',
    'tensorflow.estimator.EstimatorV2': 'tensorflow.estimator.Estimator',
    'tensorflow.contrib.slim.dropout': 'tensorflow.contrib.layers.dropout',
    'tensorflow.keras.models.Sequential': 'tensorflow.keras.Sequential',
    'tensorflow.keras.models.Model': 'tensorflow.keras.Model',
    'tensorflow.keras.engine.training.Model': 'tensorflow.keras.Model',
}
_VERSIONED = ('tensorflow.compat.v1', 'tensorflow.compat.v2', 'tensorflow._api.v1',
              'tensorflow._api.v2')
# The package whose public interface npu_shim has; scripts ported to it by hand are already ported.
_VENDOR = {'npu_bridge': 'npu_shim'}


@functools.lru_cache(maxsize=65536)
def canonical(name: str) -> str:
    """The one spelling of a dotted name.

    Args:
        name: a dotted path as the script's imports give it, e.g. ``tensorflow.compat.v1.Session``.

    Returns:
        the spelling the rules use, e.g. ``tensorflow.Session``; other names come back unchanged.
    """
    head, _, rest = name.partition('.')
    if head in _VENDOR:
        name = _VENDOR[head] + ('.' + rest if rest else '')
    if name.startswith('npu_shim.'):
        # The same objects live in npu_init and in the modules that the vendor gave them.
        last = name.rsplit('.', 1)[1]
        return name if last == 'npu_init' else _npu_name(name)
    if head == 'horovod':
        # One interface under several paths; those of other frameworks keep theirs.
        for prefix in ('horovod.tensorflow.keras', 'horovod.tensorflow', 'horovod.keras'):
            if name == prefix or name.startswith(prefix + '.'):
                return 'horovod' + name[len(prefix):]
        return 'another ' + name
    if head not in ('tensorflow', 'tensorflow_estimator'):
        return name
    for prefix in _VERSIONED:
        if name == prefix or name.startswith(prefix + '.'):
            name = 'tensorflow' + name[len(prefix):]
    parts = name.split('.')
    for cut in range(len(parts), 1, -1):
        prefix = '.'.join(parts[:cut])
        if prefix in _PRIVATE:
            name = '.'.join([_PRIVATE[prefix]] + parts[cut:])
            break
    return _SAME.get(name, name)


def _npu_name(name: str) -> str:
    parts = name.split('.')
    for index, part in enumerate(parts):
        if part in ('npu_ops', 'npu_unary_ops'):
            # npu_shim.estimator.npu_unary_ops.npu_unary_ops is the op module inside its own module.
            tail = [p for p in parts[index + 1:] if p != part]
            return '.'.join(['npu_shim.npu_init', part] + tail)
    if parts[-1].startswith(('npu_', 'NPU', 'set_keras', 'close_session')):
        return 'npu_shim.npu_init.' + parts[-1]
    return name


def is_version1(name: str) -> bool:
    """Whether a name as spelled belongs to the TensorFlow 1 interface for certain."""
    return name.startswith(('tensorflow.compat.v1.', 'tensorflow._api.v1.', 'tensorflow.python.'))


def is_only_version2(name: str) -> bool:
    """Whether a name as spelled is in the plain interface of TensorFlow 2 and was not in that of 1."""
    return name.startswith('tensorflow.optimizers.') or name in (
        'tensorflow.random.set_seed', 'tensorflow.summary.create_file_writer')
