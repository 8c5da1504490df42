"""The variables that steer a loop of training steps on the device (iterations_per_loop)."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf

tf = _tf.tf
_SCOPE = "npu_runconfig/"


def create_or_get_var(var_name: str) -> Any:
    """The int64 scalar npu_runconfig/<var_name>: a local resource variable, first 0.

    Args:
        var_name: 'iterations_per_loop', 'loop_cond', 'one' or 'zero'.
    Returns:
        The variable; it is made once per graph.
    """
    full = _SCOPE + var_name
    for variable in _tf.v1.get_collection(_tf.v1.GraphKeys.LOCAL_VARIABLES):
        if variable.op.name == full:
            return variable
    return _tf.v1.Variable(
        0, dtype=tf.int64, trainable=False, name=full, use_resource=True, collections=[_tf.v1.GraphKeys.LOCAL_VARIABLES]
    )


class Loader:
    """Sets the loop variables; made before the graph is finalized, used as often as one likes."""

    def __init__(self) -> None:
        self._steps = _tf.v1.placeholder(tf.int64, [], name=_SCOPE + "steps")
        values = {"iterations_per_loop": self._steps - 1, "loop_cond": 0, "zero": 0, "one": 1}
        self._assigned = [create_or_get_var(name).assign(value).op for name, value in values.items()]

    def load(self, session: Any, iterations_per_loop: int) -> None:
        """Makes the next runs of ``session`` loops of this many steps."""
        session.run(self._assigned, {self._steps: iterations_per_loop})
