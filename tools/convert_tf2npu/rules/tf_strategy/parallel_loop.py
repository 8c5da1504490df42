"""Shard the batches of training loops of TensorFlow 2 (with ``-d tf_strategy``).

Each rank runs the whole loop. In a loop that applies gradients, ``npu.distribute.shard_batches(dataset)`` goes around
the dataset of batches: each rank trains on its slice of each batch, and the optimizer averages the gradients (see
NPU308). Batch sizes and learning rates of the script stay right. Loops that only evaluate keep all batches. Shuffled
data needs a seed, so that all ranks read the same batches: ``tf.random.set_seed(1)``. A dataset may be an argument of a
method, if all calls of the method pass datasets.

An iterator whose elements a step gets is sharded where the script makes it. The rule reports it if its elements are read
by ``get_next`` or in the step and a function makes it.

The rule reports training loops over something else. There all ranks compute the same batches, which is right but no
faster.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1000, seed=1).batch(32, drop_remainder=True)
    optimizer = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

    for epoch in range(5):
        for step, (x, y) in enumerate(dataset):
            train_step(x, y)
        for x, y in dataset.take(10):
            print(loss_of(y, model(x)))

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1000, seed=1).batch(32, drop_remainder=True)
    optimizer = npu.distribute.distributed_optimizer(tf.keras.optimizers.SGD(0.1))

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

    for epoch in range(5):
        for step, (x, y) in enumerate(npu.distribute.shard_batches(dataset)):
            train_step(x, y)
        for x, y in dataset.take(10):
            print(loss_of(y, model(x)))

Before::

    import tensorflow as tf

    class Trainer:
        def __init__(self, net):
            self.net = net
            self.optimizer = tf.keras.optimizers.SGD(0.1)

        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.net(x) - y) ** 2)
            gradients = tape.gradient(loss, self.net.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.net.trainable_variables))

        def fit(self, batches):
            for x, y in batches:
                self.step(x, y)

    Trainer(net).fit(tf.data.Dataset.from_tensor_slices((images, labels)).batch(4, drop_remainder=True))

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    class Trainer:
        def __init__(self, net):
            self.net = net
            self.optimizer = npu.distribute.distributed_optimizer(tf.keras.optimizers.SGD(0.1))

        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.net(x) - y) ** 2)
            gradients = tape.gradient(loss, self.net.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.net.trainable_variables))

        def fit(self, batches):
            for x, y in npu.distribute.shard_batches(batches):
                self.step(x, y)

    npu.open().as_default()
    npu.distribute.share_random_state()
    Trainer(net).fit(tf.data.Dataset.from_tensor_slices((images, labels)).batch(4, drop_remainder=True))

Reported::

    import tensorflow as tf

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

    for x, y in batches_of(images, labels):
        train_step(x, y)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

    for x, y in npu.distribute.shard_batches(batches_of(images, labels)):
        train_step(x, y)

Reported::

    import tensorflow as tf

    for step in range(1000):
        x, y = sample(images, labels)
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()

    for step in range(1000):
        x, y = npu.distribute.shard_batch(sample(images, labels))
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()

    class Trainer:
        optimizer = npu.distribute.distributed_optimizer(tf.keras.optimizers.SGD(0.1))

        def fit(self, net, batches):
            for x, y in batches:
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((net(x) - y) ** 2)
                self.optimizer.apply_gradients(zip(tape.gradient(loss, net.variables), net.variables))

    Trainer().fit(net, npu.distribute.shard_batches(batches_of(images, labels)))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.batch_iterators import Read, argument_of_iter, is_iterator, reads_of_batches
from ...analysis.datasets import is_dataset
from ...analysis.device_placement import is_in_test
from ...analysis.parallel_training import (
    DISTRIBUTE,
    has_own_strategy,
    is_application,
    is_counter,
    training_calls,
    training_functions,
    trains_on_ranks,
)
from ...rewrite.call_edits import edits_to_wrap
from ...rewrite.npu_imports import device_name
from ...semantics.model import Where
from ...semantics.value_flow import Origin, origins
from ...syntax.expressions import last_name
from ...syntax.source import one_line
from ..base import Change, Context, Finding

CODE = "NPU309"
NEEDS = {"distributed": "tf_strategy"}
_AROUND = frozenset({"enumerate", "tqdm", "zip", "iter"})
_TAKES = frozenset({"next", "get_next", "shard_batch", "shard_batches"})


def check_file(context: Context) -> Iterator[Change | Finding]:
    if not trains_on_ranks(context) or has_own_strategy(context):
        return
    functions = training_functions(context)
    steps = training_calls(context.names.tree.body, functions)
    taken = {read.call: read for read in reads_of_batches(context.names, steps) if not is_in_test(context, read.call)}
    read_from: dict[str, list[Read]] = {}
    for read in taken.values():
        read_from.setdefault(_as_loaded_expression(read.iterator), []).append(read)
    variables = (node for step in steps for node in ast.walk(step) if isinstance(node, ast.Name))
    passed = frozenset(node.id for node in variables if not _is_argument_of_next(context, node))
    loaded: set[str] = set()
    for statement, where in context.names.places.items():
        if is_in_test(context, statement):
            continue
        if isinstance(statement, ast.For):
            yield from _check_training_loop(context, statement, where, functions)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            for result in _shard_iterator(context, statement, where, passed, read_from):
                loaded.update(_as_loaded_expression(target) for target in statement.targets)
                yield result
    for read in taken.values():
        if _as_loaded_expression(read.iterator) not in loaded and not _is_sharded_iterable(
            context, read.iterator, read.where
        ):
            yield _finding_of_unsharded_iterator(context, read.call)


def _finding_of_unsharded_iterator(context: Context, node: ast.expr) -> Finding:
    return Finding(
        node,
        "all ranks train on the same batches. "
        "Write {0}.distribute.shard_batches(...) around the dataset of this iterator",
        device_name(context.names),
    )


def _check_training_loop(
    context: Context, loop: ast.For, where: Where, functions: frozenset[str]
) -> Iterator[Change | Finding]:
    targets = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    calls = training_calls(loop.body, functions)
    if is_counter(loop.iter):
        if any(_applies_gradients_in_loop(context, call, loop) for call in calls) and not _takes_batches(loop):
            yield Finding(
                loop.iter,
                "all ranks train on the same batches. Let each take its rows: "
                "batch = {0}.distribute.shard_batch(batch)",
                device_name(context.names),
            )
        return
    if not any(_reads_any_variable(call, targets) or _applies_gradients_in_loop(context, call, loop) for call in calls):
        return
    dataset = _dataset_of_iterable(context, loop.iter, where)
    if dataset is not None:
        yield _shard_batches(context, dataset)
    elif not _is_sharded_iterable(context, loop.iter, where):
        name = device_name(context.names)
        yield Finding(
            loop.iter,
            "all ranks train on the same batches. Write {0}.distribute.shard_batches({1}) if these are batches",
            name,
            one_line(context.source.segment(_iterable_without_enumerate(loop.iter))),
        )


def _shard_iterator(
    context: Context,
    statement: ast.Assign,
    where: Where,
    passed_names: frozenset[str],
    read_from: dict[str, list[Read]],
) -> Iterator[Change | Finding]:
    """Shard the dataset of an iterator that training steps read, or that they get.

    What shard_batches makes of an iterator of unknown origin is a generator, which has no get_next and no place in a
    tf.function.
    """
    call, target = statement.value, statement.targets[0]
    dataset = _dataset_of_iterable(context, call, where) if isinstance(call, ast.Call) else None
    if dataset is None or not isinstance(target, (ast.Name, ast.Attribute)):
        return
    read = read_from.get(_as_loaded_expression(target), [])
    is_passed = isinstance(target, ast.Name) and target.id in passed_names
    if argument_of_iter(call) is not None and (read or is_passed):
        yield _shard_batches(context, dataset)
    elif (
        is_iterator(call, where, context.names)
        and is_passed
        or any(isinstance(r.call.func, ast.Attribute) for r in read)
    ):
        yield _finding_of_unsharded_iterator(context, call)
    elif is_iterator(call, where, context.names) and read:
        yield _shard_batches(context, call, "iter(")


def _is_argument_of_next(context: Context, node: ast.Name) -> bool:
    """Return True for x in ``next(x)``."""
    parent = context.names.parents.get(node)
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "next"


def _as_loaded_expression(target: ast.expr) -> str:
    """Return a variable or an attribute as an expression that reads it, to compare it."""
    return ast.dump(target).replace("Store()", "Load()")


def _shard_batches(context: Context, dataset: ast.expr, wrapper: str = "") -> Change:
    name = device_name(context.names)
    return Change(
        dataset,
        "each rank trains on its slice of each batch",
        edits_to_wrap(context.source, dataset, f"{wrapper}{name}.distribute.shard_batches(", "))" if wrapper else ")"),
        (name,),
    )


def _dataset_of_iterable(context: Context, node: ast.expr, where: Where) -> ast.expr | None:
    """Return the part of the iterable of a loop that is a dataset or an iterator of one, or None."""
    if is_iterator(node, where, context.names) and argument_of_iter(node) is None:
        return node
    if is_dataset(node, where, context.names):
        inner = node.func if isinstance(node, ast.Call) else None
        if isinstance(inner, ast.Attribute) and inner.attr == "enumerate":
            return inner.value
        return node
    if isinstance(node, ast.Call) and last_name(node.func) in _AROUND:
        datasets = [
            dataset
            for dataset in (_dataset_of_iterable(context, arg, where) for arg in node.args)
            if dataset is not None
        ]
        return datasets[0] if len(datasets) == 1 else None
    return None


def _takes_batches(loop: ast.For) -> bool:
    """Return True if a loop over numbers takes batches from an iterator, or slices them already."""
    return any(isinstance(node, ast.Call) and last_name(node.func) in _TAKES for node in ast.walk(loop))


def _iterable_without_enumerate(iterable: ast.expr) -> ast.expr:
    """Return x of ``enumerate(x)``; another iterable itself."""
    return iterable.args[0] if isinstance(iterable, ast.Call) and last_name(iterable.func) == "enumerate" else iterable


def _reads_any_variable(call: ast.Call, targets: set[str]) -> bool:
    """Return True if a call reads one of some variables."""
    return any(isinstance(node, ast.Name) and node.id in targets for node in ast.walk(call))


def _applies_gradients_in_loop(context: Context, call: ast.Call, loop: ast.For) -> bool:
    """Return True if a loop itself applies gradients, not an inner loop over something else than numbers."""
    loops = (parent for parent in context.names.ancestors(call) if isinstance(parent, ast.For))
    around = next((parent for parent in loops if parent is loop or not is_counter(parent.iter)), None)
    return around is loop and is_application(call)


def _is_sharded_iterable(context: Context, node: ast.expr, where: Where) -> bool:
    """Return True if an iterable, or all values that it can have, are sharded."""
    if any(isinstance(n, ast.Call) and _is_name_of_sharding(context.resolve(n.func, where)) for n in ast.walk(node)):
        return True
    sources = origins(node, where, context.names, follows_methods=True)
    return bool(sources) and all(
        _is_name_of_sharding(origin.resolve()) or _is_iterator_of_sharded(origin) for origin in sources
    )


def _is_iterator_of_sharded(origin: Origin) -> bool:
    inner = argument_of_iter(origin.node)
    values = origins(inner, origin.where, origin.names, follows_methods=True) if inner is not None else []
    return bool(values) and all(_is_name_of_sharding(value.resolve()) for value in values)


def _is_name_of_sharding(name: str | None) -> bool:
    return (name or "").startswith(DISTRIBUTE)
