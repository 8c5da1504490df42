"""The prediction of a step: monotone, gains of advice, proposals, and their edit of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from npu_shim._tensorflow.tf_api import tf, v1
from npu_shim.distributed.ranktable.model import Device, RankTable, Server
from npu_shim.rehearsal.assess.flat import Flat, flatten
from npu_shim.rehearsal.assess.operators import built_in_lists
from npu_shim.rehearsal.predict import gains, op_times
from npu_shim.rehearsal.predict.configuration_edit import (
    ESTIMATOR,
    FUNCTION,
    KERAS,
    KERAS_SESSION,
    SESSION,
    edit_of_configuration,
    trainer_of_function,
)
from npu_shim.rehearsal.predict.of_graph import Step
from npu_shim.rehearsal.predict.other_batches import flat_at_batch
from npu_shim.rehearsal.predict.plan import predict_training
from npu_shim.rehearsal.predict.prediction import Prediction, Proposal

BATCH = 32


def gelu(x: Any) -> Any:
    """Return gelu by its formula."""
    with tf.name_scope("gelu"):
        return x * 0.5 * (1.0 + tf.math.erf(x / 1.4142135))


def network(width: int = 512, depth: int = 3, dropout: bool = False, reads: bool = True) -> Flat:
    """Return a step of dense layers with Adam, that reads an iterator or is fed."""
    graph = tf.Graph()
    with graph.as_default():
        if reads:
            rows = tf.data.Dataset.from_tensors(tf.zeros([width])).repeat().batch(BATCH, drop_remainder=True)
            hidden = v1.data.make_one_shot_iterator(rows).get_next()
        else:
            hidden = v1.placeholder(tf.float32, [None, width], name="rows")
        for layer in range(depth):
            hidden = tf.matmul(hidden, v1.get_variable(f"kernel_{layer}", [width, width]))
            hidden = tf.nn.dropout(gelu(hidden), rate=0.1) if dropout else tf.nn.relu(hidden)
        train = v1.train.AdamOptimizer().minimize(tf.reduce_mean(hidden**2))
    return flatten(graph, [train], {} if reads else {"rows:0": (BATCH, width)})


def convolutions(*channels: int, depthwise: int = 0) -> Flat:
    """Return a step of convolutions of images with so many channels, and a depthwise one with so many."""
    graph = tf.Graph()
    with graph.as_default():
        hidden = v1.placeholder(tf.float32, [256, 28, 28, 3], name="images")
        for layer, (before, after) in enumerate(zip((3, *channels), channels)):
            kernel = v1.get_variable(f"kernel_{layer}", [3, 3, before, after])
            hidden = tf.nn.relu(v1.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
        if depthwise:
            hidden = tf.nn.depthwise_conv2d(
                hidden, v1.get_variable("kernel", [3, 3, channels[-1], depthwise]), [1, 1, 1, 1], "SAME"
            )
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(hidden**2))
    return flatten(graph, [train], {})


def step_of(flat: Flat, processor: str = "Ascend910B3", trainer: str = SESSION, **parameters: Any) -> Step:
    """Return the step of a network for a processor."""
    return Step(flat, [], {}, built_in_lists(), parameters, op_times.processor(processor), "", trainer)


def gains_of(prediction: Prediction) -> dict[str, float]:
    """Return the seconds of each gain."""
    return {gain.advice: gain.seconds for gain in prediction.gains}


@pytest.mark.parametrize("processor", ["Ascend910A", "Ascend910B4"])
def test_a_larger_batch_is_never_a_faster_step(processor: str) -> None:
    flat = network()
    batches = [1, 8, 16, 17, 32, 64, 256, 2048]
    took = [step_of(flat_at_batch(flat, BATCH, batch), processor).seconds() for batch in batches]
    assert took == sorted(took) and took[-1] > 1.2 * took[0]


def test_all_parts_of_a_prediction_agree() -> None:
    known = predict_training(step_of(network(2048)), 1e6, 8)
    assert known.device.value <= known.step.value - known.host and known.host == gains.CALL_SECONDS
    assert known.examples is not None and known.examples.value == pytest.approx(BATCH / known.step.value)
    assert known.examples.low < known.examples.value < known.examples.high
    assert known.memory.batch == BATCH and (known.memory.largest_batch or 0) > 1000 * BATCH
    assert [row.ranks for row in known.ranks] == [2, 4, 8, 16, 32, 64]
    assert all(row.seconds >= known.step.value and row.efficiency <= 1 for row in known.ranks)
    assert known.ranks[2].collectives == pytest.approx(2e-3, rel=0.9), "50 MB of gradients in a server"
    assert [gain.seconds for gain in known.gains] == sorted((gain.seconds for gain in known.gains), reverse=True)
    assert all(0 < gain.seconds < known.step.value for gain in known.gains)


def test_the_rank_table_is_among_the_ranks() -> None:
    servers = (Server(f"10.0.0.{i}", tuple(Device(6 * i + j, j) for j in range(6))) for i in (0, 1))
    known = predict_training(step_of(network()), None, 12, RankTable(tuple(servers)))
    assert 12 in [row.ranks for row in known.ranks]


def test_gains_say_what_an_advice_would_save() -> None:
    odd = gains_of(predict_training(step_of(network(500, dropout=True)), 10.0))
    assert set(odd) == {gains.LOOPS, gains.INPUT, "npu_ops.dropout", "npu_unary_ops.gelu"}
    assert gains.SIZES in gains_of(predict_training(step_of(flat_at_batch(network(500), BATCH, 8192))))
    assert 0.05 < odd[gains.INPUT] < 0.1, "ten batches a second"
    eight = predict_training(step_of(network(500, dropout=True)), 10.0, 8)
    assert eight.input_ranks == 8 and gains_of(eight)[gains.INPUT] == pytest.approx(odd[gains.INPUT] + 0.7)
    even = gains_of(predict_training(step_of(network(512, reads=False), precision_mode=b"allow_mix_precision")))
    assert set(even) == set(), "nothing is left to gain"


def test_sizes_gain_by_the_channels_of_filters_but_those_of_images() -> None:
    seconds = {
        channels: gains_of(predict_training(step_of(convolutions(*channels)))).get(gains.SIZES, 0.0)
        for channels in ((32, 48), (24, 48), (32, 40), (24, 40))
    }
    assert seconds[32, 48] == 0.0, "the three channels of an image are no advice"
    assert 0.0 < seconds[32, 40] < seconds[24, 40] and 0.0 < seconds[24, 48] < seconds[24, 40]
    assert gains.SIZES not in gains_of(predict_training(step_of(convolutions(16, depthwise=3))))


def test_mixed_precision_gains_where_the_matrix_unit_limits() -> None:
    large = step_of(flat_at_batch(network(2048), BATCH, 8192))
    known = predict_training(large)
    saved = gains_of(known)[gains.PRECISION]
    assert saved == pytest.approx(large.seconds() - gains.in_mixed_precision(large).seconds())
    [option] = [proposal for proposal in known.proposals if proposal.option == "precision_mode"]
    assert (option.value, option.seconds) == ("allow_mix_precision", saved) and saved > 0.3 * known.step.value


def test_a_loop_saves_what_the_host_needs_for_the_other_steps() -> None:
    known = predict_training(step_of(network(), precision_mode="allow_mix_precision"))
    [loop] = [proposal for proposal in known.proposals if proposal.option == "iterations_per_loop"]
    number = int(loop.value)
    assert gains.CALL_SECONDS / number <= 0.05 * (known.step.value - known.host + gains.CALL_SECONDS / number)
    assert loop.seconds == pytest.approx(known.host * (1 - 1 / number))
    in_loop = predict_training(step_of(network(), iterations_per_loop=10))
    assert in_loop.host == pytest.approx(gains.CALL_SECONDS / 10) and gains.LOOPS not in gains_of(in_loop)
    assert gains.LOOPS not in gains_of(predict_training(step_of(network(), trainer=FUNCTION)))


def test_the_proposed_batch_fits_and_is_faster_for_each_example() -> None:
    known = predict_training(step_of(network(), iterations_per_loop=1000))
    [batch] = [proposal for proposal in known.proposals if proposal.option == "batch size"]
    size = int(batch.value)
    assert size & (size - 1) == 0 and BATCH < size <= (known.memory.largest_batch or 0)
    larger = step_of(flat_at_batch(network(), BATCH, size)).seconds()
    assert larger / size < 0.97 * (known.step.value - known.host) / BATCH
    small = op_times.processor("Ascend910B3")._replace(memory=9_700_000)
    full = predict_training(step_of(network())._replace(device=small))
    assert "batch size" not in [proposal.option for proposal in full.proposals]


def test_a_split_hides_more_of_the_all_reduce() -> None:
    large = flat_at_batch(network(4096, 4), BATCH, 16384)
    known = predict_training(step_of(large, "Ascend910A"), None, 8)
    [split] = [proposal for proposal in known.proposals if proposal.option == "set_split_strategy_by_size"]
    assert sum(float(share) for share in split.value.strip("[]").split(",")) == pytest.approx(100)
    assert 0 < split.seconds <= known.ranks[2].exposed
    assert "set_split_strategy_by_size" not in {each.option for each in predict_training(step_of(large)).proposals}


PROPOSALS = [
    Proposal("precision_mode", "allow_mix_precision", 0.1, ""),
    Proposal("iterations_per_loop", "20", 0.1, ""),
    Proposal("batch size", "128", 0.1, ""),
    Proposal("set_split_strategy_by_size", "[50, 50]", 0.1, ""),
]


@pytest.mark.parametrize(
    "trainer, lines",
    [
        (
            ESTIMATOR,
            'config = NPURunConfig(..., precision_mode="allow_mix_precision", iterations_per_loop=20, '
            "enable_data_pre_proc=True)",
        ),
        (
            SESSION,
            'config = npu_shim.session_config(config, precision_mode="allow_mix_precision", iterations_per_loop=20, '
            "enable_data_pre_proc=True)\ntrain_op = util.set_iteration_per_loop(sess, train_op, 20)",
        ),
    ],
)
def test_the_edit_sets_the_options_of_a_script(trainer: str, lines: str) -> None:
    around = "# batch size: 128 in place of 32\n{}\nfrom npu_shim.hccl.split.api import set_split_strategy_by_size\n"
    edit = edit_of_configuration(trainer, 32, PROPOSALS)
    assert "\n".join(edit) == around.format(lines) + "set_split_strategy_by_size([50, 50])"
    compile("\n".join(edit), "edit", "exec")
    assert edit_of_configuration(trainer, 32, []) == []


def test_keras_in_graph_mode_has_the_config_of_a_session_and_no_loop() -> None:
    config = 'config = npu_shim.session_config(config, precision_mode="allow_mix_precision")'
    assert edit_of_configuration(KERAS_SESSION, 32, PROPOSALS[:1]) == [config]
    assert gains.LOOPS not in gains_of(predict_training(step_of(network(), trainer=KERAS_SESSION)))


def test_the_edit_of_tensorflow_2() -> None:
    proposals = [PROPOSALS[0], Proposal("steps_per_execution", "20", 0.1, "")]
    assert edit_of_configuration(KERAS, 32, proposals) == [
        'npu.global_options().precision_mode = "allow_mix_precision"',
        "model.compile(..., steps_per_execution=20)",
    ]
    assert (trainer_of_function("train_function (2)"), trainer_of_function("step")) == (KERAS, FUNCTION)


def test_a_script_that_loops_already_gains_no_batch_for_calls() -> None:
    def saved(**parameters: int) -> float:
        proposals = predict_training(step_of(network(2048, depth=2), **parameters)).proposals
        return sum(proposal.seconds for proposal in proposals if proposal.option == "batch size")

    assert saved(iterations_per_loop=100) < saved()


def test_sizes_that_only_values_decide_are_said_and_give_no_batch() -> None:
    with tf.Graph().as_default() as graph:
        rows = v1.placeholder(tf.float32, [BATCH, 64], name="rows")
        chosen = tf.boolean_mask(rows, rows[:, 0] > 0)
        loss = tf.reduce_mean(tf.matmul(chosen, v1.get_variable("w", [64, 64])) ** 2)
        train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    known = predict_training(step_of(flatten(graph, [train], {"rows:0": (BATCH, 64)})))
    assert known.unknown_sizes > 0 and known.examples is None and known.memory.largest_batch is None
    assert "batch size" not in [proposal.option for proposal in known.proposals]
    assert predict_training(step_of(network())).unknown_sizes == 0
