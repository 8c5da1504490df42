"""Strategies of tf.distribute are replaced with ranks by -d tf_strategy.

Each optimizer is wrapped once, each gradient is averaged once, and all ranks start from the same variables. Code that
cannot be converted for certain is reported.
"""

from __future__ import annotations

import ast
import pathlib
from typing import Any

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.run import convert_source
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

from tests.convert.observed import converted_with_facts

TF = "import tensorflow as tf\n"
WITH = Converter(Settings(distributed="tf_strategy"))
WRAPPED = "npu_distributed_optimizer_wrapper(%s)"


def convert(text: str, select: str = "") -> tuple[str, list[str]]:
    """Return the new text, or the old one, without the import, and the codes of the findings."""
    converter = Converter(Settings((select,), distributed="tf_strategy")) if select else WITH
    result = converter.convert((TF + text).encode())
    assert not result.unreadable, result.diagnostics
    if result.new is not None:
        assert converter.convert(result.new).new is None
        ast.parse(result.new)
    new = TF + text if result.new is None else result.new.decode()
    lines = [line for line in new.split("\n") if "npu_shim" not in line]
    return "\n".join(lines)[len(TF) :], [d.code for d in result.diagnostics if d.kind == FINDING]


# --- strategies --------------------------------------------------------------------

NPU_STRATEGY = "npu_strategy.NPUStrategy()"
STEPPING = [
    "tf.distribute.MirroredStrategy()",
    "tf.distribute.MirroredStrategy(['/gpu:0', '/gpu:1'])",
    "tf.distribute.experimental.MultiWorkerMirroredStrategy(communication=x)",
    "tf.distribute.MultiWorkerMirroredStrategy()",
    "tf.distribute.OneDeviceStrategy('/gpu:0')",
    "tf.contrib.distribute.MirroredStrategy(num_gpus=2)",
    "tf.contrib.distribute.CollectiveAllReduceStrategy()",
    "tf.compat.v1.distribute.MirroredStrategy()",
    "tf.distribute.experimental.CentralStorageStrategy()",
]


@pytest.mark.parametrize("call", STEPPING)
def test_a_strategy_with_synchronous_replicas_is_replaced(call: str) -> None:
    assert convert(f"s = {call}\nwith s.scope():\n    f(s.num_replicas_in_sync)\n") == (
        f"s = {NPU_STRATEGY}\nwith s.scope():\n    f(s.num_replicas_in_sync)\n",
        [],
    )


@pytest.mark.parametrize(
    "head,call",
    [
        ("from tensorflow.python.distribute import mirrored_strategy as m\n", "m.MirroredStrategy()"),
        (
            "from tensorflow.contrib.distribute.python.mirrored_strategy import MirroredStrategy\n",
            "MirroredStrategy(2)",
        ),
        ("kind = tf.distribute.MirroredStrategy\n", "kind()"),
    ],
)
def test_a_strategy_is_found_by_other_paths(head: str, call: str) -> None:
    assert convert(head + f"x({call})\n")[0].endswith(f"x({NPU_STRATEGY})\n")


@pytest.mark.parametrize(
    "call",
    [
        "tf.distribute.experimental.ParameterServerStrategy()",
        "tf.contrib.distribute.ParameterServerStrategy()",
        "tf.distribute.experimental.TPUStrategy(r)",
        "tf.contrib.distribute.TPUStrategy(r)",
    ],
)
def test_other_strategies_are_reported(call: str) -> None:
    text, reported = convert(f"s = {call}\nc = tf.estimator.RunConfig(train_distribute=s)\n", "NPU302")
    assert text == f"s = {call}\nc = tf.estimator.RunConfig(train_distribute=s)\n" and reported == ["NPU302"] * 2


def test_a_strategy_of_tensorflow_2_has_its_scope_run_and_datasets() -> None:
    text = (
        "s = {}\n@tf.function\ndef step(x):\n    return s.run(f, (x,))\nwith tf.GradientTape() as tape:\n    step(1)\n"
    )
    for strategy in ("MirroredStrategy(['/gpu:0'])", "OneDeviceStrategy('/gpu:0')", "MultiWorkerMirroredStrategy()"):
        after = text.format("npu.distribute.NPUStrategy()")
        assert convert(text.format(f"tf.distribute.{strategy}"), "NPU302") == (after, [])


def test_a_strategy_of_programs_of_both_versions(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "common.py": "def strategy():\n    return tf.distribute.MirroredStrategy()\n",
        "one.py": "import common\ntf.estimator.Estimator(f)\nif __name__ == '__main__':\n    common.strategy()\n",
        "two.py": "import common\nwith tf.GradientTape() as t:\n    f(x)\nif __name__ == '__main__':\n    common.strategy()\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text("import tensorflow as tf\n" + text)
    main(["-i", str(tmp_path), "--in-place", "--force", "--no-cache", "-d", "tf_strategy"])
    assert "programs of TensorFlow 1 and 2 use this strategy" in capsys.readouterr().out
    assert "npu" not in (tmp_path / "common.py").read_text()


def test_the_default_strategy_is_replaced_where_its_scope_is_entered() -> None:
    text = "def step(x):\n    return tf.GradientTape().gradient(x, x)\ns = {}\nwith s.scope():\n    m = build()\n"
    default = "tf.distribute.get_strategy()"
    assert convert(text.format(default), "NPU302")[0] == text.format("npu.distribute.NPUStrategy()")
    other = text.replace("s.scope()", "f(s.num_replicas_in_sync)").format(default)
    assert convert(other, "NPU302") == (other, [])


CONFIGS: dict[str, tuple[str, str]] = {
    "the only argument": (
        "s = tf.distribute.MirroredStrategy()\nc = tf.estimator.RunConfig(train_distribute=s)\n",
        "s = npu_strategy.NPUStrategy()\nc = NPURunConfig(train_distribute=s)\n",
    ),
    "made in place, the last argument": (
        'c = tf.estimator.RunConfig("d", eval_distribute=tf.distribute.MirroredStrategy())\n',
        'c = NPURunConfig(model_dir="d", eval_distribute=npu_strategy.NPUStrategy())\n',
    ),
    "with comments and lines of their own": (
        "s = tf.distribute.MirroredStrategy()\nc = tf.estimator.RunConfig(\n    model_dir=d,\n    train_distribute=s,  # all\n"
        "    eval_distribute=s,\n)\n",
        "s = npu_strategy.NPUStrategy()\nc = NPURunConfig(\n    model_dir=d,\n    train_distribute=s,  # all\n"
        "    eval_distribute=s,\n)\n",
    ),
    "under a condition": (
        "s = tf.distribute.MirroredStrategy() if n > 1 else None\nc = tf.estimator.RunConfig(train_distribute=s)\n",
        "s = npu_strategy.NPUStrategy() if n > 1 else None\nc = NPURunConfig(train_distribute=s)\n",
    ),
    "in an own configuration of distribution": (
        "d = tf.contrib.distribute.DistributeConfig(train_distribute=tf.contrib.distribute.MirroredStrategy())\n"
        "c = tf.estimator.RunConfig(experimental_distribute=d)\n",
        "d = tf.contrib.distribute.DistributeConfig(train_distribute=npu_strategy.NPUStrategy())\n"
        "c = NPURunConfig(experimental_distribute=d)\n",
    ),
    "by replace": (
        "s = tf.distribute.MirroredStrategy()\nc = tf.estimator.RunConfig(d).replace(train_distribute=s, model_dir=e)\n",
        "s = npu_strategy.NPUStrategy()\nc = NPURunConfig(model_dir=d).replace(train_distribute=s, model_dir=e)\n",
    ),
    "of a configuration that is ported": (
        "from npu_shim.npu_init import *\ns = tf.distribute.MirroredStrategy()\n"
        "c = NPURunConfig(train_distribute=s, model_dir=e)\n",
        "s = npu_strategy.NPUStrategy()\nc = NPURunConfig(train_distribute=s, model_dir=e)\n",
    ),
    "of a function": (
        "def make():\n    if many:\n        return tf.distribute.MirroredStrategy()\n    return None\n"
        "c = tf.estimator.RunConfig(train_distribute=make())\n",
        "def make():\n    if many:\n        return npu_strategy.NPUStrategy()\n    return None\n"
        "c = NPURunConfig(train_distribute=make())\n",
    ),
}


@pytest.mark.parametrize("before,after", list(CONFIGS.values()), ids=list(CONFIGS))
def test_a_run_configuration_has_the_strategy_of_the_npu(before: str, after: str) -> None:
    assert convert(before, "NPU")[0] == after


@pytest.mark.parametrize(
    "text",
    [
        "def f(s):\n    return tf.estimator.RunConfig(train_distribute=s)\n",
        "s = tf.distribute.MirroredStrategy()\nd = tf.contrib.distribute.DistributeConfig(s, s, cluster)\n"
        "c = tf.estimator.RunConfig(experimental_distribute=d)\nprint(s)\n",
    ],
    ids=["of a parameter", "with a remote cluster"],
)
def test_a_strategy_of_unknown_kind_is_reported(text: str) -> None:
    new, reported = convert(text)
    assert "NPU302" in reported
    assert "NPURunConfig" not in new and "npu_run_config_init(run_config=tf.estimator.RunConfig(" in new


@pytest.mark.parametrize(
    "text",
    [
        "config = config.replace(train_distribute=s)\n",
        "c = tf.estimator.RunConfig(None, 1, 2, 3, None, None, 5, 1, 1, s)\n",
    ],
)
def test_a_strategy_is_replaced_wherever_it_goes(text: str) -> None:
    text = "s = tf.distribute.MirroredStrategy()\n" + text
    assert convert(text, "NPU302") == (text.replace("tf.distribute.MirroredStrategy()", NPU_STRATEGY), [])


@pytest.mark.parametrize("text", [CONFIGS[name][0] for name in CONFIGS], ids=list(CONFIGS))
def test_without_the_option_strategies_are_reported(text: str) -> None:
    result = Converter().convert((TF + text).encode())
    new = (result.new or text.encode()).decode()
    assert "npu_strategy" not in new and new.count("MirroredStrategy") == text.count("MirroredStrategy")
    assert "NPU250" in {d.code for d in result.diagnostics}


@pytest.mark.parametrize(
    "values, kind", [("none", "unreached"), (["none", "other"], "finding"), ("other", "finding"), ([], "finding")]
)
def test_a_strategy_that_was_none_in_all_runs_is_not_reached(values: object, kind: str) -> None:
    text = TF + "def build(given):\n    return tf.estimator.RunConfig(train_distribute=given)\n"
    result = converted_with_facts(text, {"is": values} if values else {}, select=("NPU250",))
    assert [d.kind for d in result.diagnostics] == [kind]


# --- optimizers ----------------------------------------------------------------------

ADAM = "tf.train.AdamOptimizer(0.1)"
ONCE: dict[str, tuple[str, str]] = {
    "of tf.train": (f"o = {ADAM}\n", f"o = {WRAPPED}\n" % ADAM),
    "of Keras": ("o = tf.keras.optimizers.SGD(lr=0.1)\n", f"o = {WRAPPED}\n" % "tf.keras.optimizers.SGD(lr=0.1)"),
    "of contrib": (
        "o = tf.contrib.opt.AdamWOptimizer(1e-4)\n",
        f"o = {WRAPPED}\n" % "tf.contrib.opt.AdamWOptimizer(1e-4)",
    ),
    "by the name of Keras": (
        "o = tf.keras.optimizers.get(name)\n",
        f"o = {WRAPPED}\n" % "tf.keras.optimizers.get(name)",
    ),
    "over lines": ("o = tf.train.AdamOptimizer(\n    0.1)\n", f"o = {WRAPPED}\n" % "tf.train.AdamOptimizer(\n    0.1)"),
    "in an expression": (f"{ADAM}.minimize(loss)\n", f"{WRAPPED}.minimize(loss)\n" % ADAM),
    "of a chosen class": (
        "kind = tf.train.AdamOptimizer if a else tf.train.FtrlOptimizer\no = kind(0.1)\n",
        f"kind = tf.train.AdamOptimizer if a else tf.train.FtrlOptimizer\no = {WRAPPED}\n" % "kind(0.1)",
    ),
    "of a partial class": (
        "import functools\nmake = functools.partial(tf.train.AdamOptimizer, beta1=0.5)\no = make(0.1)\n",
        f"import functools\nmake = functools.partial(tf.train.AdamOptimizer, beta1=0.5)\no = {WRAPPED}\n" % "make(0.1)",
    ),
    "in a lambda": (
        "make = lambda rate: tf.train.AdamOptimizer(rate)\n",
        f"make = lambda rate: {WRAPPED}\n" % "tf.train.AdamOptimizer(rate)",
    ),
    "inside one that asks it for gradients": (
        f"o = tf.contrib.opt.MovingAverageOptimizer({ADAM})\n",
        f"o = tf.contrib.opt.MovingAverageOptimizer({WRAPPED})\n" % ADAM,
    ),
    "inside loss scaling": (
        f"from npu_shim.npu_init import *\no = NPULossScaleOptimizer({ADAM}, m)\n",
        f"o = NPULossScaleOptimizer({WRAPPED}, m, is_distributed=True)\n" % ADAM,
    ),
    "of an own class": (
        "class Own(tf.train.MomentumOptimizer):\n    pass\no = Own(0.1, 0.9)\n",
        f"class Own(tf.train.MomentumOptimizer):\n    pass\no = {WRAPPED}\n" % "Own(0.1, 0.9)",
    ),
    "of an own class that calls its base": (
        "class Own(tf.train.AdamOptimizer):\n    def compute_gradients(self, loss):\n"
        "        return tf.train.AdamOptimizer.compute_gradients(self, 2 * loss)\no = Own()\n",
        "class Own(tf.train.AdamOptimizer):\n    def compute_gradients(self, loss):\n"
        f"        return tf.train.AdamOptimizer.compute_gradients(self, 2 * loss)\no = {WRAPPED}\n" % "Own()",
    ),
    "inside an own class that asks it": (
        f"class Own(tf.train.Optimizer):\n    def __init__(self):\n        self._inner = {ADAM}\n\n"
        "    def compute_gradients(self, loss):\n        return self._inner.compute_gradients(loss)\no = Own()\n",
        f"class Own(tf.train.Optimizer):\n    def __init__(self):\n        self._inner = {WRAPPED}\n\n"
        "    def compute_gradients(self, loss):\n        return self._inner.compute_gradients(loss)\no = Own()\n"
        % ADAM,
    ),
    "around one that only applies": (
        "class Own(tf.train.Optimizer):\n    def __init__(self, inner):\n        self._inner = inner\n\n"
        f"    def apply_gradients(self, pairs):\n        return self._inner.apply_gradients(pairs)\no = Own({ADAM})\n",
        "class Own(tf.train.Optimizer):\n    def __init__(self, inner):\n        self._inner = inner\n\n"
        f"    def apply_gradients(self, pairs):\n        return self._inner.apply_gradients(pairs)\no = {WRAPPED}\n"
        % (f"Own({ADAM})"),
    ),
}


@pytest.mark.parametrize("before,after", list(ONCE.values()), ids=list(ONCE))
def test_an_optimizer_is_wrapped_once(before: str, after: str) -> None:
    assert convert(before, "NPU")[0] == after


@pytest.mark.parametrize(
    "text",
    [
        f"from npu_shim.npu_init import *\no = npu_distributed_optimizer_wrapper({ADAM})\n",
        f"from npu_shim.npu_init import *\no = {ADAM}\no = NPUDistributedOptimizer(o)\n",
        f"from npu_bridge.npu_init import *\no = {ADAM}\no = npu_tf_optimizer(tf.contrib.opt.MovingAverageOptimizer(o))\n",
        f"from npu_shim.npu_init import *\ndef make():\n    return {ADAM}\no = npu_tf_optimizer(make())\n",
        f"from npu_shim.npu_init import *\no = NPUOptimizer({ADAM}, is_distributed=True)\n",
        f"import horovod.tensorflow as hvd\no = hvd.DistributedOptimizer({ADAM})\n",
        "kind = tf.train.AdamOptimizer\n",
        "x = isinstance(o, tf.train.Optimizer)\n",
        "class Own(tf.train.AdamOptimizer):\n    def __init__(self):\n        super(Own, self).__init__(0.1)\n",
        "rate = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 100, 0.9)\n",
        f"class ModelTest(tf.test.TestCase):\n    def test_it(self):\n        o = {ADAM}\n",
    ],
    ids=[
        "wrapped",
        "wrapped later",
        "wrapped around another",
        "wrapped by the caller",
        "averaging by an argument",
        "averaged by Horovod",
        "a class",
        "the base class",
        "a base made",
        "a schedule",
        "a test",
    ],
)
def test_an_optimizer_that_is_averaged_or_none_stays(text: str) -> None:
    assert convert(text, "NPU303") == ("\n".join(x for x in text.split("\n") if "npu_shim" not in x), [])


MAKING = "class T:\n    def __init__(self, {}):\n        self.make, self.other = make, other\n"
MAKING += "        if self.other is None:\n            self.other = make\n"
MAKING += "    def one(self):\n        return self.make(0.1)\n    def two(self):\n        return self.other(0.1)\n"
MAKING += "    def build(self):\n        return self.one().minimize(a), self.two().minimize(b)\n"


@pytest.mark.parametrize(
    "parameters, wrapped, codes",
    [
        ("make=tf.train.AdamOptimizer, other=None", 2, []),
        ("make, other=None", 0, ["NPU303"] * 2),
    ],
    ids=["a class by default", "unknown"],
)
def test_an_optimizer_that_a_parameter_makes(parameters: str, wrapped: int, codes: list[str]) -> None:
    new, findings = convert("@configurable\n" + MAKING.format(parameters), "NPU303")
    assert new.count(WRAPPED.partition("%")[0]) == wrapped and findings == codes


@pytest.mark.parametrize(
    "text, codes",
    [
        (f"def f(o, x):\n    o.minimize(x)\ng = functools.partial(f, o={ADAM})\n", []),
        (f"def f(o, x):\n    o.minimize(x)\ng = functools.partial(f, {ADAM})\n", []),
        ("def f(o, x):\n    o.minimize(x)\ng = functools.partial(f, x=1)\n", ["NPU303"]),
        ("def f(o, x):\n    o.minimize(x)\n    o.minimize(2 * x)\n", ["NPU303"]),
        ("from lib import make\nmake(0.1).minimize(x, global_step=step)\n", ["NPU303"]),
        ("from lib import make\nmake(0.1).minimize(x)\n", []),
        ("from scipy import optimize\noptimize.minimize(f, x, global_step=step)\n", []),
        ("class T:\n    def minimize(self, x):\n        return 2 * x\nT().minimize(3)\n", []),
        ("class O(tf.train.Optimizer):\n    def compute_gradients(self, x):\n"
         "        return self.o.compute_gradients(x)\n", []),
        ("def f(mesh: trimesh.Mesh):\n    o = tf.contrib.opt.ScipyOptimizerInterface(x)\n    o.minimize(s)\n", []),
    ],
    ids=["by partial", "by partial, first", "not by partial", "once", "a library", "another one", "SciPy", "own method",
         "inside an optimizer", "SciPy's of TensorFlow"],
)  # fmt: skip
def test_an_unknown_optimizer_that_computes_gradients_is_reported(text: str, codes: list[str]) -> None:
    assert convert("import functools\n" + text, "NPU303")[1] == codes


COMPILE = "m = tf.keras.Sequential()\nm.compile(%s)\n"


@pytest.mark.parametrize(
    "before,after",
    [
        ("'adam', 'mse'", WRAPPED % "'adam'" + ", 'mse'"),
        ("loss='mse', optimizer='sgd'", "loss='mse', optimizer=" + WRAPPED % "'sgd'"),
        ("", "optimizer=" + WRAPPED % "'rmsprop'"),
        ("tf.keras.optimizers.Adam(), 'mse'", WRAPPED % "tf.keras.optimizers.Adam()" + ", 'mse'"),
        ("'adam' if a else 'sgd'", WRAPPED % "'adam' if a else 'sgd'"),
    ],
)
def test_compile_gets_an_averaging_optimizer(before: str, after: str) -> None:
    assert convert(COMPILE % before, "NPU30") == (COMPILE % after, [])


@pytest.mark.parametrize("given", ["FLAGS.optimizer", "make_optimizer()", "**arguments"])
def test_compile_with_an_optimizer_created_elsewhere_is_reported(given: str) -> None:
    assert convert(COMPILE % given, "NPU30") == (COMPILE % given, ["NPU304"])


@pytest.mark.parametrize(
    "text",
    [
        'import re\nre.compile("adam")\n',
        "tf.xla.experimental.compile(f)\n",
        "tf.xla.experimental.compile(f, [x])\n",
        "import statsmodels.api as sm\nols = sm.OLS(y, x)\nols.fit()\n",
        'design.compile("adam", "mse")\n',
        'def f(model):\n    model.compile("adam", "mse")\n',
    ],
)
def test_other_things_called_compile_and_fit_stay(text: str) -> None:
    assert convert(text, "NPU30") == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        "tf.contrib.layers.optimize_loss(l, s, 0.1, tf.train.AdamOptimizer)\n",
        "tf.estimator.DNNClassifier([9], columns)\n",
        'tf.estimator.LinearRegressor(columns, optimizer="Ftrl")\n',
        "m = tf.keras.Sequential()\ne = tf.keras.estimator.model_to_estimator(m)\n",
    ],
)
def test_optimizers_created_by_other_code_are_reported(text: str) -> None:
    assert convert(text, "NPU304") == (text, ["NPU304"])


@pytest.mark.parametrize(
    "text",
    [
        "tf.contrib.layers.optimize_loss(l, s, 0.1, optimizer=lambda r: tf.train.AdamOptimizer(r))\n",
        "tf.estimator.DNNClassifier([9], columns, optimizer=tf.train.AdamOptimizer())\n",
        'm = tf.keras.Sequential()\nm.compile(tf.train.AdamOptimizer(), "mse")\n'
        "e = tf.keras.estimator.model_to_estimator(m)\n",
    ],
)
def test_visible_optimizers_are_wrapped_where_they_are_created(text: str) -> None:
    new, reported = convert(text, "NPU30")
    assert reported == [] and new.count("npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(") == 1


# --- gradients -----------------------------------------------------------------------

GRADIENTS = "tf.gradients(loss, variables)"
AVERAGED = f"npu_allreduce({GRADIENTS})"
APPLIED: dict[str, str] = {
    "at once": "opt.apply_gradients(zip(%s, variables))\n",
    "by a name": "g = %s\nopt.apply_gradients(zip(g, variables), global_step=s)\n",
    "clipped together": "g, norm = tf.clip_by_global_norm(%s, 5)\nopt.apply_gradients(list(zip(g, variables)))\n",
    "clipped one by one": "g = [tf.clip_by_value(x, -1, 1) for x in %s]\nopt.apply_gradients(zip(g, variables))\n",
    "clipped in pairs": "pairs = zip(%s, variables)\npairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs]\n"
    "opt.apply_gradients(grads_and_vars=pairs)\n",
    "collected": "pairs = []\nfor g, v in zip(%s, variables):\n    if g is not None:\n        pairs.append((g / 2, v))\n"
    "opt.apply_gradients(pairs)\n",
    "of a function": "def compute(loss):\n    return %s\nopt.apply_gradients(zip(compute(loss), variables))\n",
    "of a function, with more": "def compute(loss):\n    return loss, %s\nl, g = compute(loss)\nopt.apply_gradients(zip(g, variables))\n",
    "handed to a function": "def apply(g):\n    return opt.apply_gradients(zip(g, variables))\napply(%s)\n",
    "of an attribute": "class Agent:\n    def build(self, loss, variables):\n        self.g = %s\n\n"
    "    def train(self):\n        return self.opt.apply_gradients(zip(self.g, self.variables))\n",
    "through a function of their own": "def half(g):\n    return tidy(g)\nopt.apply_gradients(zip(half(%s), variables))\n",
    "through a name that is only None": "tidy = None\ng = [tidy(x) for x in %s]\nopt.apply_gradients(zip(g, variables))\n",
    "in one of two ways": "if plain:\n    pairs = opt.compute_gradients(loss)\nelse:\n    pairs = zip(%s, variables)\n"
    "opt.apply_gradients(pairs)\n",
}


@pytest.mark.parametrize("text", list(APPLIED.values()), ids=list(APPLIED))
def test_gradients_that_are_applied_are_averaged_once(text: str) -> None:
    assert convert(text % GRADIENTS, "NPU305") == (text % AVERAGED, [])


@pytest.mark.parametrize(
    "text",
    [
        "slopes = tf.gradients(d, [x])[0]\npenalty = tf.reduce_mean(slopes ** 2)\no.apply_gradients(o.compute_gradients(penalty))\n",
        "@tf.custom_gradient\ndef f(x):\n    def grad(dy):\n        return tf.gradients(y, x, grad_ys=dy)\n    return y, grad\n",
        "hessian = tf.gradients(tf.gradients(loss, x), x)\n",
        "saliency = tf.gradients(logits, images)[0]\n",
        "from npu_shim.npu_init import *\no.apply_gradients(zip(npu_allreduce(tf.gradients(loss, v)), v))\n",
        "from npu_shim.npu_init import *\ndef f(x):\n    return npu_allreduce(tf.gradients(x, v))\n"
        "penalty = norm(f(d))\no.apply_gradients(zip(f(loss), v))\n",
        "o.apply_gradients(o.compute_gradients(loss))\n",
    ],
    ids=[
        "a penalty",
        "a custom gradient",
        "a Hessian",
        "a map",
        "averaged already",
        "averaged in a function used twice",
        "of an optimizer",
    ],
)
def test_other_gradients_stay(text: str) -> None:
    assert convert(text, "NPU305") == ("\n".join(x for x in text.split("\n") if "npu_shim" not in x), [])


@pytest.mark.parametrize(
    "text",
    [
        "o.apply_gradients(zip(tf.gradients(loss, v, grad_ys=w), v))\n",
        "a = tf.gradients(loss, v)\nb = tf.gradients(a, v)\no.apply_gradients(zip(a, v))\n",
        "a = tf.gradients(loss, v)\no.apply_gradients(zip(found, v))\n",
        "a = tf.gradients(loss, v)\nb = tf.gradients(other, v, grad_ys=w)\no.apply_gradients([(g + h, x) for g, h, x in zip(a, b, v)])\n",
        "def f(x):\n    return tf.gradients(x, v)\npenalty = norm(f(d))\no.apply_gradients(zip(f(loss), v))\n",
        "a = tf.gradients(loss, v)\nstored = [tf.Variable(g) for g in a]\no.apply_gradients(zip(accumulate(stored), v))\n",
    ],
    ids=[
        "from other gradients",
        "differentiated again",
        "from out of sight",
        "mixed",
        "of a function used twice",
        "stored",
    ],
)
def test_gradients_that_cannot_be_traced_are_reported(text: str) -> None:
    assert convert(text, "NPU305") == (text, ["NPU305"])


def test_the_finding_on_a_gradient_contains_the_fix() -> None:
    result = WITH.convert((TF + "a = tf.gradients(l, v)\nself.o.apply_gradients(zip(f, v))\n").encode())
    assert any("before they are clipped: gradients = npu_allreduce(gradients)" in d.message for d in result.diagnostics)


def test_an_unknown_optimizer_of_a_tape_is_reported() -> None:
    text = "with tf.GradientTape() as tape:\n    l = f()\ng = tape.gradient(l, v)\no.apply_gradients(zip(g, v))\n"
    assert convert(text, "NPU308") == (text, ["NPU308"])


def test_an_optimizer_that_only_applies_averaged_gradients_is_not_wrapped() -> None:
    text = "o = %s\no.apply_gradients(zip(%s, variables))\n"
    assert convert(text % (ADAM, GRADIENTS), "NPU30") == (text % (ADAM, AVERAGED), [])
    both = "o = %s\no.apply_gradients(zip(%s, variables))\no.minimize(other)\n"
    assert convert(both % (ADAM, GRADIENTS), "NPU30") == (both % (WRAPPED % ADAM, AVERAGED), [])


# --- hooks, callbacks, and findings on them ---------------------------------------

E = "e = tf.estimator.Estimator(f)\n"
APPEND = "npu_hooks_append(hooks_list=%s)"
GRAPH = "x = tf.placeholder(tf.float32, [8])\n"
HOOKED: dict[str, tuple[str, str]] = {
    "none": (E + "e.train(i)\n", E + "e.train(i, hooks=npu_hooks_append())\n"),
    "by position": (E + "e.train(i, h, 9)\n", E + f"e.train(i, {APPEND}, 9)\n" % "h"),
    "by keyword": (E + "e.train(hooks=[h], input_fn=i)\n", E + f"e.train(hooks={APPEND}, input_fn=i)\n" % "[h]"),
    "None": (E + "e.train(i, hooks=None)\n", E + "e.train(i, hooks=npu_hooks_append())\n"),
    "of a ready-made Estimator": (
        "e = tf.estimator.BaselineClassifier()\ne.train(i)\n",
        "e = tf.estimator.BaselineClassifier()\ne.train(i, hooks=npu_hooks_append())\n",
    ),
    "of a specification": (
        "s = tf.estimator.TrainSpec(i, 9, h)\n",
        f"s = tf.estimator.TrainSpec(i, 9, {APPEND})\n" % "h",
    ),
    "of evaluation": ("s = tf.estimator.EvalSpec(i)\n", "s = tf.estimator.EvalSpec(i, hooks=npu_hooks_append())\n"),
    "of a session": (
        "s = tf.train.MonitoredTrainingSession()\ns.run(train_op)\n",
        "s = tf.train.MonitoredTrainingSession(hooks=npu_hooks_append())\ns.run(train_op)\n",
    ),
    "of a session that does not train": ("s = tf.train.MonitoredTrainingSession()\ns.run(x)\n",) * 2,
    "of a model": (
        GRAPH + "m = tf.keras.Sequential()\nm.fit(x, y, 9, 9, 1, [c])\n",
        GRAPH + "m = tf.keras.Sequential()\nm.fit(x, y, 9, 9, 1, npu_callbacks_append(callbacks_list=[c]))\n",
    ),
    "of a model with a generator": (
        GRAPH + "m = tf.keras.Sequential()\nm.fit_generator(g)\n",
        GRAPH + "m = tf.keras.Sequential()\nm.fit_generator(g, callbacks=npu_callbacks_append())\n",
    ),
    "that have one": (
        "from npu_shim.npu_init import *\n" + E + "h = [NPUBroadcastGlobalVariablesHook(0)]\ne.train(i, h)\n",
        E + "h = [NPUBroadcastGlobalVariablesHook(0)]\ne.train(i, h)\n",
    ),
}


@pytest.mark.parametrize("before,after", list(HOOKED.values()), ids=list(HOOKED))
def test_all_ranks_start_from_the_same_variables(before: str, after: str) -> None:
    assert convert(before, "NPU306") == (after, [])


def test_a_session_without_arguments_gets_two() -> None:
    assert (
        convert("s = tf.train.MonitoredTrainingSession()\ns.run(train_op)\n")[0]
        == "s = tf.train.MonitoredTrainingSession(config=npu_config_proto(), hooks=npu_hooks_append())\ns.run(train_op)\n"
    )


@pytest.mark.parametrize(
    "text,reported",
    [
        ("def f(e):\n    e.train(input_fn=i)\n", ["NPU306"]),
        ("def f(e):\n    e.train(i)\n", []),
        (E + "e.train(*a)\n", ["NPU306"]),
        ("m.fit(x)\n", []),
        ("thomas.train(7)\n", []),
    ],
)
def test_a_possible_estimator_is_reported(text: str, reported: list[str]) -> None:
    assert convert(text, "NPU306") == (text, reported)


LOOP = "with tf.Session() as sess:\n    sess.run(%s)\n    sess.run(train_op)\n"


@pytest.mark.parametrize(
    "text,reported",
    [
        (LOOP % "tf.global_variables_initializer()", ["NPU251"]),
        (
            "init = tf.group(a)\n" + LOOP % "[tf.global_variables_initializer(), tf.local_variables_initializer()]",
            ["NPU251"],
        ),
        ("init = tf.initialize_all_variables()\n" + LOOP % "init", ["NPU251"]),
        (LOOP % "tf.local_variables_initializer()", []),
        (
            "from npu_shim.npu_init import *\nsess.run(hccl_ops.broadcast([v], 0))\n"
            + LOOP % "tf.global_variables_initializer()",
            [],
        ),
    ],
)
def test_a_loop_without_a_broadcast_is_reported(text: str, reported: list[str]) -> None:
    assert convert(text, "NPU251")[1] == reported


@pytest.mark.parametrize(
    "text,reported",
    [
        ("def train_input_fn():\n    return tf.data.TFRecordDataset(f)\n", ["NPU252"]),
        (
            "def input_fn(is_training):\n    d = tf.data.Dataset.range(9)\n    d = tf.data.Dataset.zip((d, d))\n    return d\n",
            ["NPU252"],
        ),
        ("def train_input_fn():\n    return tf.data.TFRecordDataset(f).shard(n, i)\n", []),
        ("def eval_input_fn():\n    return tf.data.TFRecordDataset(f)\n", []),
        ("def read():\n    return tf.data.TFRecordDataset(f)\n", []),
        ("s = tf.distribute.MirroredStrategy()\ndef train_input_fn():\n    return tf.data.TFRecordDataset(f)\n", []),
    ],
)
def test_unsharded_data_is_reported(text: str, reported: list[str]) -> None:
    assert convert(text, "NPU252")[1] == reported


@pytest.mark.parametrize(
    "text,words",
    [
        (
            "e = tf.estimator.LinearClassifier(columns, config=c)\n",
            "save_checkpoints_steps=100 if get_rank_id() == 0 else 0",
        ),
        (
            "s = tf.train.MonitoredTrainingSession(checkpoint_dir=d)\n",
            "checkpoint_dir=d if get_rank_id() == 0 else None",
        ),
        (
            "saver = tf.train.Saver()\nsaver.save(s,\n           p)\ns.run(train_op)\n",
            "if get_rank_id() == 0: saver.save(s, p)",
        ),
        ("c = tf.keras.callbacks.ModelCheckpoint(p)\n", "only if get_rank_id() == 0"),
    ],
)
def test_checkpoints_of_all_ranks_are_reported(text: str, words: str) -> None:
    result = Converter(Settings(("NPU253",), distributed="tf_strategy")).convert((TF + text).encode())
    assert [words in d.message for d in result.diagnostics] == [True]


# --- projects ------------------------------------------------------------------------


def run(folder: pathlib.Path, files: dict[str, str]) -> dict[str, str]:
    for name, text in files.items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_text(text)
    main(["-i", str(folder / "src"), "-o", str(folder / "out"), "-d", "tf_strategy"])
    return {name: (folder / "out" / name).read_text() for name in files}


def test_a_strategy_from_a_helper_in_another_file_is_replaced(tmp_path: pathlib.Path) -> None:
    made = run(
        tmp_path,
        {
            "utils/__init__.py": "",
            "utils/distribution.py": TF + "def get_strategy(num_gpus):\n    if num_gpus == 0:\n"
            "        return tf.distribute.OneDeviceStrategy('device:CPU:0')\n    return tf.distribute.MirroredStrategy()\n",
            "train.py": TF + "from utils import distribution\nstrategy = distribution.get_strategy(n)\n"
            "config = tf.estimator.RunConfig(train_distribute=strategy, model_dir=d)\n",
        },
    )
    assert made["utils/distribution.py"].count(NPU_STRATEGY) == 2
    assert "config = NPURunConfig(train_distribute=strategy, model_dir=d)\n" in made["train.py"]


@pytest.mark.parametrize(
    "imports,made,reported",
    [
        ("data", "tf.distribute.MirroredStrategy()", 0),
        ("data", "tf.distribute.ReduceOp.SUM", 1),
        ("other", "tf.distribute.MirroredStrategy()", 1),
    ],
)
def test_a_strategy_of_the_same_program_shards_the_data(
    imports: str, made: str, reported: int, tmp_path: pathlib.Path, capsys: Any
) -> None:
    (tmp_path / "data.py").write_text(TF + "def train_input_fn():\n    return tf.data.TFRecordDataset(f)\n")
    (tmp_path / "main.py").write_text("import data\n")
    (tmp_path / "train.py").write_text(TF + f"import {imports}\nstrategy = {made}\n")
    assert main(["-i", str(tmp_path), "-d", "tf_strategy", "--select", "NPU252"]) == 0
    assert capsys.readouterr().err.count("NPU252 not converted") == reported


def test_an_optimizer_of_another_file_is_wrapped_where_it_is_made(tmp_path: pathlib.Path) -> None:
    made = run(
        tmp_path,
        {
            "opt.py": TF + "def make(rate):\n    return tf.train.AdamOptimizer(rate)\n",
            "train.py": TF
            + 'import opt\no = opt.make(0.1)\no.minimize(l)\nm = tf.keras.Sequential()\nm.compile(opt.make(1), "mse")\n',
        },
    )
    assert "".join(made.values()).count("npu_distributed_optimizer_wrapper(") == 1
    assert "npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(rate))" in made["opt.py"]


def test_an_optimizer_that_another_file_wraps_stays(tmp_path: pathlib.Path) -> None:
    files = {
        "opt.py": TF + "def make(rate):\n    return tf.train.AdamOptimizer(rate)\n",
        "train.py": "from npu_shim.npu_init import *\nimport opt\no = NPUDistributedOptimizer(opt.make(0.1))\n",
    }
    assert run(tmp_path, files) == files


def test_an_optimizer_class_of_another_file_is_known(tmp_path: pathlib.Path) -> None:
    made = run(
        tmp_path,
        {
            "own.py": TF + "class Base(tf.train.Optimizer):\n    pass\nclass Own(Base):\n    pass\n",
            "train.py": TF + "from own import Own\no = Own(0.1)\no.minimize(l)\n",
        },
    )
    assert "npu_distributed_optimizer_wrapper(Own(0.1))" in made["train.py"] and "npu_shim" not in made["own.py"]


def test_gradients_of_another_file_are_averaged_there(tmp_path: pathlib.Path) -> None:
    made = run(
        tmp_path,
        {
            "net.py": TF + "def gradients(loss, variables):\n    return tf.gradients(loss, variables)\n",
            "train.py": TF
            + "import net\ng = net.gradients(l, v)\no = tf.train.AdamOptimizer()\no.apply_gradients(zip(g, v))\n",
        },
    )
    assert "npu_allreduce(tf.gradients(loss, variables))" in made["net.py"]
    assert "npu_shim" not in made["train.py"]


def test_a_file_beside_one_that_applies_gradients_of_arguments_is_read(tmp_path: pathlib.Path) -> None:
    apply = (
        "def apply(optimizer, gradients, variables):\n    return optimizer.apply_gradients(zip(gradients, variables))\n"
    )
    files = {"apply.py": TF + apply, "net.py": TF + "gradient_clip = tf.constant(1.0)\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    run = convert_source(str(tmp_path), Settings(distributed="tf_strategy"))
    assert [result.diagnostics for _, result in run.results] == [(), ()]


@pytest.mark.parametrize(
    "folder,words",
    [
        ("d", "checkpoint_dir=d if get_rank_id() == 0 else None"),
        ("\n    a if b else c", "checkpoint_dir=(a if b else c) if get_rank_id() == 0 else None"),
    ],
)
def test_the_fix_for_one_rank_that_saves_is_an_expression(folder: str, words: str) -> None:
    text = TF + f"s = tf.train.MonitoredTrainingSession(checkpoint_dir={folder})\n"
    result = Converter(Settings(("NPU253",), distributed="tf_strategy")).convert(text.encode())
    assert [d.message.partition(". Pass ")[2] for d in result.diagnostics] == [words]


def test_a_loop_with_an_optimizer_in_another_file_is_training(tmp_path: pathlib.Path) -> None:
    (tmp_path / "model.py").write_text(TF + "def step(loss):\n    return tf.train.AdamOptimizer().minimize(loss)\n")
    loop = "with tf.Session() as sess:\n    sess.run(tf.global_variables_initializer())\n    sess.run(op)\n"
    (tmp_path / "train.py").write_text(TF + "from model import step\nop = step(x)\n" + loop)
    (tmp_path / "show.py").write_text(TF + "op = load()\n" + loop)
    run = convert_source(str(tmp_path), Settings(("NPU251",), distributed="tf_strategy"))
    assert {e.relative for e, r in run.results if r.diagnostics} == {"train.py"}


def test_optimizers_of_a_module_that_programs_of_both_versions_share(tmp_path: pathlib.Path) -> None:
    """Names of TensorFlow 2 in a module do not leave the program of TensorFlow 1 without averages."""
    files = {
        "utils.py": TF + "def writer(folder):\n    return tf.summary.create_file_writer(folder)\n"
        "def build():\n    return tf.compat.v1.train.AdamOptimizer(0.1)\n"
        "def build_for_keras():\n    return tf.keras.optimizers.Adam(0.1)\n",
        "eager.py": TF + "import utils\nwith tf.GradientTape() as tape:\n    loss = model(x)\n"
        "utils.build_for_keras().apply_gradients(zip(tape.gradient(loss, v), v))\n",
        "graph.py": TF + "import utils\ndef model_fn(features, labels, mode, params):\n"
        "    train_op = utils.build().minimize(loss)\n"
        "    return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)\n",
    }
    (tmp_path / "in").mkdir()
    for name, text in files.items():
        (tmp_path / "in" / name).write_text(text)
    assert main(["-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "-d", "tf_strategy", "-q"]) == 0
    made = (tmp_path / "out" / "utils.py").read_text()
    assert WRAPPED % "tf.compat.v1.train.AdamOptimizer(0.1)" in made
    assert "npu.distribute.distributed_optimizer(tf.keras.optimizers.Adam(0.1))" in made


def test_a_function_that_a_loop_binds_to_a_part_of_itself() -> None:
    text = "import functools\ndef run(step):\n    for k in range(3):\n        step = functools.partial(step, k)\n    return step(1)\n"
    assert convert(text)[0] == text
    made = "def make(rate):\n    new = tf.train.AdamOptimizer\n    for _ in range(3):\n        new = functools.partial(new, rate)\n"
    made = "import functools\n" + made + "    return new()\n"
    assert convert(made, "NPU303")[0] == made.replace("new()", WRAPPED % "new()")
