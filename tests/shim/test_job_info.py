"""The description of a job, savers, ranks and other small names of the vendor's interface."""

from __future__ import annotations

import json
import pathlib

import pytest
import tensorflow as tf
from npu_shim.experimental import hccl
from npu_shim.helper import helper

from npu_shim import npu_init
from npu_shim._tensorflow import tf_api
from npu_shim.estimator.npu.npu_callbacks import BroadcastGlobalVariablesCallbackImpl
from npu_shim.estimator.npu.npu_common import DeviceInfo, JobConfig, JobInfo, NPUBasics
from npu_shim.estimator.npu.npu_config import set_npu_default_config
from npu_shim.estimator.npu.npu_saver import NPUSaver

v1 = tf_api.v1


def test_a_job_comes_from_a_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"device_info": {"Index": 3}, "rank_table_file": "t.json", "rank_size": 8}))
    job = NPUBasics(str(file))
    assert job.size() == 8 and job.jobinfo._rank_table_file == "t.json"
    assert job.jobinfo._device_info._index == "3" and not job.jobinfo._device_info.is_master_node()


@pytest.mark.parametrize(
    "text, error, message",
    [
        ("{", ValueError, "is not JSON"),
        ("[]", ValueError, "must hold a JSON object"),
        ("{}", ValueError, "device_info must not be None"),
        ('{"device_info": {"Index": "a"}}', TypeError, "Index='a'"),
        ('{"device_info": {"Index": 0}, "rank_table_file": "t", "rank_size": 0}', ValueError, "rank_size=0"),
    ],
)
def test_a_wrong_job_file_is_an_error(tmp_path: pathlib.Path, text: str, error: type, message: str) -> None:
    file = tmp_path / "job.json"
    file.write_text(text)
    with pytest.raises(error, match=message):
        NPUBasics(str(file))


def test_without_a_file_the_variables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_ID", "j7")
    job = NPUBasics("no such file")
    assert (job.size(), job.jobinfo._job_id) == (1, "j7") and job.jobinfo._device_info.is_master_node()


def test_records_keep_their_arguments() -> None:
    job = JobInfo(5, JobConfig(0.1, 32), device_info=DeviceInfo("2"), restart_flag=1)
    assert (job._job_id, job._job_config._batch_size, job._restart_flag, job._rank_size) == (5, 32, 1, 1)


def test_the_config_of_a_session_call_becomes_the_npus() -> None:
    config = v1.ConfigProto(inter_op_parallelism_threads=3)
    for args, kwargs in ((("", None, config), {}), ((), {"config": config}), (("",), {})):
        new_args, new_kwargs = set_npu_default_config(v1.Session.__init__, args, kwargs)
        made = new_kwargs["config"]
        assert [each.name for each in made.graph_options.rewrite_options.custom_optimizers] == ["NpuOptimizer"]
        assert new_args == args[:2] and made.inter_op_parallelism_threads == (3 if args[2:] or kwargs else 0)
    assert not config.graph_options.rewrite_options.custom_optimizers


def test_a_saver_restores_what_it_saved(tmp_path: pathlib.Path) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable("v", initializer=2.0)
        session.run(variable.initializer)
        saver = NPUSaver()
        path = saver.save(session, str(tmp_path / "model"))
        session.run(v1.assign(variable, 5.0))
        saver.restore(session, path)
        assert session.run(variable) == 2.0


def test_ranks_of_the_job_on_one_process() -> None:
    assert (hccl.get_actual_rank_size(), hccl.get_user_rank_size(), hccl.get_user_rank_id()) == (1, 1, 0)
    assert hccl.c_str("grün").value == "grün".encode()


def test_the_library_has_the_operators() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        assert session.run(helper.get_gen_ops().fast_gelu(tf.constant(0.0))) == 0.0


def test_the_broadcast_of_one_process_does_nothing() -> None:
    callback = BroadcastGlobalVariablesCallbackImpl(0)
    callback.on_batch_begin(0)
    assert callback.broadcast_done and callback.root_rank == 0


def test_members_of_estimators_may_be_overridden_inside_the_context() -> None:
    if tf_api.estimator_namespace() is None:
        with pytest.raises(RuntimeError, match="NPUEstimator needs tf.estimator"):
            npu_init.NPUEstimator()
        return
    from npu_shim.estimator.npu.npu_estimator import no_check_override

    class Mine(v1.estimator.Estimator):
        def latest_checkpoint(self) -> str:
            return "mine"

    check = vars(v1.estimator.Estimator).get("_assert_members_are_not_overridden")
    with no_check_override():
        assert Mine(lambda features: None).latest_checkpoint() == "mine"
    assert vars(v1.estimator.Estimator).get("_assert_members_are_not_overridden") is check
