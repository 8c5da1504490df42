"""Large tensors, which gelu and dropout compile: the same numbers in every control flow, type, graph and thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import tensorflow as tf

from npu_shim._tensorflow import tf_graph
from npu_shim.estimator.npu import util
from npu_shim.ops import xla
from npu_shim.ops.dropout import dropout
from npu_shim.ops.gelu import LEAST_ELEMENTS, gelu
from tests.control_flow import control_flow_v2
from tests.ops import test_gelu

v1 = tf.compat.v1
pytestmark = [pytest.mark.once, pytest.mark.slow]
N = LEAST_ELEMENTS + 1234  # more than dropout compiles, too
X = np.linspace(-4, 4, N).astype(np.float32)
truth = test_gelu.truth
CONTROL_FLOW = [
    test_gelu._plain,
    test_gelu._in_a_loop,
    test_gelu._in_a_branch,
    test_gelu._in_a_function,
    test_gelu._in_a_branch_in_a_loop,
]


def compiled_calls(graph):
    """The ops that compile, in a graph and its functions."""
    nodes = list(graph.as_graph_def().node)
    for function in graph.as_graph_def().library.function:
        nodes += function.node_def
    return [node for node in nodes if node.op == "XlaLaunch" or node.attr["_XlaMustCompile"].b]


@pytest.mark.parametrize(
    "v2, shape",
    [
        (False, [N]),
        (True, [None]),
        pytest.param(False, [None], marks=pytest.mark.nightly),
        pytest.param(True, [N], marks=pytest.mark.nightly),
    ],
    ids=["control flow v1, static", "control flow v2, unknown", "control flow v1, unknown", "control flow v2, static"],
)
@pytest.mark.parametrize("build", CONTROL_FLOW, ids=lambda b: b.__name__.strip("_").replace("_", " "))
def test_gelu_through_control_flow(build, v2, shape):
    with control_flow_v2(v2), tf.Graph().as_default() as graph, v1.Session() as sess:
        x = v1.placeholder(tf.float32, shape)
        y = build(x)
        (gradient,) = tf.gradients(y, x)
        assert len(compiled_calls(graph)) >= 2
        value, slope = sess.run([y, gradient], {x: X})
    wanted, wanted_slope = test_gelu._by_hand(build, X)
    np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(slope, wanted_slope, rtol=2e-5, atol=4e-6)


_FORMS = {"static": ([N], None), "unknown, factors kept": ([None], N + 1), "unknown, key kept": ([None], N)}
_DAILY = [("static", True), ("unknown, factors kept", False), ("unknown, key kept", True)]


@pytest.mark.parametrize(
    "form, v2",
    [
        *_DAILY,
        *(pytest.param(form, not v2, marks=pytest.mark.nightly) for form, v2 in _DAILY),
    ],
)
@pytest.mark.parametrize("build", CONTROL_FLOW, ids=lambda b: b.__name__.strip("_").replace("_", " "))
def test_dropout_through_control_flow(monkeypatch, build, v2, form):
    shape, least_keyed = _FORMS[form]
    """The gradient of several dropouts in a row has all masks; each iteration has its own mask."""
    monkeypatch.setattr(test_gelu, "gelu", lambda x: dropout(x, 0.5))
    monkeypatch.setitem(dropout.__globals__, "_LEAST_KEYED", least_keyed)
    times = {"_in_a_loop": 3, "_in_a_branch_in_a_loop": 2}.get(build.__name__, 1)
    last = 2.0 if build.__name__ == "_in_a_branch_in_a_loop" else 1.0
    ones = np.ones(N, np.float32)
    with control_flow_v2(v2), tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, shape)
        y = (
            tf.function(lambda t: dropout(t, 0.5), autograph=False)(x)
            if build is test_gelu._in_a_function
            else build(x)
        )
        (gradient,) = tf.gradients(y, x)
        value, slope = sess.run([y, gradient], {x: ones})
    np.testing.assert_array_equal(value, slope)
    assert set(value) == {0.0, last * 2.0**times}
    share = 0.5**times
    assert abs((value != 0).mean() - share) < 5 * np.sqrt(share * (1 - share) / N)


@pytest.mark.parametrize("name", test_gelu.TYPES)
def test_accuracy_and_ends(run, name):
    """Within two scaled units; what is beyond the range, infinite or NaN has its limit."""
    ends = [-np.inf, np.inf, np.nan, -1e4, 1e4, 300.0, -300.0, -26.0, 26.0, -0.0]
    values = np.concatenate([np.linspace(-12, 12, 200_000), np.repeat(ends, 8)])

    def build():
        x = tf.cast(tf.constant(values), name)
        y = gelu(x)
        return [tf.cast(v, tf.float64) for v in (x, y, tf.gradients(y, x)[0])]

    x, y, gradient = run(build)
    value, slope, _ = truth(x[:200_000])
    assert test_gelu.units(y[:200_000], value, name).max() <= test_gelu.ALLOWED[name]
    assert test_gelu.units(gradient[:200_000], slope, name).max() <= test_gelu.ALLOWED[name]
    np.testing.assert_array_equal(
        y[200_000:].reshape(-1, 8).T, [[0, np.inf, np.nan, 0, x[200_032], 300, 0, 0, 26, 0]] * 8
    )
    np.testing.assert_allclose(
        gradient[200_000:].reshape(-1, 8).T, [[0, 1, np.nan, 0, 1, 1, 0, 0, 1, 0.5]] * 8, rtol=1e-7
    )


def test_negative_values_keep_their_precision(run):
    x = np.linspace(-5, -1.5, N).astype(np.float32)
    np.testing.assert_allclose(run(lambda: gelu(tf.constant(x))), truth(x)[0], rtol=60 * np.finfo(np.float32).eps)


def test_second_gradient(run):
    def build():
        x = tf.constant(X)
        (first,) = tf.gradients(gelu(x), x, grad_ys=tf.fill([N], 3.0))
        return tf.gradients(first, x)[0]

    np.testing.assert_allclose(run(build), 3 * truth(X)[2], atol=1e-5)


def test_works_when_executing_eagerly():
    if not tf.executing_eagerly():  # TF 1: graph mode is all there is, and covered above
        assert tf.__version__.startswith("1.")
        return
    for count in (N, N + 1, 3 * N):  # two of them padded to the same size
        x = tf.linspace(-4.0, 4.0, count)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = gelu(tf.reshape(x, [1, count]))
        np.testing.assert_allclose(y.numpy()[0], truth(x.numpy())[0], atol=1e-6)
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), truth(x.numpy())[1], atol=1e-6)


@pytest.mark.parametrize("count", [100, N], ids=["small", "large"])
@pytest.mark.parametrize("static", [True, False], ids=["static", "unknown"])
@pytest.mark.parametrize("jit", [None, True], ids=["run", "compiled as a whole"])
def test_a_tape_inside_a_function(count, static, jit):
    """Every training loop of TF 2 does this; TF 1.15 does it in graphs only and compiles no functions."""
    if tf.__version__.startswith("1."):
        jit = None
    signature = [tf.TensorSpec([count] if static else None, tf.float32)]

    def step(v):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(v)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(v)
                y, z = gelu(v), dropout(v, 0.5)
            slope = tape.gradient(y, v)
        return y, slope, outer.gradient(slope, v), z, tape.gradient(z, v)

    made = tf.function(step, signature, autograph=False, **(dict(jit_compile=True) if jit else {}))
    x = X[:count]
    if tf.executing_eagerly():
        got = [value.numpy() for value in made(tf.constant(x))]
    else:
        with tf.Graph().as_default(), v1.Session() as sess:
            got = sess.run(made(tf.constant(x)))
    for value, wanted in zip(got, truth(x)):
        np.testing.assert_allclose(value, wanted, atol=1e-5)
    np.testing.assert_array_equal(got[3], x * got[4])
    assert set(got[4]) == {0, 2}


# ---- when nothing is compiled


@pytest.mark.parametrize("reason", ["small", "float64", "plain", "no XLA", "no leave to run what it makes", "a GPU"])
def test_is_not_compiled(monkeypatch, reason):
    if reason == "plain":
        monkeypatch.setenv("NPU_SHIM_KERNELS", "plain")
    if reason == "no XLA":
        monkeypatch.setattr(tf_graph, "has_cpu_kernel", lambda op: False)
    if reason == "a GPU":
        monkeypatch.setattr(tf.config.experimental, "list_physical_devices", lambda kind: [kind])
    if reason == "no leave to run what it makes":
        monkeypatch.setattr(xla, "may_run_generated_code", lambda: False)
    xla._can_compile.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as told, tf.Graph().as_default() as graph, v1.Session() as sess:
            warnings.simplefilter("always", RuntimeWarning)
            x = tf.constant(X[:1000] if reason == "small" else X, tf.float64 if reason == "float64" else tf.float32)
            y = gelu(x)
            (gradient,) = tf.gradients(y, x)
            assert not compiled_calls(graph)
            np.testing.assert_allclose(sess.run(gradient), truth(sess.run(x))[1], atol=1e-6)
            if reason != "float64":
                assert set(np.unique(sess.run(dropout(tf.ones_like(x), 0.5)))) == {0, 2}
                assert not compiled_calls(graph)
        told = [str(warning.message) for warning in told if "npu_shim compiles nothing" in str(warning.message)]
        assert len(told) == (reason.startswith("no ")), "told once, where nobody asked for it"
        assert all("NPU_SHIM_KERNELS=plain" in text for text in told)
    finally:
        xla._can_compile.cache_clear()


HARDENED = """
import ctypes, warnings
warnings.simplefilter("ignore")
import numpy as np, tensorflow as tf
from npu_shim.ops import xla
from npu_shim.ops.dropout import dropout
from npu_shim.ops.gelu import gelu
warnings.filterwarnings("always", category=RuntimeWarning, message="npu_shim")
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
is_hardened = ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) == 0
assert xla.may_run_generated_code() != is_hardened
with warnings.catch_warnings(record=True) as told, tf.Graph().as_default(), tf.compat.v1.Session() as sess:
    y = gelu(tf.zeros([100000])) + dropout(tf.ones([100000]), 0.5) + dropout(tf.ones([100000]), 0.5)
    assert set(np.unique(sess.run(y))) == {0, 2, 4}
print(len(told) == is_hardened)
"""


def test_a_process_that_may_not_execute_its_files_uses_plain_ops(repo_root):
    """XLA ends such a process. Kernels before 6.3 do not know how to make one, and there it compiles."""
    env = dict(os.environ, PYTHONPATH=str(repo_root), NPU_SHIM_FALLBACK="silent")
    done = subprocess.run([sys.executable, "-c", HARDENED], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]


def test_varying_lengths_need_few_compilations(run):
    least, most = 40_000, xla.MOST_ELEMENTS
    drawn = np.random.RandomState(0).randint(least, most, 20000)
    counts = np.unique(
        np.concatenate(
            [
                np.arange(least, least + 5000),
                drawn,
                2 ** np.arange(16, 31),
                2 ** np.arange(16, 31) - 1,
                2 ** np.arange(16, 30) + 1,
                [most],
            ]
        )
    )
    with tf.Graph().as_default(), v1.Session() as sess:
        sizes = sess.run(xla._bucketed_count(tf.constant(counts, tf.int32))).astype(np.int64)
    assert (sizes >= counts).all() and (sizes <= counts * 1.125 + 1).all()
    assert len(np.unique(sizes)) <= 8 * 16
    np.testing.assert_array_equal(sizes[np.isin(counts, 2 ** np.arange(16, 31))], 2 ** np.arange(16, 31))


def plus_twice(x, y):
    return x + 2 * y


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_very_large_tensors_are_processed_in_parts(monkeypatch, name):
    monkeypatch.setattr(xla.allocator, "keeps_memory", lambda environ, version: False)
    monkeypatch.setattr(xla, "_VERY_LARGE", 1 << 16)
    monkeypatch.setattr(xla, "_PART", 1 << 14)
    with tf.Graph().as_default(), v1.Session() as sess:
        x, y = v1.placeholder(name, None), v1.placeholder(name, None)
        z = xla.call_elementwise(xla.Compiled(plus_twice), [x, y], lambda x, y: 0 * x, 40_000)
        for count in (1 << 16, (1 << 16) + 2, 5 << 14, 99_998):  # padded, one part more, whole parts, neither
            values = np.arange(count).reshape(2, -1) % 50
            got = sess.run(tf.cast(z, tf.int32), {x: values, y: values + 1})
            np.testing.assert_array_equal(got, 3 * values + 2)


# ---- where else a graph goes


def test_many_threads_share_a_session():
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, None)
        y = gelu(x)
        (gradient,) = tf.gradients(y, x)
        wrong = []

        def work(number):
            for step in range(5):
                value = X[: N - number * 50 - step]
                got, slope = sess.run([y, gradient], {x: value})
                if not np.allclose(got, truth(value)[0], atol=1e-6) or not np.allclose(
                    slope, truth(value)[1], atol=1e-6
                ):
                    wrong.append((number, step))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_threads_build_graphs_at_once():
    found = []

    def work():
        with tf.Graph().as_default(), v1.Session() as sess:
            found.append(sess.run(gelu(tf.constant(X)))[-1])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(found, [truth(X)[0][-1]] * 4, rtol=1e-6)


def _model():
    x = v1.placeholder(tf.float32, [None, N], "x")
    w = v1.get_variable("w", initializer=np.float32(0.5))
    return x, tf.identity(dropout(gelu(x * w), v1.placeholder_with_default(1.0, [])), name="y")


def test_a_saved_model_loads_and_a_frozen_graph_is_imported(tmp_path):
    """Elsewhere, whose gradients are taken there too."""
    with tf.Graph().as_default(), v1.Session() as sess:
        x, y = _model()
        sess.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(sess, str(tmp_path / "saved"), {"x": x}, {"y": y})
        frozen = v1.graph_util.convert_variables_to_constants(sess, sess.graph_def, ["y"])
    wanted = truth(X * np.float32(0.5))[0]
    with tf.Graph().as_default(), v1.Session() as sess:
        v1.saved_model.load(sess, ["serve"], str(tmp_path / "saved"))
        np.testing.assert_allclose(sess.run("y:0", {"x:0": [X]}), [wanted], atol=1e-6)
    with tf.Graph().as_default(), v1.Session() as sess:
        x, y = tf.import_graph_def(frozen, return_elements=["x:0", "y:0"])
        (gradient,) = tf.gradients(y, x)
        got, slope = sess.run([y, gradient], {x: [X]})
    np.testing.assert_allclose(got, [wanted], atol=1e-6)
    np.testing.assert_allclose(slope, [truth(X * np.float32(0.5))[1] / 2], atol=1e-6)


def test_steps_in_a_loop_of_the_graph():
    """iterations_per_loop copies the step, compiled functions included."""

    def trained(iterations, runs):
        with tf.Graph().as_default(), v1.Session() as sess:
            w = v1.get_variable("w", initializer=np.float32(0.5), use_resource=True)
            h = gelu(tf.constant(X) * w)
            loss = tf.reduce_mean(h) + 0.0 * tf.reduce_sum(dropout(h, 0.5))
            train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_or_create_global_step())
            op = util.set_iteration_per_loop(sess, train, iterations) if iterations > 1 else train
            sess.run(v1.global_variables_initializer())
            for _ in range(runs):
                sess.run(op)
            return sess.run(w)

    np.testing.assert_allclose(trained(5, 2), trained(1, 10), rtol=1e-6)


def test_in_a_keras_model():
    """It is an activation of a model that fit trains: by tf.function in TF 2, compiled as a whole in Keras 3."""
    tf.keras.backend.clear_session()
    model = tf.keras.Sequential([tf.keras.layers.Dense(16384, activation=gelu), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(1e-4), "mse")
    x = np.random.RandomState(0).randn(32, 16).astype(np.float32)
    losses = model.fit(x, x[:, :1], batch_size=16, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.predict(x[:2]).shape == (2, 1)  # 32768 elements: run, not compiled
