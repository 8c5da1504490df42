"""Functions that compute each row of their result from the same row of their arguments."""

from __future__ import annotations

import ast

from ..semantics.signatures import bind_arguments
from ..syntax.expressions import boxed_constant, last_part

_MODULES = ("", "math.", "nn.", "keras.backend.")


def _tensorflow_names(words: str) -> frozenset[str]:
    return frozenset(f"tensorflow.{module}{word}" for module in _MODULES for word in words.split())


# Element by element, with broadcasting.
ELEMENTWISE = _tensorflow_names(
    """abs add subtract multiply divide div truediv floordiv mod negative neg square squared_difference sqrt rsqrt pow
    exp expm1 log log1p log_sigmoid sigmoid tanh relu relu6 elu selu softplus softsign sin cos tan floor ceil round sign
    reciprocal maximum minimum equal not_equal greater greater_equal less less_equal logical_and logical_or logical_not
    where where_v2 clip_by_value clip zeros_like ones_like stop_gradient identity binary_crossentropy
    sigmoid_cross_entropy_with_logits is_nan is_inf is_finite"""
)
# The first argument is converted; the others name a type.
CASTS = _tensorflow_names("cast to_float to_int32 to_int64 saturate_cast")
_OF_PACKAGE = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}
REDUCTIONS: dict[str, tuple[str, ...]] = {
    **{f"tensorflow.{word}": ("input_tensor", "axis", "keepdims") for word in _OF_PACKAGE},
    **{f"tensorflow.math.{word}": ("input_tensor", "axis", "keepdims") for word in _OF_PACKAGE},
    **{f"tensorflow.keras.backend.{word}": ("x", "axis", "keepdims") for word in ("sum", "mean", "max", "min")},
}
# Over the last dimension, which they keep or remove.
_KEEP_LAST = _tensorflow_names("softmax log_softmax l2_normalize")
_CROSS_ENTROPY = _tensorflow_names("softmax_cross_entropy_with_logits softmax_cross_entropy_with_logits_v2")
_SPARSE_CROSS_ENTROPY = _tensorflow_names("sparse_softmax_cross_entropy_with_logits")
_KERAS_LOSSES = {
    f"tensorflow.keras.losses.{word}"
    for word in """mean_squared_error mse MSE mean_absolute_error mae MAE binary_crossentropy
    categorical_crossentropy""".split()
}
_SPARSE_KERAS_LOSS = "tensorflow.keras.losses.sparse_categorical_crossentropy"


_ONE_HOT = _tensorflow_names("one_hot")


def rank_change_of_row_function(name: str, call: ast.Call) -> int | None:
    """Return by how many dimensions a function of the last dimension changes the rank; None for other functions.

    One that adds a dimension takes rows as its first argument only.

    Those of two arguments take the same rank of both, and the ranks of ``sparse_loss_arguments`` are others.
    """
    given = {keyword.arg: boxed_constant(keyword.value) for keyword in call.keywords}
    if name in _ONE_HOT:
        is_last = len(call.args) < 5 and given.get("axis", (-1,)) == (-1,) and None not in given
        return 1 if is_last and call.args else None
    if name in _CROSS_ENTROPY:
        return -1 if not call.args and set(given) == {"labels", "logits"} else None
    if name in _KERAS_LOSSES:
        return -1 if _keras_loss_arguments(call) is not None else None
    if name in _KEEP_LAST and last_part(name):
        axis = boxed_constant(call.args[1]) if len(call.args) == 2 else given.get("axis", (-1,))
        is_plain = len(call.args) <= 2 and set(given) <= {"axis"} and axis == (-1,)
        return 0 if is_plain and ("l2_normalize" not in name or "axis" in given or len(call.args) == 2) else None
    return None


def sparse_loss_arguments(name: str, call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """Return the labels and the logits or probabilities of a loss whose labels have one dimension less, or None."""
    if name == _SPARSE_KERAS_LOSS:
        return _keras_loss_arguments(call)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in _SPARSE_CROSS_ENTROPY and not call.args and set(given) == {"labels", "logits"}:
        return given["labels"], given["logits"]
    return None


def _keras_loss_arguments(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """Return the true and the predicted values of a loss of Keras; None if it is given more than ``from_logits``."""
    bound = bind_arguments(call, ("y_true", "y_pred", "from_logits"))
    is_plain = not bound.hidden and bound.unknown is None and {"y_true", "y_pred"} <= set(bound.args)
    from_logits = bound.args.get("from_logits")
    if not is_plain or from_logits is not None and boxed_constant(from_logits) is None:
        return None
    return bound.args["y_true"], bound.args["y_pred"]
