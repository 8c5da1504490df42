"""Variables that control a loop of training steps on the device (iterations_per_loop)."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import Session, Variable

tf = tf_api.tf
_SCOPE = "npu_runconfig/"


def create_or_get_var(var_name: str) -> Variable:
    """Return the int64 scalar npu_runconfig/<var_name>: a local resource variable with initial value 0.

    Args:
        var_name: 'iterations_per_loop', 'loop_cond', 'one' or 'zero'.
    Returns:
        The variable; it is created once per graph.
    """
    full_name = _SCOPE + var_name
    for variable in tf_api.v1.get_collection(tf_api.v1.GraphKeys.LOCAL_VARIABLES):
        if variable.op.name == full_name:
            return variable
    return tf_api.v1.Variable(
        0,
        dtype=tf.int64,
        trainable=False,
        name=full_name,
        use_resource=True,
        collections=[tf_api.v1.GraphKeys.LOCAL_VARIABLES],
    )


def register_func(var_name: str) -> None:
    """Let tf.train.export_meta_graph save the collection npu_runconfig_<var_name>, whose elements are variables."""
    tf_graph.register_variable_collection(f"npu_runconfig_{var_name}")


class Loader:
    """Assign the loop variables in a session. Create it before the graph is finalized."""

    def __init__(self) -> None:
        self._steps = tf_api.v1.placeholder(tf.int64, [], name=_SCOPE + "steps")
        values = {"iterations_per_loop": self._steps - 1, "loop_cond": 0, "zero": 0, "one": 1}
        self._assign_ops = [create_or_get_var(name).assign(value).op for name, value in values.items()]

    def load(self, session: Session, iterations_per_loop: int) -> None:
        """Set the number of steps for the next runs of ``session``."""
        session.run(self._assign_ops, {self._steps: iterations_per_loop})
