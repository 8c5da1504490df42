"""``from npu_shim.npu_init import *`` and the vendor's module paths."""

from __future__ import annotations

import importlib
import pickle
import sys
import types

import pytest
import tensorflow as tf

from npu_shim._tensorflow import tf_api
from npu_shim._vendor_paths import table
from npu_shim._vendor_paths.table import NPU_ONLY
from npu_shim.ops.npu_only import SIGNATURES as OF_THE_NPU

pytestmark = pytest.mark.slow

NAMES = """
DumpConfig DynamicInputConfig ExponentialUpdateLossScaleManager FixedLossScaleManager KerasDistributeOptimizer
MemoryConfig NPUBroadcastGlobalVariablesCallback NPUBroadcastGlobalVariablesHook NPUCheckpointSaverHook
NPUDistributedOptimizer NPUEstimator NPUEstimatorSpec NPULossScaleOptimizer NPUOptimizer NPUOutputTensorHook
NPURunConfig NpuEmptyHook ProfilingConfig RewriterConfig SetIterationsVarHook TellMeStepOrLossHook backend
close_session config_pb2 create_group decorator_tf_session destroy_group experimental_options
get_group_rank_from_world_rank get_local_rank_id get_local_rank_size get_npu_local_rank_id get_npu_local_rank_size
get_npu_rank_id get_npu_rank_size get_rank_id get_rank_size get_world_rank_from_group_rank hccl_ops init_resource
keras_to_npu npu_allreduce npu_callbacks_append npu_clear_session npu_config_proto npu_cpu_ops
npu_distributed_optimizer_wrapper npu_graph_options npu_hooks_append npu_keras_optimizer npu_ops npu_optimizer_options
npu_plugin npu_rnn npu_run_config_init npu_scope npu_strategy npu_tf_optimizer npu_unary_ops os profiler
rewriter_config_pb2 scoped_graph_manager session session_run_hook set_keras_session_npu_config
set_split_strategy_by_idx set_split_strategy_by_size shutdown_resource tf util
""".split()


@pytest.fixture(scope="module")
def star():
    scope = {}
    exec("from npu_shim.npu_init import *", scope)
    return scope


def test_exports_exactly_the_vendors_names(star):
    assert len(NAMES) == 71 and sorted(n for n in star if n != "__builtins__") == sorted(NAMES)


def test_modules_are_those_of_tensorflow(star):
    assert star["tf"] is tf and star["session"].Session is tf.compat.v1.Session
    assert star["backend"].__file__ == tf.compat.v1.keras.backend.__file__  # the module may be known by two names
    assert star["RewriterConfig"] is star["rewriter_config_pb2"].RewriterConfig


def test_grappler_options_can_be_set(star):
    tf.config.optimizer.set_experimental_options(star["experimental_options"])
    given = tf.config.optimizer.get_experimental_options()
    assert given["layout_optimizer"] is True and "remapping" not in given


@pytest.fixture
def printed(python, tmp_path):
    """printed(code) -> the words that a new Python prints."""

    def run(code):
        (tmp_path / "code.py").write_text(f"import warnings; warnings.simplefilter('ignore')\n{code}\n")
        done = python(tmp_path, "code.py", NPU_SHIM_FALLBACK="silent")
        assert done.returncode == 0, done.stdout
        return done.stdout.split()

    return run


@pytest.mark.once_tf115
def test_only_the_star_import_installs(printed):
    code = (
        "from tensorflow.python.client import session as s; a = s.Session.__init__, s.InteractiveSession.__init__;"
        "import npu_shim, npu_shim.config.session, npu_shim.config.run_config, npu_shim.estimator.npu_estimator,"
        "npu_shim.estimator.npu.npu_config, npu_shim.estimator.npu.npu_hook, npu_shim.estimator.npu_ops,"
        "npu_shim.ops.gelu, npu_shim.hccl.hccl_ops;"
        "print(a == (s.Session.__init__, s.InteractiveSession.__init__));"
        "import npu_shim.npu_init; print(a[0] is not s.Session.__init__ and a[1] is not s.InteractiveSession.__init__);"
        "npu_shim.uninstall(); print(a == (s.Session.__init__, s.InteractiveSession.__init__))"
    )
    assert printed(code)[-3:] == ["True", "True", "True"]


PORT = """
from npu_shim.estimator.npu.npu_config import NPURunConfig, DumpConfig, ProfilingConfig
from npu_shim.estimator.npu.npu_estimator import NPUEstimator, NPUEstimatorSpec
from npu_shim.estimator import npu_ops
from npu_shim.estimator.npu_unary_ops import npu_unary_ops
from npu_shim.hccl import hccl_ops
from npu_shim.hccl.manage.api import get_rank_id
from npu_shim.estimator.npu.npu_optimizer import NPUDistributedOptimizer
from npu_shim.estimator.npu.npu_loss_scale_optimizer import NPULossScaleOptimizer
from npu_shim.estimator.npu.npu_loss_scale_manager import ExponentialUpdateLossScaleManager
import npu_shim.estimator.npu.npu_hook as h
import tensorflow as tf
tf = tf.compat.v1
tf.disable_eager_execution()
config = tf.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
custom_op.parameter_map["use_off_line"].b = True
custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")
config.graph_options.rewrite_options.remapping = 2
x = tf.placeholder(tf.float32, [None, 2])
y = npu_ops.dropout(npu_unary_ops.gelu(x * tf.get_variable("w", [2])), 0.9)
with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(y, {x: [[1.0, 2.0]]}).shape == (1, 2), get_rank_id(), h.NPUOutputTensorHook.__name__)
"""


@pytest.mark.once_tf115
def test_a_manual_port_changes_one_word(printed):
    assert printed(PORT)[-3:] == ["True", "0", "NPUOutputTensorHook"]


@pytest.mark.once_tf115
def test_a_star_import_of_horovod_brings_no_modules_but_those_of_horovod(printed):
    code = "import types\nfrom npu_shim.horovod.tensorflow import *\n"
    code += "print(*sorted(n for n, v in globals().items() if isinstance(v, types.ModuleType) and n[:2] != '__'))\n"
    code += "print(callable(allreduce), callable(DistributedOptimizer))"
    assert printed(code)[-7:] == ["elastic", "mpi_ops", "types", "util", "warnings", "True", "True"]


@pytest.mark.parametrize("module", [m for m, homes in table.TABLE.items() if homes and m not in table.ON_IMPORT])
def test_every_vendor_module_has_the_names_of_the_table(module):
    imported = importlib.import_module("npu_shim." + module)
    wanted = []
    for source, names in table.TABLE[module].items():
        for name in [] if source.startswith(NPU_ONLY) else names.split():
            home = importlib.import_module("npu_shim." + source)
            assert getattr(imported, name) is getattr(home, name)
        missing = source[len(NPU_ONLY) :] if source.startswith(NPU_ONLY) else None
        wanted += names.split() or OF_THE_NPU[missing]
    assert sorted(wanted) == sorted(getattr(imported, "__all__", [])) and set(wanted) <= set(dir(imported))
    given = {}
    exec(f"from npu_shim.{module} import *", given)
    assert all(given[name] is getattr(imported, name) for name in wanted)
    vendor = module if module.startswith("npu_device.") else f"npu_bridge.{module}"
    assert imported.__doc__.startswith(f"The vendor's {vendor}.")
    with pytest.raises(AttributeError, match=f"module 'npu_shim.{module}' has no attribute 'nothing'"):
        imported.nothing


@pytest.mark.once_tf115
def test_a_module_is_loaded_on_the_first_use_of_its_names(printed):
    code = (
        "import sys; from npu_shim.npu_init import *\n"
        "homes = 'ops.rnn', 'ops.gelu', 'ops.lars', 'ops.scopes', 'distributed.hccl_ops', 'distributed.ranktable.model'\n"
        "def loaded(): print([home for home in homes if 'npu_shim.' + home in sys.modules])\n"
        "loaded(); hccl_ops.allreduce; npu_ops.LARS; npu_rnn.npu_dynamic_rnn; npu_unary_ops.gelu(1.0)\n"
        "hasattr(npu_scope, 'nothing'); loaded()"
    )
    assert "".join(printed(code)).endswith("[]['ops.rnn','ops.gelu','ops.lars','distributed.hccl_ops']")


def test_exported_names_are_the_documented_objects(star):
    estimators = (
        [star[name] for name in ("NPURunConfig", "NPUEstimator", "NPUEstimatorSpec")]
        if tf_api.estimator_namespace()
        else []
    )
    for given in estimators + [
        star["NPUOptimizer"],
        star["FixedLossScaleManager"],
        star["npu_config_proto"],
        star["npu_ops"].dropout,
        star["hccl_ops"].allreduce,
        star["util"].set_iteration_per_loop,
    ]:
        assert pickle.loads(pickle.dumps(given)) is given
        assert getattr(importlib.import_module(given.__module__), given.__name__) is given
    modules = [star[name] for name in ("npu_ops", "npu_plugin", "npu_scope", "npu_strategy", "util", "hccl_ops")]
    assert all(type(module) is types.ModuleType and sys.modules[module.__name__] is module for module in modules)


def test_keras_dropout_goes_through_npu_ops_until_uninstalled():
    import npu_shim

    if not tf_api.has_keras_sessions():
        with pytest.raises(RuntimeError, match="npu_convert_dropout needs graph-mode Keras.*2.15"):
            importlib.import_module("npu_shim.estimator.npu.npu_convert_dropout")
        return
    layers, backend = tf.compat.v1.keras.layers, tf.compat.v1.keras.backend
    original = layers.Dropout.__dict__["call"]
    from npu_shim.estimator.npu import npu_convert_dropout

    npu_convert_dropout.switch_keras_dropout()
    assert layers.Dropout.__dict__["call"] is not original
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        x = tf.ones([100, 100])
        trained = layers.Dropout(0.25)(x, training=True)
        by_phase = layers.Dropout(0.25)(x)
        rows = layers.Dropout(0.5, noise_shape=[100, 1])(x, training=True)
        assert abs((sess.run(trained) == 0).mean() - 0.25) < 0.03
        phase = backend.learning_phase()
        assert (sess.run(by_phase, {} if isinstance(phase, int) else {phase: 0}) == 1).all()
        assert len(set(map(tuple, sess.run(rows)))) == 2
        channels = sess.run(layers.SpatialDropout1D(0.5)(tf.ones([4, 50, 8]), training=True))
        assert all(len(set(channels[i, :, j])) == 1 for i in range(4) for j in range(8))
    npu_shim.uninstall()
    assert layers.Dropout.__dict__["call"] is original


def test_backports_of_tensorflow_2_say_what_they_need():
    if tf.__version__.startswith("1."):
        with pytest.raises(ImportError, match=r"needs TensorFlow 2.6 or later; this is 1\."):
            importlib.import_module("npu_shim.backports")
    else:
        assert importlib.import_module("npu_shim.backports").AdamW
