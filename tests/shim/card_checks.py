"""Checks of npu_shim on a host that shows a card, with a package npu_bridge that this program makes up.

test_npu_branch.py runs it in a process of its own, because names are loaded once. It prints ``NAME ok`` or the last
line of the traceback of each check.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
import traceback

FOLDER = pathlib.Path(sys.argv[1])
MODULE = """
calls = []


class Thing:
    def __init__(self, *args, **kwargs):
        calls.append((type(self).__name__, args, kwargs))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    globals()[name] = type(name, (Thing,), {"__module__": __name__})
    return globals()[name]
"""
CONFIG = """
class NPURunConfig(PARENT):
    def __init__(self, model_dir=None, iterations_per_loop=1, profiling_config=None, insert_op_file=None):
        self.iterations_per_loop = iterations_per_loop
        self._profiling_config, self._insert_op_file = profiling_config, insert_op_file


class ProfilingConfig:
    def __init__(self, enable_profiling=False):
        self._enable_profiling = enable_profiling
"""
ESTIMATOR = """
class NPUEstimator(PARENT):
    def __init__(self, model_fn=None, model_dir=None, config=None, params=None, job_start_file="", warm_start_from=None):
        if config.session_config is None:
            config = config.replace(session_config=tf.compat.v1.ConfigProto())
        rewrite = config.session_config.graph_options.rewrite_options
        rewrite.optimizers.append("GradFusionOptimizer")
        entry = rewrite.custom_optimizers.add(name="NpuOptimizer")
        entry.parameter_map["of_a_later_package"].i = 3
        entry.parameter_map["enable_compress_weight"].b = False
        super().__init__(model_fn, model_dir, config, params)
"""
INIT_OPS = """
import tensorflow as tf


def initialize_system(name=None):
    return tf.no_op(name="NPUInit")


def shutdown_system(name=None):
    return tf.no_op(name="NPUShutdown")


def dropout(x, keep_prob, noise_shape=None, seed=None, name=None):
    return tf.identity(x, name="vendors_dropout")
"""


def write(module: str, text: str) -> None:
    """Write a module of the package below FOLDER."""
    path = FOLDER.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + path.read_text() if path.exists() else text)


from npu_shim._vendor_paths import ALWAYS_OWN, ON_IMPORT, OUTSIDE_NPU_BRIDGE, TABLE, names_of  # noqa: E402

BRIDGE = [
    module
    for module in TABLE
    if TABLE[module] and module not in ON_IMPORT and not module.startswith(OUTSIDE_NPU_BRIDGE)
]
for each in BRIDGE:
    write("npu_bridge." + each, MODULE)
for each in ("hccl.manage.api", "hccl.split.api"):
    write(each, MODULE)
import tensorflow as tf  # noqa: E402

HAS_ESTIMATOR = hasattr(tf, "estimator") and hasattr(tf.estimator, "Estimator")
HEAD = "import tensorflow as tf\n"
write(
    "npu_bridge.estimator.npu.npu_config",
    HEAD + CONFIG.replace("PARENT", "tf.estimator.RunConfig" if HAS_ESTIMATOR else "object"),
)
if HAS_ESTIMATOR:
    write("npu_bridge.estimator.npu.npu_estimator", HEAD + ESTIMATOR.replace("PARENT", "tf.estimator.Estimator"))
write("npu_bridge.estimator.npu_ops", INIT_OPS)
sys.path.insert(0, str(FOLDER))
(FOLDER / "davinci3").touch()
os.environ.pop("JOB_ID", None)

from npu_shim import _device  # noqa: E402

_device.DEVICE_FILES = str(FOLDER / "davinci[0-9]*")
v1 = tf.compat.v1


def vendors(module):
    """Import a module of the made-up package."""
    return importlib.import_module("npu_bridge." + module)


def every_name_is_the_vendors_own():
    count = 0
    for module in BRIDGE:
        ours, theirs = importlib.import_module("npu_shim." + module), vendors(module)
        for source, names in TABLE[module]:
            for name in names_of(source, names):
                if source not in ALWAYS_OWN:
                    assert getattr(ours, name) is getattr(theirs, name), f"{module}.{name}"
                    count += 1
        assert ours.a_name_of_a_later_package is theirs.a_name_of_a_later_package
        assert "a_name_of_a_later_package" in dir(ours)
    assert count > 200


def names_of_npu_shim_stay():
    for module, rows in TABLE.items():
        for source, names in rows:
            if source in ALWAYS_OWN and module not in ON_IMPORT and (HAS_ESTIMATOR or "keras_to_npu" not in source):
                ours = importlib.import_module("npu_shim." + module)
                home = importlib.import_module("npu_shim." + source)
                assert all(getattr(ours, name) is getattr(home, name) for name in names.split())


def the_star_import_has_the_vendors_classes():
    scope = {}
    exec("from npu_shim.npu_init import *", scope)
    import npu_shim

    npu_shim.uninstall()
    optimizer, hook = vendors("estimator.npu.npu_optimizer"), vendors("estimator.npu.npu_hook")
    assert scope["NPUDistributedOptimizer"] is optimizer.NPUDistributedOptimizer
    assert scope["SetIterationsVarHook"] is hook.SetIterationsVarHook
    assert scope["npu_ops"].LARSV2 is vendors("estimator.npu_ops").LARSV2
    assert isinstance(scope["npu_tf_optimizer"](1), scope["NPUDistributedOptimizer"])
    assert isinstance(scope["npu_keras_optimizer"](1), scope["KerasDistributeOptimizer"])
    assert isinstance(scope["npu_hooks_append"]()[0], scope["NPUBroadcastGlobalVariablesHook"])
    assert isinstance(scope["npu_callbacks_append"]()[0], scope["NPUBroadcastGlobalVariablesCallback"])


def a_subclass_is_a_subclass_of_the_vendors():
    from npu_shim.estimator.npu.npu_optimizer import NPUOptimizer

    class Mine(NPUOptimizer):
        pass

    assert isinstance(Mine(2), vendors("estimator.npu.npu_optimizer").NPUOptimizer)


def the_vendors_package_gets_a_job_id():
    vendors_ops = importlib.import_module("npu_shim.estimator.npu_ops")
    vendors_ops.LARS(1)
    assert os.environ["JOB_ID"] == "local"


def collectives_between_own_functions_are_the_vendors():
    from npu_shim.distributed import hccl_ops

    made = vendors("hccl.hccl_ops")
    hccl_ops.allreduce(2.0, "sum", fusion=0)
    assert made.calls[-1] == ("allreduce", (2.0, "sum"), {"fusion": 0})


def ranks_of_the_world_are_known_before_hccl_starts():
    from npu_shim.hccl.manage.api import get_local_rank_id, get_rank_id, get_rank_size

    os.environ.update(RANK_SIZE="2", RANK_ID="1")
    made = importlib.import_module("hccl.manage.api").calls
    try:
        assert (get_rank_size(), get_rank_id()) == (2, 1) and not made
        get_local_rank_id()
        get_rank_id("g")
        assert [name for name, _, _ in made] == ["get_local_rank_id", "get_rank_id"]
    finally:
        del os.environ["RANK_SIZE"], os.environ["RANK_ID"]


def ranks_numbered_by_the_npus_come_from_hccl():
    from npu_shim.hccl.manage.api import get_rank_id, get_rank_size

    made = importlib.import_module("hccl.manage.api").calls
    del made[:]
    job = dict(
        CM_CHIEF_IP="10.0.0.1", CM_CHIEF_PORT="6000", CM_CHIEF_DEVICE="0", CM_WORKER_SIZE="16", CM_WORKER_IP="10.0.0.2"
    )
    os.environ.update(job)
    try:
        assert get_rank_size() == 16 and not made
        get_rank_id()
        assert [name for name, _, _ in made] == ["get_rank_id"]
    finally:
        for name in job:
            del os.environ[name]


def start_ops_are_in_the_default_graph():
    from npu_shim import npu_init as npu

    with tf.Graph().as_default() as graph:
        session, stop = npu.init_resource()
        npu.shutdown_resource(session, stop)
        assert session.graph is graph and [op.name for op in graph.get_operations()] == ["NPUInit", "NPUShutdown"]
    assert ("set_value", ("npu_rank_size", 1), {}) in vendors("estimator.npu.util").calls


def the_session_config_is_the_vendors():
    from npu_shim.npu_init import npu_config_proto

    given = v1.ConfigProto(log_device_placement=True)
    rewrite = npu_config_proto(given).graph_options.rewrite_options
    assert (rewrite.remapping, rewrite.memory_optimization, len(rewrite.custom_optimizers)) == (2, 2, 1)
    given.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
    made = npu_config_proto(given)
    rewrite = made.graph_options.rewrite_options
    assert (rewrite.remapping, rewrite.memory_optimization, made.log_device_placement) == (2, 0, False)
    assert not rewrite.custom_optimizers[0].parameter_map and given.log_device_placement


def keras_dropout_is_the_vendors():
    from npu_shim import _tf
    from npu_shim.ops.keras_dropout import dropout_call

    if not _tf.has_keras_sessions():
        return
    with tf.Graph().as_default():
        layer = tf.compat.v1.keras.layers.Dropout(0.5)
        assert dropout_call(layer, tf.zeros([2, 2]), training=True).op.name == "vendors_dropout"


def a_sharded_saver_that_fails_writes_in_two_runs():
    import npu_shim

    folder = FOLDER / "checkpoint"
    folder.mkdir()
    npu_shim.install()
    try:
        with tf.Graph().as_default():
            variable = v1.get_variable("v", [2], initializer=v1.ones_initializer())
            saver = v1.train.Saver(sharded=True)
            with v1.Session() as session:
                session.run(variable.initializer)
                made, run = [], session.run

                def passes(fetches, *args, **kwargs):
                    made.append(fetches)
                    if fetches == saver.saver_def.save_tensor_name:
                        raise tf.errors.FailedPreconditionError(None, None, "uninitialized value v")
                    return run(fetches, *args, **kwargs)

                session.run = passes
                path = saver.save(session, str(folder / "model"), global_step=7)
                assert len(made) == 3 and saver.save(session, str(folder / "model"), global_step=8) and len(made) == 5
                session.run = run
                session.run(variable.assign([3.0, 4.0]))
                saver.restore(session, path)
                assert list(session.run(variable)) == [1.0, 1.0]
        ends = (".data-00000-of-00001", ".index", ".meta")
        wanted = ["checkpoint"] + [f"model-{step}{end}" for step in (7, 8) for end in ends]
        assert sorted(each.name for each in folder.iterdir()) == sorted(wanted)
    finally:
        npu_shim.uninstall()


def a_run_config_is_the_vendors_with_checks():
    from npu_shim.estimator.npu.npu_config import NPURunConfig, ProfilingConfig

    if not HAS_ESTIMATOR:
        return
    theirs = vendors("estimator.npu.npu_config")
    profiling = ProfilingConfig(enable_profiling=True, profiling_options='{"output":"/tmp"}')
    config = NPURunConfig(iterations_per_loop=10, profiling_config=profiling, insert_op_file="a.cfg")
    assert isinstance(config, theirs.NPURunConfig) and isinstance(profiling, theirs.ProfilingConfig)
    assert config._profiling_config._enable_profiling and config._insert_op_file == b"a.cfg"
    assert config.replace(iterations_per_loop=20).iterations_per_loop == 20
    try:
        NPURunConfig(iterations_per_loop=0)
    except ValueError as error:
        assert "iterations_per_loop" in str(error)
    else:
        raise AssertionError("0 steps for each run are accepted")


def an_estimator_is_the_vendors_with_one_entry():
    from npu_shim.estimator.npu.npu_config import NPURunConfig
    from npu_shim.estimator.npu.npu_estimator import NPUEstimator

    if not HAS_ESTIMATOR:
        return
    session = v1.ConfigProto()
    entry = session.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
    entry.parameter_map["graph_run_mode"].i = 0
    before = session.SerializeToString()
    config = NPURunConfig(session_config=session, precision_mode="allow_mix_precision", compress_weight_conf="c.cfg")
    job = NPUEstimator(lambda features, labels, mode: None, str(FOLDER / "model"), config, eval_batches="drop")
    assert isinstance(job, vendors("estimator.npu.npu_estimator").NPUEstimator)
    rewrite = job._session_config.graph_options.rewrite_options
    assert list(rewrite.optimizers) == ["GradFusionOptimizer"] and len(rewrite.custom_optimizers) == 1
    options = rewrite.custom_optimizers[0].parameter_map
    assert options["precision_mode"].s == b"allow_mix_precision"  # an argument
    assert options["graph_run_mode"].i == 0  # of the entry, not the default 1
    assert options["of_a_later_package"].i == 3 and "enable_compress_weight" not in options
    assert session.SerializeToString() == before


CHECKS = [
    value
    for name, value in list(globals().items())
    if callable(value) and value.__module__ == __name__ and name not in ("write", "vendors")
]
if __name__ == "__main__":
    v1.disable_eager_execution()
    for check in CHECKS:
        try:
            check()
            print(check.__name__, "ok", flush=True)
        except Exception:
            print(check.__name__, "::".join(traceback.format_exc().splitlines()[-4:]), flush=True)
