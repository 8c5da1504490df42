"""Variables that operators change in place, as on the NPU."""

from __future__ import annotations

from npu_shim._tensorflow import tf_graph
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Operation, Tensor, Variable


def check_variable(operator: str, argument: str, variable: Variable) -> None:
    """Raise TypeError if an argument is a tensor, which cannot be changed."""
    if not tf_graph.is_variable(variable):
        raise TypeError(f"{operator}: {argument}={variable!r} is updated in place. Pass the variable itself.")


def assign_and_read(operator: str, argument: str, variable: Variable, value: Tensor) -> Tensor:
    """Assign a value to a variable, and return the value that can be read after that.

    Raises:
        TypeError: the argument is not a variable.
    """
    check_variable(operator, argument, variable)
    return tf_graph.assign_and_read(variable, value)


def scatter_update(variable: Variable, indices: Tensor, values: Tensor) -> Operation | None:
    """Replace elements along the first axis of a variable. Return the op; None in eager code."""
    return tf.group(tf.compat.v1.scatter_update(variable, indices, values))
