"""The ops of the device that a training step of TensorFlow becomes, and their time."""

from __future__ import annotations

import collections
from typing import Any, Callable

import pytest
import tensorflow as tf

from npu_shim.import_hook import tool
from npu_shim.ops import dropout, gelu
from npu_shim.rehearsal.assess import flat, loops, operators, precision
from npu_shim.rehearsal.predict import device_ops, of_graph, op_times, step
from npu_shim.rehearsal.predict.device_ops import Run
from npu_shim.rehearsal.predict.phases import BACKWARD, FORWARD, UPDATE

v1 = tf.compat.v1
Build = Callable[[Any], Any]


def runs_of(build: Build, *shape: int, mixed: bool = True, family: str = "910", optimizer: Any = None) -> list[Run]:
    """Return the ops of a step that trains a function of an input of a shape."""
    tool.make_importable()
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, *shape[1:]], name="x")
        loss = tf.reduce_mean(build(x))
        train = (optimizer or v1.train.MomentumOptimizer(0.1, 0.9)).minimize(loss)
        nodes = flat.flatten(graph, [train], {"x:0": shape})
    half = precision.are_nodes_in_half(nodes.nodes, operators.built_in_lists()) if mixed else [False] * len(nodes.nodes)
    return device_ops.ops_of_step(nodes, half, (), loops.loop_trip_counts(nodes.nodes), family)


def counts(runs: list[Run]) -> dict[str, int]:
    number: collections.Counter[str] = collections.Counter()
    for run in runs:
        number[run.op.type] += run.count
    return dict(number)


def variable(name: str, *shape: int) -> Any:
    return v1.get_variable(name, list(shape), use_resource=True)


def normed_convolution(x: Any, name: str = "a", depth: int = 32) -> Any:
    y = tf.nn.conv2d(x, variable(name + "w", 3, 3, int(x.shape[-1]), depth), strides=[1, 1, 1, 1], padding="SAME")
    return v1.nn.fused_batch_norm(y, variable(name + "g", depth), variable(name + "b", depth), is_training=True)[0]


def residual(x: Any) -> Any:
    """Two blocks as those of ResNet: the compiler fuses their convolutions, sums and activations."""
    x = tf.nn.relu(normed_convolution(x))
    for name in "bc":
        x = tf.nn.relu(normed_convolution(tf.nn.relu(normed_convolution(x, name + "1")), name + "2") + x)
    return tf.matmul(tf.reduce_mean(x, [1, 2]), variable("out", 32, 16))


def test_a_residual_network_has_the_fused_ops_of_public_profiles() -> None:
    number = counts(runs_of(residual, 8, 16, 16, 32))
    assert number["FusionOp_Conv2D_BNTrainingReduce"] == 5
    assert (number["FusionOp_BNTrainingUpdate_ReLUV2"], number["FusionOp_BNTrainingUpdate_Add_ReLUV2"]) == (3, 2)
    assert (number["BNTrainingUpdateGrad"], number["BNTrainingReduceGrad"], number["Conv2DBackpropFilter"]) == (5, 5, 5)
    assert number["FusionOp_Conv2DBackpropInput_ReluGradV2"] == 2
    assert number["FusionOp_Conv2DBackpropInput_AddN_ReluGradV2"] == 2, "the gradients of both paths of a block"
    assert number["ApplyMomentum"] == 16
    assert not {"Conv2D", "BNTrainingReduce", "BNTrainingUpdate", "ReduceSumD"} & set(number)


def test_images_and_filters_lie_in_blocks_and_move_once() -> None:
    runs = runs_of(residual, 8, 16, 16, 3)
    first = next(run for run in runs if run.op.type == "FusionOp_Conv2D_BNTrainingReduce")
    image, filters = first.op.inputs
    assert (image.layout, image.shape, image.dtype) == ("NC1HWC0", (8, 1, 16, 16, 16), "FLOAT16")
    assert (filters.layout, filters.shape) == ("FRACTAL_Z", (9, 2, 16, 16))
    update = next(run for run in runs if run.op.type == "ApplyMomentum" and len(run.op.inputs[0].shape) == 4)
    assert update.op.inputs[0].layout == "FRACTAL_Z" and update.op.inputs[0].dtype == "FLOAT32"
    moved = [run.op.inputs[0].shape for run in runs if run.op.type == "TransData"]
    assert [shape for shape in moved if 256 in (shape[0], *shape[1:3]) or shape[-1] == 3] == [(8, 16, 16, 3)], "once"


def test_mixed_precision_casts_the_input_and_each_filter_and_nothing_between() -> None:
    assert counts(runs_of(residual, 8, 16, 16, 32))["Cast"] == 1 + 5 + 1 + 2, "and around the means"
    assert "Cast" not in counts(runs_of(residual, 8, 16, 16, 32, mixed=False))


def test_a_convolution_in_float32_keeps_its_sums_apart() -> None:
    number = counts(runs_of(residual, 8, 16, 16, 32, mixed=False, family="910B"))
    assert (number["Conv2D"], number["BNTrainingReduce"]) == (5, 5)


def test_constants_views_and_reductions_of_nothing_cost_nothing() -> None:
    def scaled(x: Any) -> Any:
        size = tf.cast(tf.shape(variable("w", 64))[0] * 2, tf.float32)
        return tf.reshape(x * variable("w2", 64) + x, [-1, 8, 8]) * (1.0 / tf.sqrt(size))

    number = counts(runs_of(scaled, 4, 64, mixed=False))
    assert not {"Shape", "Sqrt", "RealDiv", "Reshape", "Const", "Cast"} & set(number)
    assert number["ReduceSumD"] == 1, "the gradient of the vector; nothing reads that of the scalar"


def test_a_dense_layer_has_its_bias_inside_and_a_product_for_each_gradient() -> None:
    def dense(x: Any) -> Any:
        for name, width in (("a", 128), ("b", 64)):
            weights = variable(name, int(x.shape[-1]), width)
            x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights), variable(name + "b", width)))
        return x

    runs = runs_of(dense, 32, 256)
    number = counts(runs)
    assert number["FusionOp_MatMul_ReLUV2"] == 2 and "BiasAdd" not in number
    assert sum(count for type, count in number.items() if "MatMul" in type) == 2 + 3, "nothing reads the gradient of x"
    update = [run.op for run in runs if run.op.type == "ApplyMomentum"]
    assert {tensor.layout for op in update for tensor in op.inputs} == {"ND"}, "variables stay where they are"
    assert next(run for run in runs if "MatMul" in run.op.type).op.inputs[0].layout == "FRACTAL_NZ"
    plain = [run for run in runs_of(dense, 32, 256, mixed=False, family="910B") if "MatMul" in run.op.type]
    assert {tensor.layout for run in plain for tensor in run.op.inputs} == {"ND"}


def attended(x: Any) -> Any:
    """An attention with dropout, a layer normalization and a gelu."""
    length, width = x.shape.as_list()[1:]

    def split(name: str) -> Any:
        y = tf.matmul(tf.reshape(x, [-1, width]), variable(name, width, width))
        return tf.transpose(tf.reshape(y, [-1, length, 4, width // 4]), [0, 2, 1, 3])

    shares = tf.nn.softmax(tf.matmul(split("q"), split("k"), transpose_b=True))
    y = tf.transpose(tf.matmul(dropout.dropout(shares, 0.9), split("v")), [0, 2, 1, 3])
    y = gelu.gelu(tf.matmul(tf.reshape(y, [-1, width]), variable("o", width, width)))
    mean, spread = tf.nn.moments(y, [-1], keepdims=True)
    return tf.nn.batch_normalization(y, mean, spread, variable("beta", width), variable("gamma", width), 1e-6)


@pytest.fixture
def plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let operators of npu_shim be those of TensorFlow, as in a script that is assessed."""
    monkeypatch.setenv("NPU_SHIM_KERNELS", "plain")


@pytest.mark.usefixtures("plain_kernels")
def test_an_attention_has_the_ops_that_the_vendor_composes() -> None:
    number = counts(runs_of(attended, 8, 64, 64))
    assert (number["LayerNorm"], number["LayerNormXBackpropV2"], number["LayerNormBetaGammaBackpropV2"]) == (1, 1, 1)
    assert (number["DropOutGenMask"], number["DropOutDoMask"]) == (1, 2)
    assert number["SoftmaxGrad"] == 1 and number["SoftmaxV2"] == 1
    assert number["ConfusionTransposeD"] == 8 and "TransposeD" not in number
    assert "FusionOp_MatMul_GeLU" in number or "Gelu" in number
    assert sum(count for type, count in number.items() if type.endswith(("GeluGrad", "GeLUGrad"))) == 1
    assert not {"SquaredDifference", "Exp", "Rsqrt", "RandomUniform", "Select"} & set(number)


def test_phases_follow_the_graph() -> None:
    runs = runs_of(residual, 8, 16, 16, 32)
    phases = {run.op.type: run.phase for run in runs}
    assert phases["FusionOp_Conv2D_BNTrainingReduce"] == FORWARD
    assert phases["Conv2DBackpropFilter"] == phases["BNTrainingReduceGrad"] == BACKWARD
    assert phases["ApplyMomentum"] == UPDATE


def test_an_optimizer_of_assignments_is_an_update_without_names_of_gradients() -> None:
    tool.make_importable()
    with tf.Graph().as_default() as graph:
        x, w = v1.placeholder(tf.float32, [8, 16], name="x"), variable("w", 16, 4)
        with v1.name_scope("forward"):
            y = tf.matmul(x, w)
        with v1.name_scope("other"):  # a gradient by hand, with an operator that only gradients have
            dy = tf.raw_ops.TanhGrad(y=tf.tanh(y), dy=y)
            gradient = tf.matmul(x, dy, transpose_a=True)
            train = w.assign_sub(0.1 * gradient).op
        nodes = flat.flatten(graph, [train], {"x:0": (8, 16)})
    runs = device_ops.ops_of_step(nodes, [False] * len(nodes.nodes), (), {}, "910")
    phases = [(run.op.type.split("_")[-1], run.phase) for run in runs if run.op.type != "TransData"]
    assert ("TanhGrad", BACKWARD) in phases and ("AssignSub", UPDATE) in phases
    assert [phase for type, phase in phases if "MatMul" in type or type == "Tanh"][:1] == [FORWARD]


def test_a_loop_counts_as_often_as_it_runs() -> None:
    def repeated(x: Any) -> Any:
        w = variable("w", 64, 64)
        return tf.while_loop(lambda i, y: i < 7, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w))), [0, x])[1]

    was_control_flow_v2 = v1.control_flow_v2_enabled()
    v1.enable_control_flow_v2()
    try:
        runs = runs_of(repeated, 16, 64)
    finally:
        if not was_control_flow_v2:
            v1.disable_control_flow_v2()
    forward = [run for run in runs if "MatMul" in run.op.type and run.phase == FORWARD]
    assert {run.count for run in forward} == {7}


@pytest.mark.usefixtures("plain_kernels")
@pytest.mark.parametrize("build, shape", [(residual, (16, 16, 32)), (attended, (64, 64))])
def test_a_larger_batch_is_never_faster_and_the_same_step_is_the_same(build: Build, shape: tuple[int, ...]) -> None:
    device = op_times.processor("Ascend910A")
    took = []
    for batch in (1, 2, 3, 8, 16, 64, 256):
        runs = runs_of(build, batch, *shape)
        found = step.predict_step(runs, device, lambda node: ())
        assert found == step.predict_step(runs, device, lambda node: ())
        assert found.device.low < found.device.value < found.step < found.device.high
        assert sum(share.seconds for share in found.phases) == pytest.approx(found.device.value)
        assert sum(share.seconds for share in found.limits) == pytest.approx(found.device.value)
        assert sum(op.seconds for op in found.ops) == pytest.approx(found.device.value)
        assert sum(op.count for op in found.ops) == found.op_runs
        took.append(found.step)
    assert took == sorted(took) and took[-1] < 256 * took[0]
    assert [device_ops.Run.__name__ for _ in runs] and runs == runs_of(build, 256, *shape)


def test_the_precision_is_that_of_the_options_or_the_default_of_the_processor() -> None:
    assert of_graph.precision_mode({}, "910") == "allow_fp32_to_fp16"
    assert of_graph.precision_mode({}, "910B") == "must_keep_origin_dtype"
    given = {"precision_mode": b"force_fp32", "precision_mode_v2": b"mixed_bfloat16"}
    assert of_graph.precision_mode(given, "910B") == "mixed_bfloat16"


def test_rows_by_indices_and_reshaped_filters_are_plain_ops() -> None:
    def build(x: Any) -> Any:
        rows = tf.gather_nd(tf.matmul(x, variable("w", 64, 64)), [[0, 1], [2, 3]])
        images = tf.reshape(x, [-1, 8, 8, 1])
        kernel = tf.reshape(variable("k", 3 * 3 * 16), [3, 3, 1, 16])
        return tf.reduce_mean(rows**2) + tf.reduce_mean(tf.nn.conv2d(images, kernel, [1, 1, 1, 1], "SAME"))

    number = counts(runs_of(build, 4, 64))
    assert number["ScatterNd"] == 1 and number["Conv2DBackpropFilter"] == 1
