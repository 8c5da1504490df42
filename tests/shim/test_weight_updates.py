"""Weight updates while serving: values, one run, no new ops, errors that change nothing."""

from __future__ import annotations

import pathlib
from typing import Any, Iterator

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.npu_init import npu_config_proto
from npu_shim.training.weight_updates import WeightUpdater

v1 = tf.compat.v1


class Served:
    """A line w * x + b in a session, with an updater of its variables."""

    def __init__(self, use_resource: bool) -> None:
        self.x = v1.placeholder(tf.float32, [None])
        w = v1.get_variable("line/w", [1], initializer=v1.constant_initializer(2.0), use_resource=use_resource)
        b = v1.get_variable("line/b", [], initializer=v1.constant_initializer(1.0), use_resource=use_resource)
        self.y = w * self.x + b
        self.saver = v1.train.Saver()
        self.updater = WeightUpdater()
        self.session = v1.Session(config=npu_config_proto())
        self.session.run(v1.global_variables_initializer())

    def serve(self) -> list[float]:
        return list(self.session.run(self.y, {self.x: [1.0, 2.0]}))


@pytest.fixture(params=[False, True], ids=["reference variables", "resource variables"])
def served(request: Any) -> Iterator[Served]:
    with tf.Graph().as_default():
        found = Served(request.param)
        with found.session:
            yield found


def test_updates_add_no_ops(served: Served, tmp_path: pathlib.Path) -> None:
    checkpoint = served.saver.save(served.session, str(tmp_path / "model"))
    served.session.graph.finalize()  # a new op is an error from here on
    assert served.serve() == [3.0, 5.0]
    served.updater.update(served.session, {"line/w": np.array([4.0], np.float32), "line/b": np.float32(0.5)})
    assert served.serve() == [4.5, 8.5]
    served.updater.update(served.session, {"line/b": np.float32(-4.0)})
    assert served.serve() == [0.0, 4.0]
    served.updater.update(served.session, {})
    served.updater.restore(served.session, checkpoint)
    assert served.serve() == [3.0, 5.0]


def test_a_value_that_does_not_fit_changes_nothing(served: Served) -> None:
    good = np.array([9.0], np.float32)
    for values, text in (
        ({"line/w": good, "line/c": good}, "'line/c' is no variable of this WeightUpdater. Did you mean line/"),
        (
            {"line/w": good, "line/b": good},
            r"the value for 'line/b' has type float32 and shape \[1\]. Pass type float32",
        ),
        ({"line/w": np.array([9.0])}, r"'line/w' has type float64 and shape \[1\]. Pass type float32 and shape \(1,\)"),
    ):
        with pytest.raises(ValueError, match=text):
            served.updater.update(served.session, values)
        assert served.serve() == [3.0, 5.0]


def test_a_checkpoint_without_a_variable_is_an_error(served: Served, tmp_path: pathlib.Path) -> None:
    checkpoint = v1.train.Saver([v for v in v1.global_variables() if v.op.name == "line/w"]).save(
        served.session, str(tmp_path / "part")
    )
    with pytest.raises(ValueError, match="has no value for 'line/b'. Pass WeightUpdater the variables that it has"):
        served.updater.restore(served.session, checkpoint)


def test_a_graph_without_variables_is_an_error() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="no variables to update. Make the WeightUpdater"):
        WeightUpdater()
