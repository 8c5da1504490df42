"""A recording has every update of each variable, by a name of its own, and the gradients that are applied."""

from __future__ import annotations

import inspect
import pathlib
from typing import Any

import pytest
import tensorflow as tf

from npu_shim.rehearsal.comparing.read_recording import Recording, read_recording
from npu_shim.rehearsal.recording.kinds import FINAL, GRADIENT, LOG, VARIABLE
from npu_shim.rehearsal.recording.names import OF_OPTIMIZER
from npu_shim.rehearsal.recording.update_hooks import UpdateHooks
from npu_shim.rehearsal.running import DEFAULTS, Run
from samples import training
from tests.distributed import forks
from tests.marks import in_forks

pytestmark = pytest.mark.slow

SESSION = """
import numpy as np
import tensorflow as tf
v1, keras = tf.compat.v1, tf.keras
with tf.Graph().as_default() as graph:
    weights = [v1.get_variable(name, [3]) for name in ("first", "second")]
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(weights[0] * weights[1]))
    init = v1.global_variables_initializer()
    graph.finalize()
    with v1.Session() as session:
        session.run(init)
        session.run(train_op)
        session.run(train_op)
"""
FIT = """
model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.1), "mse"JIT)
model.fit(np.ones([8, 3], "f4"), np.ones([8, 1], "f4"), batch_size=4, verbose=0)
""".replace(
    "JIT", ", jit_compile=True" if "jit_compile" in inspect.signature(tf.keras.Model.compile).parameters else ""
)
LEGACY = FIT.replace("optimizers.SGD", "optimizers.legacy.SGD")
APPLY = """
weights = [keras.Variable([1.0, 2.0], name=name) for name in ("third", "fourth")]
optimizer = keras.optimizers.SGD(0.1)
optimizer.build(weights)
for _ in range(2):
    optimizer.apply([tf.ones([2]), tf.ones([2])])
"""
TWO_OPTIMIZERS = """
import tensorflow as tf

weight = tf.Variable([1.0, 2.0], name="weight")

def trained(rate, traces):
    optimizer = tf.keras.optimizers.SGD(rate)
    for _ in range(traces):

        @tf.function
        def step():
            optimizer.apply_gradients([(tf.ones([2]), weight)])

        step()

trained(0.1, 3)
trained(0.2, 2)
"""
IS_KERAS3 = hasattr(tf.keras.optimizers.SGD, "apply")
HAS_LEGACY = not IS_KERAS3 and hasattr(tf.keras.optimizers, "legacy")


def recorded(text: str, folder: pathlib.Path, repo_root: pathlib.Path) -> Recording:
    """Return the recording of a script."""
    script = folder / "script.py"
    script.write_text(text)
    settings = Run("original", str(script), [], str(folder)).settings_text()
    command = (repo_root / "npu_shim" / "rehearsal" / "recorded_run.py", settings, str(script))
    forks.run_script(*command, log=folder / "log", environ={**training.environment(), **DEFAULTS}, cwd=folder)
    return read_recording(str(folder))


@in_forks
def test_every_update_of_each_variable(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    found = recorded(SESSION + FIT + IS_KERAS3 * APPLY + HAS_LEGACY * LEGACY, tmp_path, repo_root)
    variables = 6 + 2 * IS_KERAS3 + 4 * HAS_LEGACY
    for kind in (GRADIENT, VARIABLE):
        assert [len(stream.values) for stream in found.streams_of_kind(kind)] == [2] * variables
    assert len(found.streams_of_kind(FINAL)) == variables - 2 * IS_KERAS3  # nothing ends a loop
    assert found.streams_of_kind(LOG) and found.end and found.end.ended == "returned"


if tf.__version__ >= "2":

    @pytest.mark.once
    def test_an_optimizer_is_one_in_all_traces_of_its_functions(
        tmp_path: pathlib.Path, repo_root: pathlib.Path
    ) -> None:
        found = recorded(TWO_OPTIMIZERS, tmp_path, repo_root)
        updates = {stream.name: len(stream.values) for stream in found.streams_of_kind(GRADIENT)}
        assert updates == {"weight": 3, f"weight{OF_OPTIMIZER}2": 2}


def test_gradients_are_summed_over_the_replicas_unless_the_script_has_done_that() -> None:
    class Hooks(UpdateHooks):
        def _apply_and_watch(self, optimizer: Any, pairs: Any, apply: Any, is_reduced: bool = False) -> Any:
            return apply(pairs), is_reduced

    def applied(optimizer: str, pairs: list[tuple[int, str]], **options: bool) -> str:
        return f"{optimizer} {pairs}"

    for options, is_reduced in (
        ({}, False),
        ({"experimental_aggregate_gradients": True}, False),
        ({"experimental_aggregate_gradients": False}, True),
        ({"skip_gradients_aggregation": True}, True),
        ({"skip_gradients_aggregation": False}, False),
    ):
        found = Hooks().apply_gradients(applied, "sgd", zip([1], ["w"]), **options)
        assert found == ("sgd [(1, 'w')]", is_reduced), options
