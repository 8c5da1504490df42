"""Forms in graphs that scripts build, import, and save: names, transposes, checkpoints, frozen models."""

from __future__ import annotations

import pathlib
from typing import Any, Iterator

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.ops import control_flow_util

import npu_shim
from npu_shim._host import host_device
from npu_shim._tensorflow import patches, tf_capture, tf_op_creation
from npu_shim.config.install import install
from npu_shim.ops.cpu_kernels import forms

v1 = tf.compat.v1
IMAGES = np.random.RandomState(1).uniform(-1, 1, (4, 3, 8, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def in_use() -> Iterator[None]:
    forms.use_cpu_forms()
    yield
    patches.restore_all()


def network(images: Any) -> Any:
    """Return the logits of a small network with channels first, groups and dilation."""
    random = np.random.RandomState(2)

    def weights(name: str, *shape: int) -> Any:
        return v1.get_variable(name, initializer=random.uniform(-1, 1, shape).astype(np.float32), use_resource=True)

    y = tf.nn.conv2d(images, weights("first", 3, 3, 3, 4), [1, 1, 1, 1], "SAME", data_format="NCHW", name="one")
    y, *_ = v1.nn.fused_batch_norm(y, weights("scale", 4), weights("offset", 4), data_format="NCHW")
    y = tf.nn.relu(y, name="relu")
    y = tf.nn.conv2d(y, weights("second", 3, 3, 2, 6), [1, 1, 2, 2], "SAME", data_format="NCHW", name="grouped")
    y = v1.nn.max_pool(y, [1, 1, 2, 2], [1, 1, 2, 2], "SAME", data_format="NCHW", name="pool")
    return tf.reduce_mean(y, [2, 3], name="logits")


def looped(images: Any) -> Any:
    """Return the result of two turns of a loop with channels first."""
    weights = tf.ones([3, 3, 3, 3])

    def turn(i: Any, x: Any) -> Any:
        return i + 1, tf.nn.relu(tf.nn.conv2d(x, weights, [1, 1, 1, 1], "SAME", data_format="NCHW"))

    return v1.while_loop(lambda i, _: i < 2, turn, [0, images])[1]


def frozen() -> tuple[Any, np.ndarray]:
    """Return the GraphDef of the network as a GPU's host writes it, without forms, and its result."""
    with tf.Graph().as_default(), v1.Session() as session:
        result = network(tf.constant(IMAGES))
        session.run(v1.global_variables_initializer())
        expected = session.run(result)
        values = {variable.op.name: session.run(variable) for variable in v1.global_variables()}
    patches.restore_all()
    with tf.Graph().as_default() as graph:
        images = v1.placeholder(tf.float32, [None, 3, 8, 8], "images")
        original = v1.get_variable
        v1.get_variable = lambda name, **_: tf.constant(values[name], name=name + "/value")
        try:
            network(images)
        finally:
            v1.get_variable = original
        made = graph.as_graph_def()
    forms.use_cpu_forms()
    return made, expected


def test_nodes_keep_their_names_and_shapes() -> None:
    with tf.Graph().as_default() as graph:
        network(v1.placeholder(tf.float32, [None, 3, 8, 8]))
        for name, shape in {
            "one": [None, 4, 8, 8],
            "relu": [None, 4, 8, 8],
            "grouped": [None, 6, 4, 4],
            "pool": [None, 6, 2, 2],
        }.items():
            assert graph.get_tensor_by_name(name + ":0").shape.as_list() == shape


def test_transposes_between_forms_are_not_computed() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        images, metadata = v1.placeholder(tf.float32, [4, 3, 8, 8]), v1.RunMetadata()
        loss = tf.reduce_sum(network(images))
        gradients = [tf.identity(each) for each in tf.gradients(loss, v1.trainable_variables())]
        session.run(v1.global_variables_initializer())
        options = v1.RunOptions(output_partition_graphs=True)
        session.run([loss, *gradients], {images: IMAGES}, options=options, run_metadata=metadata)
    nodes = [node for graph in metadata.partition_graphs for node in graph.node]
    assert sum("Conv2D" in node.op for node in nodes) >= 2
    # At most those of the images and of the result
    assert sum("Transpose" in node.op for node in nodes) <= 2


def test_a_result_is_where_gradients_start_and_end() -> None:
    """The op that follows depends on the result, not on a tensor inside of its form."""
    with tf.Graph().as_default(), v1.Session() as session:
        images, weights = tf.constant(IMAGES), tf.ones([3, 3, 3, 3])

        def conv(x: Any) -> Any:
            return tf.nn.conv2d(x, weights, [1, 1, 1, 1], "SAME", data_format="NCHW")

        @tf.custom_gradient
        def square(x: Any) -> Any:
            return x * x, lambda upstream: upstream * 3.0 * x

        middle = conv(images)
        after = tf.nn.relu(middle)
        loss = tf.reduce_sum(conv(after))
        of_middle, of_after = session.run(tf.gradients(loss, [middle, after]))
        values, counts = session.run([middle, tf.gradients(loss, after)[0]])
        np.testing.assert_allclose(of_after, counts)
        np.testing.assert_allclose(of_middle, counts * (values > 0))
        assert tf.gradients(loss, images, stop_gradients=[after]) == [None]
        fed = np.random.RandomState(3).uniform(-1, 1, IMAGES.shape)
        np.testing.assert_allclose(session.run(loss, {after: fed}), np.sum(counts * fed), rtol=1e-4)
        (slope,) = tf.gradients(square(middle), middle)
        np.testing.assert_allclose(session.run(slope), 3.0 * values, rtol=1e-6)


def test_a_frozen_model_is_imported() -> None:
    graph_def, expected = frozen()
    assert any(node.attr["data_format"].s == b"NCHW" for node in graph_def.node if node.op == "Conv2D")
    with tf.Graph().as_default(), v1.Session() as session:
        images, logits = tf.import_graph_def(graph_def, return_elements=["images:0", "logits:0"], name="")
        np.testing.assert_allclose(session.run(logits, {images: IMAGES}), expected, rtol=1e-5, atol=1e-6)
        assert session.run("grouped:0", {images: IMAGES}).shape == (4, 6, 4, 4)


def test_a_meta_graph_trains(tmp_path: pathlib.Path) -> None:
    """Its GraphDef has the nodes of gradients, with channels first as well."""
    patches.restore_all()
    with tf.Graph().as_default():
        labels = tf.constant([0, 1, 2, 3])
        logits = network(tf.constant(IMAGES))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
        with tf.name_scope("training"):
            v1.train.GradientDescentOptimizer(0.05).minimize(loss, name="train")
        v1.train.export_meta_graph(str(tmp_path / "model.meta"), saver_def=v1.train.Saver().saver_def)
    forms.use_cpu_forms()

    def losses(is_imported: bool) -> list[float]:
        with tf.Graph().as_default() as graph, v1.Session() as session:
            if is_imported:
                v1.train.import_meta_graph(str(tmp_path / "model.meta"))
                train = graph.get_operation_by_name("training/train")
            else:
                logits = network(tf.constant(IMAGES))
                loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant([0, 1, 2, 3]), logits=logits)
                loss = tf.reduce_mean(loss, name="loss")
                train = v1.train.GradientDescentOptimizer(0.05).minimize(loss)
            session.run(v1.global_variables_initializer())
            return [session.run(["loss:0", train])[0] for _ in range(4)]

    found, wanted = losses(True), losses(False)
    assert wanted[-1] < wanted[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.twice
def test_a_saved_graph_trains_without_npu_shim(tmp_path: pathlib.Path) -> None:
    """The graph of a rehearsal has only nodes of TensorFlow, and gradients are computed from them."""
    path = str(tmp_path / "model.meta")
    with tf.Graph().as_default():
        tf.reduce_sum(tf.square(network(tf.constant(IMAGES))), name="loss")
        v1.train.export_meta_graph(path, saver_def=v1.train.Saver().saver_def)

    def trained() -> list[Any]:
        with tf.Graph().as_default() as graph, v1.Session() as session:
            v1.train.import_meta_graph(path)
            loss, variables = graph.get_tensor_by_name("loss:0"), v1.trainable_variables()
            slopes = tf.gradients(loss, variables)
            train = v1.train.GradientDescentOptimizer(1e-4).apply_gradients(zip(slopes, variables))
            second = tf.gradients(tf.reduce_sum(tf.square(slopes[0])), variables)
            assert not any("_gradient_op_type" in node.attr for node in graph.as_graph_def().node)
            session.run(v1.global_variables_initializer())
            found = session.run(second)
            session.run(train)
            return [*found, session.run(loss)]

    with_forms = trained()
    patches.restore_all()
    for one, other in zip(with_forms, trained()):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


def test_weights_of_a_checkpoint_keep_their_names_and_layout(tmp_path: pathlib.Path) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        network(tf.constant(IMAGES))
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, str(tmp_path / "model"))
    assert {name: shape for name, shape in tf.train.list_variables(path)} == {
        "first": [3, 3, 3, 4],
        "second": [3, 3, 2, 6],
        "scale": [4],
        "offset": [4],
    }


def test_install_uses_the_forms_and_uninstall_drops_them() -> None:
    patches.restore_all()
    assert not tf_op_creation._FORMS.of_graphs
    install()
    assert tf_op_creation._FORMS.of_graphs
    npu_shim.uninstall()
    assert not tf_op_creation._FORMS.of_graphs


def test_ops_that_the_cpu_computes_are_themselves() -> None:
    """Node by node: no name, no seed and no read of a variable moves."""

    def graph_def() -> Any:
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(1)
            weights = v1.get_variable("w", [3, 3, 2, 2], use_resource=True)
            y = tf.nn.conv2d(np.zeros([1, 5, 5, 2], np.float32), weights, [1, 1, 1, 1], "SAME", name="conv")
            y = tf.nn.bias_add(tf.nn.relu(y, name="relu") * 2.0 + 1.0, [1.0, 2.0])
            y = tf.nn.conv2d_transpose(y, weights, [1, 10, 10, 2], strides=[1, 2, 2, 1])
            y = tf.nn.dropout(v1.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), rate=0.5)
            v1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(y))
            return graph.as_graph_def()

    with_forms = graph_def()
    patches.restore_all()
    assert with_forms == graph_def()


@pytest.mark.parametrize("what", ["ops", "gradients", "second gradients", "an optimizer", "a loop", "an import"])
def test_random_ops_behind_forms_keep_their_seeds(what: str) -> None:
    """Each seed of TensorFlow 1 counts the ops before it: those of forms, of their gradients, and of imported ones."""
    graph_def, _ = frozen()

    def seeds() -> list[Any]:
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(1)
            for images in (v1.placeholder(tf.float32, [4, 3, 8, 8]), tf.constant(IMAGES)):
                with v1.variable_scope("again" if images.op.type == "Const" else "once"):
                    if what == "an import":
                        tf.import_graph_def(graph_def, {"images": images}, ["logits:0"])
                    elif what == "a loop":
                        tf.gradients(looped(images), images)
                    else:
                        loss = tf.reduce_sum(network(images))
                    if what.endswith("gradients"):
                        (slopes,) = tf.gradients(loss, images)
                    if what == "second gradients":
                        tf.gradients(tf.reduce_sum(slopes * slopes), v1.trainable_variables())
                    elif what == "an optimizer":
                        v1.train.AdamOptimizer().minimize(loss)
                tf.random.uniform([2])
            return [op.get_attr("seed2") for op in graph.get_operations() if op.type == "RandomUniform"]

    with_forms = seeds()
    patches.restore_all()
    assert len(with_forms) == 2 and with_forms == seeds()


@pytest.mark.parametrize("what", ["a branch", "a loop", "a function"])
def test_random_ops_in_functions_and_behind_them_keep_their_seeds(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients let a function return what it has computed: no more of it than those of the op itself need."""
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", True)

    def seeds() -> list[int]:
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(1)
            images = v1.get_variable("images", initializer=IMAGES, use_resource=False)
            weights = v1.get_variable("w", [3, 3, 3, 3], use_resource=True)

            def block(x: Any) -> Any:
                y = tf.nn.conv2d(x, weights, [1, 1, 1, 1], "SAME", data_format="NCHW")
                y = v1.nn.fused_batch_norm(y, tf.ones([3]), tf.zeros([3]), data_format="NCHW")[0]
                y = tf.nn.max_pool2d(tf.nn.relu(y) + tf.random.uniform([1]), 2, 1, "SAME", "NCHW")
                return y * tf.random.uniform([1])

            if what == "a branch":
                y = tf.cond(tf.reduce_sum(images) > 0, lambda: block(images), lambda: images * tf.random.uniform([1]))
            elif what == "a loop":
                y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, block(y)), [0, images])[1]
            else:
                y = tf.function(block, autograph=False)(images)
            for points in (images, v1.trainable_variables()):
                tf.gradients(y * tf.random.uniform([1]), points)
            tf.random.uniform([1])
            graph_def = graph.as_graph_def()
        nodes = [*graph_def.node, *(node for each in graph_def.library.function for node in each.node_def)]
        return sorted(node.attr["seed2"].i for node in nodes if node.op == "RandomUniform")

    with_forms = seeds()
    patches.restore_all()
    assert len(with_forms) >= 6 and with_forms == seeds()


def test_a_graph_takes_an_eager_tensor_beside_the_result_of_a_form() -> None:
    with context.eager_mode():
        images, offset = tf.constant(IMAGES), tf.constant(IMAGES[:1, :, :1, :1])

        @tf.function
        def pooled(x: Any) -> Any:
            return tf.nn.max_pool2d(x, 1, 1, "SAME", "NCHW") - v1.raw_ops.Sub(x=offset, y=x)

        np.testing.assert_array_equal(pooled(images), IMAGES - (IMAGES[:1, :, :1, :1] - IMAGES))


def test_a_host_with_a_card_does_not_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    patches.restore_all()
    monkeypatch.setattr(host_device, "detect_without_import", lambda: host_device.Device("npu", "a test"))
    forms.use_cpu_forms()
    assert not tf_op_creation._FORMS.of_graphs


def test_assess_knows_the_work_of_ops_with_channels_first() -> None:
    patches.restore_all()  # assess looks at the graph of the script

    def flops(is_first: bool) -> dict[str, int]:
        name = "NCHW" if is_first else "NHWC"
        strides = [1, 1, 2, 3] if is_first else [1, 2, 3, 1]
        with tf.Graph().as_default() as graph:
            x = tf.zeros([2, 3, 8, 9] if is_first else [2, 8, 9, 3])
            y = tf.nn.conv2d(x, tf.zeros([3, 3, 3, 4]), strides, "SAME", data_format=name)
            y = tf.nn.avg_pool(v1.nn.max_pool(y, strides, strides, "SAME", name), strides, strides, "SAME", name)
            tf.gradients(y, x)
        nodes = graph.as_graph_def().node
        kinds = ("Conv2D", "MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad")
        return {node.op: tf_capture.flops_of_node(graph, node) for node in nodes if node.op in kinds}

    assert flops(True) == flops(False)
    assert len(flops(True)) == 5 and all(flops(True).values())


def test_a_wrong_call_raises_the_error_of_tensorflow() -> None:
    with tf.Graph().as_default(), pytest.raises((ValueError, TypeError)):
        tf.nn.conv2d(tf.zeros([1, 2, 5]), tf.zeros([3, 3, 2, 2]), [1, 1, 1, 1], "SAME", data_format="NCHW")


if tf.__version__ >= "2":

    def test_a_saved_function_is_loaded_and_differentiated(tmp_path: pathlib.Path) -> None:
        module = tf.Module()
        module.weights = tf.Variable(np.random.RandomState(2).uniform(-1, 1, (3, 3, 3, 4)).astype(np.float32))

        @tf.function(input_signature=[tf.TensorSpec([None, 3, 8, 8], tf.float32)])
        def call(images: Any) -> Any:
            y = tf.nn.conv2d(images, module.weights, [1, 1, 2, 2], "SAME", "NCHW")
            return tf.nn.max_pool2d(tf.nn.relu(y), 2, 2, "SAME", "NCHW")

        module.call = call
        with context.eager_mode():
            patches.restore_all()
            tf.saved_model.save(module, str(tmp_path))
            forms.use_cpu_forms()
            loaded = tf.saved_model.load(str(tmp_path))
            results = []
            for each in (module, loaded):
                with tf.GradientTape() as tape:
                    value = (
                        each.call(tf.constant(IMAGES)) if each is loaded else call.python_function(tf.constant(IMAGES))
                    )
                results.append([value, tape.gradient(value, each.weights)])
        for one, other in zip(*results):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)

    @pytest.mark.once
    def test_keras_trains_with_channels_first_as_with_channels_last() -> None:
        def losses(data_format: str) -> list[float]:
            layers, first = tf.keras.layers, data_format == "channels_first"
            tf.keras.utils.set_random_seed(1) if hasattr(tf.keras.utils, "set_random_seed") else tf.random.set_seed(1)
            model = tf.keras.Sequential(
                [
                    tf.keras.Input((4, 8, 8) if first else (8, 8, 4)),
                    layers.Conv2D(6, 3, padding="same", groups=2, data_format=data_format),
                    layers.BatchNormalization(axis=1 if first else -1),
                    layers.ReLU(),
                    layers.MaxPool2D(data_format=data_format),
                    layers.SeparableConv2D(6, 3, padding="same", data_format=data_format),
                    layers.Conv2D(5, 3, padding="same", dilation_rate=2, data_format=data_format),
                    layers.Conv2DTranspose(4, 3, strides=2, data_format=data_format),
                    layers.GlobalAveragePooling2D(data_format=data_format),
                    layers.Dense(3),
                ]
            )
            random = np.random.RandomState(4)
            shape = (16, 4, 8, 8)
            images, labels = random.uniform(-1, 1, shape).astype(np.float32), random.randint(0, 3, 16)
            for weights in model.weights:
                if len(weights.shape) > 1:
                    weights.assign(random.uniform(-0.5, 0.5, weights.shape))
            model.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            images = images if first else np.moveaxis(images, 1, -1)
            return list(model.fit(images, labels, 8, epochs=2, shuffle=False, verbose=0).history["loss"])

        np.testing.assert_allclose(losses("channels_first"), losses("channels_last"), rtol=1e-4)
