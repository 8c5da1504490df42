"""Steps that ``npu-shim doctor --card-check`` runs on the NPU, each in a process of its own.

Each function computes something whose result is known, and returns a line of text about it. They also run on the CPU,
which NPU_SHIM_FALLBACK=error forbids during the check.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Callable

from npu_shim._tensorflow.types import EstimatorSpec, Operation, Structure, Variable

MARK = "npu_shim card step: "  # begins the line with the result of a step
_STEPS = 10


def load() -> str:
    """Load the vendor's package and return which one serves."""
    from npu_shim._host import host_device

    return host_device.require_device().reason


def session() -> str:
    """Train w in (2 w - 6)^2 in a session: one step with the rate 1/8 leads to 3."""
    _switch_to_graph_mode()
    return _check_near(train_one_step(), 3.0, 1e-3, "w after a step in a session")


def train_one_step() -> float:
    """Return w after one step of gradient descent in a session, from w = 0: the gradient is -24."""
    from npu_shim._tensorflow import tf_api
    from npu_shim.config.session import session_config

    with tf_api.tf.Graph().as_default(), tf_api.v1.Session(config=session_config()) as run:
        step, w = _make_parabola_step_and_variable()
        run.run(tf_api.v1.global_variables_initializer())
        run.run(step)
        return float(run.run(w))


def loop() -> str:
    """Train ten steps with the rate 1/80 in one run of the session: w = 3 (1 - 0.9^10)."""
    _switch_to_graph_mode()
    from npu_shim._tensorflow import tf_api
    from npu_shim.config.session import session_config
    from npu_shim.estimator.npu.util import set_iteration_per_loop

    with tf_api.tf.Graph().as_default(), tf_api.v1.Session(config=session_config(iterations_per_loop=_STEPS)) as run:
        step, w = _make_parabola_step_and_variable(0.0125)
        run.run(tf_api.v1.global_variables_initializer())
        several = set_iteration_per_loop(run, step, _STEPS)
        run.run(several)
        return _check_near(float(run.run(w)), 3.0 * (1 - 0.9**_STEPS), 1e-2, f"w after {_STEPS} steps in one run")


def function() -> str:
    """Train a step of the same parabola in tf.function, after npu.open().as_default()."""
    from npu_shim._tensorflow import tf_api
    from npu_shim.npu_device import npu_device as npu

    tf = tf_api.tf
    npu.open().as_default()
    w = tf.Variable(0.0)

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.square(2.0 * w - 6.0)
        w.assign_sub(0.125 * tape.gradient(loss, w))

    step()
    return _check_near(float(w.numpy()), 3.0, 1e-3, f"w after a step in tf.function on {w.device}")


def operators() -> str:
    """Compare gelu with its tanh formula, and the kept share and mean of dropout with their expectation."""
    _switch_to_graph_mode()
    import numpy as np

    from npu_shim._tensorflow import tf_api
    from npu_shim.config.session import session_config
    from npu_shim.estimator.npu_ops import dropout
    from npu_shim.estimator.npu_unary_ops import npu_unary_ops

    x = np.linspace(-5, 5, 1000).astype(np.float32)
    wanted = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    with tf_api.tf.Graph().as_default(), tf_api.v1.Session(config=session_config()) as run:
        y, dropped = run.run([npu_unary_ops.gelu(tf_api.tf.constant(x)), dropout(tf_api.tf.ones([100, 1000]), 0.75)])
    first = _check_near(float(np.abs(y - wanted).max()), 0.0, 5e-3, "largest error of gelu")
    _check_near(float((dropped != 0).mean()), 0.75, 0.02, "share that dropout keeps")
    return f"{first}; {_check_near(float(dropped.mean()), 1.0, 0.03, 'mean after dropout')}"


def estimator() -> str:
    """Train NPUEstimator for two steps and read its checkpoint."""
    _switch_to_graph_mode()
    from npu_shim._tensorflow import tf_api
    from npu_shim.estimator.npu.npu_config import NPURunConfig
    from npu_shim.estimator.npu.npu_estimator import NPUEstimator, NPUEstimatorSpec

    def model_fn(features: Structure, labels: Structure, mode: str) -> EstimatorSpec:
        step, w = _make_parabola_step_and_variable()
        return NPUEstimatorSpec(mode, loss=tf_api.tf.reduce_mean(features) * 0 + w, train_op=step)

    with tempfile.TemporaryDirectory() as folder:
        npu_estimator = NPUEstimator(
            model_fn, folder, NPURunConfig(save_checkpoints_steps=1, enable_data_pre_proc=False)
        )
        npu_estimator.train(lambda: tf_api.tf.data.Dataset.from_tensors([1.0]).repeat(), steps=2)
        return _check_near(
            float(npu_estimator.get_variable_value("w")), 3.0, 1e-3, "w in the checkpoint of NPUEstimator"
        )


def collectives() -> str:
    """Sum the rank numbers over all ranks."""
    _switch_to_graph_mode()
    from npu_shim._tensorflow import tf_api
    from npu_shim.config.resource import init_resource
    from npu_shim.config.session import session_config
    from npu_shim.hccl import hccl_ops
    from npu_shim.hccl.manage.api import get_rank_id, get_rank_size

    init_resource()
    size = get_rank_size()
    with tf_api.tf.Graph().as_default(), tf_api.v1.Session(config=session_config()) as run:
        total = run.run(hccl_ops.allreduce(tf_api.tf.constant([float(get_rank_id())]), "sum"))
    return _check_near(float(total[0]), size * (size - 1) / 2, 1e-3, f"sum of {size} rank numbers")


def _switch_to_graph_mode() -> None:
    """Switch TensorFlow 2 to graph mode, as its scripts with sessions do."""
    from npu_shim._tensorflow import tf_api

    if tf_api.tf.executing_eagerly():
        from npu_shim.npu_device.npu_device import enable_v1

        enable_v1()


def _make_parabola_step_and_variable(rate: float = 0.125) -> tuple[Operation, Variable]:
    """Return a training step of (2 w - 6)^2 from w = 0, and w."""
    from npu_shim._tensorflow import tf_api

    w = tf_api.v1.get_variable("w", [], tf_api.tf.float32, tf_api.v1.zeros_initializer())
    optimizer = tf_api.v1.train.GradientDescentOptimizer(rate)
    return optimizer.minimize(tf_api.tf.square(2.0 * w - 6.0), tf_api.v1.train.get_or_create_global_step()), w


def _check_near(value: float, expected: float, tolerance: float, quantity: str) -> str:
    if abs(value - expected) <= tolerance:
        return f"{quantity}: {value:.4g}"
    raise RuntimeError(f"{quantity} is {value!r}, but must be {expected:g} (tolerance {tolerance:g}).")


STEPS: dict[str, Callable[[], str]] = {
    step.__name__: step for step in (load, session, loop, function, operators, estimator, collectives)
}


def main(arguments: list[str]) -> None:
    """Run steps and print the result of each."""
    for name in arguments:
        print(MARK + STEPS[name](), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
