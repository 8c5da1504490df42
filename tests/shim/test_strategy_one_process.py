"""NPUStrategy stands where a script has a strategy of tf.distribute: on one process nothing else changes."""

from __future__ import annotations

import pytest
import tensorflow as tf

from npu_shim import npu_init as npu
from npu_shim._host import host_device

pytestmark = pytest.mark.twice

v1 = tf.compat.v1


@pytest.fixture
def strategy():
    with tf.Graph().as_default():
        yield npu.npu_strategy.NPUStrategy()


def value(tensor, *before):
    with v1.Session() as sess:
        sess.run(v1.global_variables_initializer())
        for op in before:
            sess.run(op)
        return sess.run(tensor)


def test_its_scope_holds_variables_and_the_current_strategy(strategy):
    assert strategy.num_replicas_in_sync == 1
    with strategy.scope():
        v = v1.get_variable("v", [2], initializer=v1.ones_initializer())
        assert tf.distribute.has_strategy() and tf.distribute.get_strategy().num_replicas_in_sync == 1
    assert list(value(v + 1)) == [2, 2]


def test_it_runs_a_step_once_and_reduces_its_value_to_itself(strategy):
    run = getattr(strategy, "experimental_run_v2", None) or strategy.run
    result = run(lambda x: 2 * x, args=(tf.constant([1.0, 3.0]),))
    assert list(value(result)) == [2, 6]
    assert value(strategy.reduce(tf.distribute.ReduceOp.SUM, result, axis=0)) == 8


def test_its_dataset_holds_every_batch_in_order(strategy):
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(6).batch(2))
    batch = iterator.get_next()
    with v1.Session() as sess:
        sess.run(iterator.initialize())
        assert [list(sess.run(batch)) for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]


def test_an_estimator_with_it_trains_as_one_without(has_estimator, line, linear_model_fn, tmp_path):
    if not has_estimator:
        with pytest.raises(RuntimeError, match="needs tf.estimator"):
            npu.NPURunConfig(train_distribute=npu.npu_strategy.NPUStrategy())
        return

    def trained(kind, config):
        job = kind(linear_model_fn(v1.estimator.EstimatorSpec), config=config, params={})
        job.train(lambda: tf.data.Dataset.from_tensor_slices(line).repeat().batch(10, drop_remainder=True), steps=12)
        return job.get_variable_value("w")[0][0], job.get_variable_value("b")[0]

    plain = trained(v1.estimator.Estimator, v1.estimator.RunConfig(str(tmp_path / "plain")))
    for name, kind, config in (
        ("tf", v1.estimator.Estimator, v1.estimator.RunConfig),
        ("npu", npu.NPUEstimator, npu.NPURunConfig),
    ):
        with_it = config(
            model_dir=str(tmp_path / name),
            train_distribute=npu.npu_strategy.NPUStrategy(),
            eval_distribute=npu.npu_strategy.NPUStrategy(),
        )
        assert trained(kind, with_it) == pytest.approx(plain, rel=1e-6)


def test_a_rank_that_saves_every_0_steps_saves_nothing(has_estimator, line, linear_model_fn, tmp_path):
    if not has_estimator:
        with pytest.raises(RuntimeError, match="needs tf.estimator"):
            npu.NPURunConfig(save_checkpoints_steps=0)
        return
    job = npu.NPUEstimator(
        linear_model_fn(v1.estimator.EstimatorSpec),
        params={},
        config=npu.NPURunConfig(model_dir=str(tmp_path), save_checkpoints_steps=0),
    )
    job.train(lambda: tf.data.Dataset.from_tensor_slices(line).repeat().batch(10, drop_remainder=True), steps=3)
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


def test_it_does_not_start_beside_an_unused_card(monkeypatch, tmp_path):
    (tmp_path / "davinci0").touch()
    monkeypatch.setattr(host_device, "DEVICE_FILES", str(tmp_path / "davinci[0-9]*"))
    monkeypatch.setattr(host_device, "_installed_vendor_packages", list)
    monkeypatch.delenv("NPU_SHIM_FALLBACK")
    with pytest.raises(RuntimeError, match="The card is not used"):
        npu.npu_strategy.NPUStrategy()
