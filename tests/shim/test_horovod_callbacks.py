"""Horovod's Keras callbacks: the parameters of Horovod 0.28.1 in their order, and the learning rates they set."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.horovod import keras, tensorflow
from npu_shim.horovod.tensorflow import keras as tensorflow_keras

MODULES = {"keras": keras, "tensorflow.keras": tensorflow_keras}
PARAMETERS = {
    "BroadcastGlobalVariablesCallback": {"root_rank": ..., "device": "", "local_variables": None},
    "MetricAverageCallback": {"device": ""},
    "LearningRateScheduleCallback": {
        "initial_lr": ...,
        "multiplier": ...,
        "start_epoch": 0,
        "end_epoch": None,
        "staircase": True,
        "momentum_correction": True,
        "steps_per_epoch": None,
    },
    "LearningRateWarmupCallback": {
        "initial_lr": ...,
        "warmup_epochs": 5,
        "momentum_correction": True,
        "steps_per_epoch": None,
        "verbose": 0,
    },
}
BEST = {"monitor": "val_loss", "verbose": 0, "save_weights_only": False, "mode": "auto", "save_freq": "epoch"}


def parameters(module: str, name: str) -> dict[str, Any]:
    """Return the parameters of a callback with their defaults, ... without one."""
    found = inspect.signature(getattr(MODULES[module].callbacks, name)).parameters.values()
    return {each.name: ... if each.default is each.empty else each.default for each in found}


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_horovod(module: str, name: str) -> None:
    assert list(parameters(module, name).items()) == list(PARAMETERS[name].items())


def test_only_tf_keras_saves_weights_alone() -> None:
    assert list(parameters("tensorflow.keras", "BestModelCheckpoint").items()) == list(BEST.items())
    without = {name: default for name, default in BEST.items() if name != "save_weights_only"}
    assert list(parameters("keras", "BestModelCheckpoint").items()) == list(without.items())
    assert keras.callbacks.BestModelCheckpoint().save_best_only


@pytest.mark.parametrize("module", MODULES)
def test_the_schedule_multiplies_the_initial_rate(module: str) -> None:
    tensorflow.init()
    callback = MODULES[module].callbacks.LearningRateScheduleCallback
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(9.0), "mse")
    schedule = [callback(initial_lr=0.4, multiplier=0.5, start_epoch=1, momentum_correction=False)]
    x = np.ones([4, 2], np.float32)
    rates = model.fit(x, x[:, :1], epochs=4, verbose=0, callbacks=schedule).history["lr"]
    assert rates == pytest.approx([9.0, 0.4, 0.2, 0.1])


@pytest.mark.parametrize("module", MODULES)
def test_an_optimizer_keeps_its_schedule_of_learning_rates(module: str) -> None:
    """Keras copies a schedule, and cannot copy one that has another one in its configuration."""
    tensorflow.init()
    schedules = tf.keras.optimizers.schedules

    class Warmup(schedules.LearningRateSchedule):  # type: ignore[misc, name-defined]
        def __init__(self, after: Any) -> None:
            self.after = after

        def __call__(self, step: Any) -> Any:
            return self.after(step) / 10

        def get_config(self) -> dict[str, Any]:
            return {"after": self.after}

    optimizer = tf.keras.optimizers.SGD(Warmup(schedules.ExponentialDecay(4.0, 10, 0.5)))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    model.compile(MODULES[module].DistributedOptimizer(optimizer), "mse")
    x = np.ones([2, 1], np.float32)
    model.fit(x, x, verbose=0)
    assert model.get_weights()[0].item() == pytest.approx(0.8, rel=1e-5)  # the rate is 0.4, the gradient -2
