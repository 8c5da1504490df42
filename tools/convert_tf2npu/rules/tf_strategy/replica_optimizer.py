"""Average the gradients of optimizers over all ranks (with ``-d tf_strategy``).

The rule wraps each optimizer once, where the script creates it, unless something in the project already averages its
gradients. An optimizer around another one asks the inner optimizer for its gradients, so the rule wraps the inner
one. An optimizer that only applies gradients of the script is not wrapped (see NPU305). An optimizer inside a loss
scale optimizer is wrapped inside it.

The rule reports calls that compute gradients with an optimizer of unknown origin. It also reports optimizers of the
script that average their gradients with MPI. They stay as they are. MPI only has ranks that ``mpirun`` starts.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    def model_fn(features, labels, mode, params):
        optimizer = tf.train.AdamOptimizer(params['rate'])
        train_op = optimizer.minimize(loss, tf.train.get_global_step())

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def model_fn(features, labels, mode, params):
        optimizer = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(params['rate']))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())

Before::

    import tensorflow as tf

    OPTIMIZERS = {'adam': tf.train.AdamOptimizer, 'sgd': tf.train.GradientDescentOptimizer}

    class Decayed(tf.train.AdamOptimizer):
        pass

    def make(name, rate):
        if name == 'decayed':
            return tf.contrib.opt.MovingAverageOptimizer(Decayed(rate))
        return OPTIMIZERS[name](rate)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    OPTIMIZERS = {'adam': tf.train.AdamOptimizer, 'sgd': tf.train.GradientDescentOptimizer}

    class Decayed(tf.train.AdamOptimizer):
        pass

    def make(name, rate):
        if name == 'decayed':
            return tf.contrib.opt.MovingAverageOptimizer(npu_distributed_optimizer_wrapper(Decayed(rate)))
        return npu_distributed_optimizer_wrapper(OPTIMIZERS[name](rate))

Before::

    import tensorflow as tf

    class Trainer:
        def __init__(self, loss, make_optimizer=tf.train.AdamOptimizer):
            self.loss = loss
            self.make_optimizer = make_optimizer

        def optimizer(self):
            return self.make_optimizer(0.1)

        def train_op(self):
            return self.optimizer().minimize(self.loss)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    class Trainer:
        def __init__(self, loss, make_optimizer=tf.train.AdamOptimizer):
            self.loss = loss
            self.make_optimizer = make_optimizer

        def optimizer(self):
            return npu_distributed_optimizer_wrapper(self.make_optimizer(0.1))

        def train_op(self):
            return self.optimizer().minimize(self.loss)

Reported::

    import tensorflow as tf

    def train_op(loss, optimizer):
        return optimizer.minimize(loss, global_step=tf.train.get_global_step())

Reported::

    import tensorflow as tf
    from mpi4py import MPI

    class MpiOptimizer(tf.train.AdamOptimizer):
        def compute_gradients(self, loss, variables):
            pairs = super().compute_gradients(loss, variables)
            return [(tf.py_func(self.mean, [g], g.dtype), v) for g, v in pairs]

        def mean(self, gradient):
            return MPI.COMM_WORLD.allreduce(gradient) / MPI.COMM_WORLD.Get_size()

    train_op = MpiOptimizer(0.1).minimize(loss)

Untouched::

    import tensorflow as tf

    model.compile(tf.keras.optimizers.Adam(), 'mse')
    model.load_weights('weights.h5')
    print(model.predict(images))

Untouched::

    import re
    import tensorflow as tf
    from scipy import optimize
    from sklearn.linear_model import LogisticRegression

    NUMBER = re.compile('[0-9]+')
    epoch = NUMBER.search(path) or re.search('last', path)
    model.compile(tf.keras.optimizers.Adam(), 'mse')
    model.load_weights(path)
    features = model.predict(images)
    LogisticRegression().fit(features, labels)
    threshold = optimize.minimize(error, 0.5)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    optimizer = tf.train.AdamOptimizer(0.1)
    optimizer = NPULossScaleOptimizer(NPUDistributedOptimizer(optimizer), manager, is_distributed=True)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    if name == 'adam':
        optimizer = tf.train.AdamOptimizer(rate)
    else:
        optimizer = tf.train.GradientDescentOptimizer(rate)
    gradients = npu_allreduce(tf.gradients(loss, variables))
    train_op = optimizer.apply_gradients(zip(gradients, variables))

Untouched::

    import tensorflow as tf

    optimizer = tf.train.RMSPropOptimizer(0.1)
    gradients = [add(g, p) for g, p in zip(tf.gradients(loss, variables, grad_ys=start), penalties)]
    train_op = optimizer.apply_gradients(list(zip(gradients, variables)))

Untouched::

    import npu_shim.npu_device as npu
    import tensorflow as tf
    from mycompany.training import train

    npu.open().as_default()
    train(lambda: tf.keras.optimizers.Adam(0.1))

Untouched::

    import tensorflow as tf
    from mycompany.search import AdamOptimizer

    best = AdamOptimizer(0.1).minimize(cost)

Untouched::

    import tensorflow as tf

    class Patient(tf.train.Optimizer):
        def __init__(self, rate):
            super(Patient, self).__init__(False, 'Patient')
            self._inner = tf.train.AdamOptimizer(rate)

        def _apply_dense(self, gradient, variable):
            return self._inner._apply_dense(gradient, variable)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.applied_optimizers import MPI, calls_of_unknown_optimizers
from ...analysis.device_placement import is_in_test, only_predicts
from ...analysis.gradients import only_applies_script_gradients
from ...analysis.optimizers import (
    CREATES_OPTIMIZER,
    WRAPPER,
    ProjectClass,
    creates_keras_optimizer,
    creates_mpi_optimizer,
    is_optimizer_subclass,
    optimizer_role,
    wrapped_optimizers,
    wraps_other_optimizer,
)
from ...analysis.parallel_training import may_be_eager_program
from ...analysis.tensorflow_version import is_imported_by_graph_program
from ...rewrite.call_edits import edits_to_wrap
from ...semantics.model import Call
from ..base import Change, Context, Finding

CODE = "NPU303"
NEEDS = {"distributed": "tf_strategy"}


def check_file(context: Context) -> Iterator[Change | Finding]:
    if only_predicts(context):
        return
    eager = may_be_eager_program(context)
    if eager and not is_imported_by_graph_program(context):
        return
    names = context.names
    optimizers = [call for call in names.calls if optimizer_role(call.node, call.where, names) == CREATES_OPTIMIZER]
    already = wrapped_optimizers(names) if optimizers else {}
    for call in names.calls:
        if creates_mpi_optimizer(call.node, call.where, names) and not is_in_test(context, call.node):
            yield Finding(call.node, MPI)
    for call in calls_of_unknown_optimizers(context):
        if not is_in_test(context, call.node):
            yield Finding(
                call.node,
                "the gradients may belong to one rank. Write {0}(...) where the optimizer is created",
                WRAPPER,
            )
    for call in optimizers:
        if eager and creates_keras_optimizer(call.node, call.where, names):
            continue  # NPU308
        key = names.call_key(call.node)
        if (
            key in already
            or is_in_test(context, call.node)
            or _is_inside_other_optimizer(context, call)
            or only_applies_script_gradients(context, call.node)
        ):
            continue
        yield Change(
            call.node,
            "gradients of this optimizer averaged over all ranks",
            edits_to_wrap(context.source, call.node, WRAPPER + "(", ")"),
            (WRAPPER,),
        )


def _is_inside_other_optimizer(context: Context, call: Call) -> bool:
    """Return True if an optimizer is created inside another one that computes the gradients itself."""
    for parent in context.names.ancestors(call.node):
        if isinstance(parent, ast.ClassDef):
            its_class = ProjectClass(parent, context.names)
            return is_optimizer_subclass(its_class) and not wraps_other_optimizer(its_class)
    return False
