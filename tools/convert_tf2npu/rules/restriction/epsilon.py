"""Constants that float16 cannot hold.

The smallest positive number of float16 is 6e-8, the largest 65504. In mixed precision, constants below half of the one
become zero: in ``tf.log(x + 1e-8)`` and ``x / (y + 1e-8)`` the 1e-8 vanishes, and the result is infinite. Constants
above the other become infinite: a mask of -1e9 overflows in each step, and the loss scale falls. Use 1e-4 or more and
masks such as -1e4, or cast to float32 first.

The rule reports them in files that mention float16 or mixed precision, and in those of programs that use mixed precision
or scale their loss in another file.

Reported::

    import tensorflow as tf

    EPSILON = 1e-12
    x = tf.cast(x, tf.float16)
    loss = -tf.reduce_mean(y * tf.log(x + 1e-8))
    scale = tf.rsqrt(variance + EPSILON)

Reported::

    import tensorflow as tf

    config = npu_config_proto(precision_mode='allow_mix_precision')
    width = tf.square(boxes)
    ratio = boxes / (width + 1e-8)
    other = tf.div(boxes, width + 1e-8)

Reported::

    import tensorflow as tf

    config = npu_config_proto(precision_mode='allow_mix_precision')
    unit = tf.nn.l2_normalize(features, axis=1)
    normal = tf.keras.layers.LayerNormalization(epsilon=1e-12)(unit)

Reported::

    import tensorflow as tf

    INFINITY = -1e9
    config = npu_config_proto(precision_mode='allow_mix_precision')
    scores += (1.0 - tf.cast(mask, tf.float32)) * INFINITY
    scores = tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9))

Reported::

    import tensorflow as tf

    class Norm:
        def __init__(self):
            self.epsilon = 1e-12

        def __call__(self, x):
            return tf.cast(x, tf.float16) / (tf.norm(x) + self.epsilon)

    padding = tf.ones_like(scores) * (-2 ** 32 + 1)

Reported::

    import tensorflow as tf

    config = npu_config_proto(precision_mode='allow_mix_precision')
    scores = tf.matmul(queries, keys)
    scores -= 1e9

Reported::

    import tensorflow as tf

    config = npu_config_proto(precision_mode='allow_mix_precision')
    scores = tf.matmul(queries, keys)
    scores /= norms + 1e-9

Untouched::

    import tensorflow as tf

    loss = -tf.reduce_mean(y * tf.log(x + 1e-8))
    scores = tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9))

Untouched::

    import tensorflow as tf

    x = tf.cast(x, tf.float16)
    loss = tf.log(tf.cast(x, tf.float32) + 1e-8)
    steps = tf.constant(1e6)
    limit = tf.constant(1e9, dtype=tf.int32)
    optimizer = tf.contrib.optimizer_v2.AdamOptimizer(1e-3, epsilon=1e-8)

Untouched::

    import tensorflow as tf

    x = tf.cast(x, tf.bfloat16)
    loss = tf.log(x + 1e-8)

Untouched::

    import numpy as np
    import tensorflow as tf

    x = tf.cast(x, tf.float16)
    loss = -tf.reduce_mean(y * tf.log(x + 1e-4))
    share = np.sum(counts) / (np.max(counts) + 1e-9) * 1e9
    optimizer = tf.train.AdamOptimizer(1e-3, epsilon=1e-8)
"""

from __future__ import annotations

import ast
import re
from typing import Callable, Iterator

from ...analysis.device_placement import runs_on_npu
from ...analysis.tensors import is_tensor
from ...semantics.model import Call, Where
from ...semantics.module_index import ModuleIndex
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, last_part
from ..base import Context, Finding

CODE = "NPU227"
_PROTECTED = frozenset(
    "tensorflow." + name
    for name in """log math.log sqrt rsqrt math.rsqrt math.reciprocal
reciprocal clip_by_value maximum math.maximum keras.backend.log keras.backend.sqrt
keras.backend.clip""".split()
)
_BOUNDS = {"clip_by_value": 1, "clip": 1, "maximum": 1}  # the position of the lower bound
_DIVISIONS = frozenset(f"tensorflow.{name}" for name in "div divide truediv math.divide math.truediv".split())
_L2 = frozenset(f"tensorflow.{name}" for name in ("nn.l2_normalize", "math.l2_normalize", "linalg.l2_normalize"))
_NORMALIZATIONS = frozenset({"tensorflow.nn.batch_normalization"})  # the sixth argument is an epsilon
_L2_EPSILON = "1e-12"
_EPSILONS = frozenset({"eps", "epsilon", "variance_epsilon"})
_OPTIMIZERS = re.compile(r"tensorflow\.(?:train|contrib\.opt\w*|keras\.optimizers|optimizers)\.")
_FILLS = frozenset(
    f"tensorflow.{name}" for name in "fill maximum minimum math.maximum math.minimum where one_hot".split()
)
_ZERO_BELOW, _LARGEST = 2.0**-25, 65504.0
# Fixed beginnings make these searches fast.
_SMALL_OR_LARGE = re.compile(r"\d(?:[eE][+-]?\d|\d{5}|(?<=0)\.0{7}| ?\*\* ?\d)")
_FLOAT16 = re.compile(r"float16(?<!bfloat16)|fp16(?<!\wfp16)|mix_precision|mixed_precision|mixed_float|tf\.half")
_HALF_WORDS = "float16", "fp16", "mix", "half"  # one of them is in each match
# Mixed precision and loss scaling of the program, in another file.
_MIXED = (
    *(b"allow_mix_precision", b"allow_fp32_to_fp16", b"enable_mixed_precision_graph_rewrite", b"mixed_float16"),
    b"auto_mixed_precision",
)
_SCALED = re.compile(
    rb"(?<!class )(?<!\w)(?:MixedPrecision|NPU|Npu)?LossScaleOptimizer\(|\b(?:Fixed|ExponentialUpdate)LossScaleManager\("
)

_TEST = re.compile(r"(?:^|/)(?:tests?/[^/]*|test_[^/]*|[^/]*_tests?\.py)\Z")


def check_file(context: Context) -> Iterator[Finding]:
    if not context.once(_computes_in_float16):
        return
    if not _SMALL_OR_LARGE.search(context.source.text) and "l2_normalize" not in context.source.text:
        return
    for call in context.names.calls:
        name = context.called_names.get(call.node, "")
        if name.startswith("tensorflow.") and not _OPTIMIZERS.match(name):
            yield from _check_call_with_epsilon(context, call, name)
    for node in context.names.parents:
        if isinstance(node, ast.BinOp):
            yield from _check_division(context, node, node.left, node.right)
        elif isinstance(node, ast.AugAssign):
            yield from _check_division(context, node, node.target, node.value)


def _check_call_with_epsilon(context: Context, call: Call, name: str) -> Iterator[Finding]:
    short, where = last_part(name), call.where
    small: ast.AST | None = None
    if name in _PROTECTED and short in _BOUNDS:
        values = call.node.args[:2] if short == "maximum" else call.node.args[1:2]
        small = next((value for value in values if _is_small(context, value, where)), None)
    elif name in _PROTECTED:
        small = _small_addend(context, call.node.args[0], where) if call.node.args else None
    elif name in _DIVISIONS:
        small = _small_addend(context, call.node.args[1], where) if len(call.node.args) > 1 else None
    if name in _NORMALIZATIONS and len(call.node.args) > 5 and _is_small(context, call.node.args[5], where):
        small = call.node.args[5]
    small = small or next(
        (k.value for k in call.node.keywords if k.arg in _EPSILONS and _is_small(context, k.value, where)), None
    )
    has_default = name in _L2 and len(call.node.args) < 3 and not any(k.arg in _EPSILONS for k in call.node.keywords)
    if (small is not None or has_default) and runs_on_npu(context, call.node):
        yield _zero_in_half_finding(context, call.node, small, short)
    large = next((v for v in call.node.args if name in _FILLS and _is_large(context, v, where)), None)
    if large is not None and runs_on_npu(context, call.node):
        yield _infinite_in_half_finding(context, large)


def _check_division(
    context: Context, node: ast.BinOp | ast.AugAssign, left: ast.expr, right: ast.expr
) -> Iterator[Finding]:
    """Report a constant in a division, or in a mask, of tensors."""
    is_division = isinstance(node.op, ast.Div)
    if not (_is_sum(right) if is_division else isinstance(node.op, (ast.Add, ast.Mult, ast.Sub))):
        return
    where = context.names.place(node)
    tensor = next((side for side in (left, right) if is_tensor(context, side, where)), None)
    if tensor is None:
        return  # to follow a name to its constants takes longer
    if is_division:
        of_float16 = _small_addend(context, right, where)
    else:
        other = right if tensor is left else left
        of_float16 = other if _is_large(context, other, where) else None
    if of_float16 is not None and runs_on_npu(context, node):
        yield (
            _zero_in_half_finding(context, node, of_float16, "the division")
            if is_division
            else _infinite_in_half_finding(context, of_float16)
        )


def _zero_in_half_finding(context: Context, node: ast.AST, small: ast.AST | None, protected: str) -> Finding:
    return Finding(
        node,
        "{0} becomes zero in float16 and does not protect {1}. Use 1e-4 or more, or cast to float32 first",
        context.source.segment(small) if small is not None else _L2_EPSILON,
        protected,
    )


def _infinite_in_half_finding(context: Context, node: ast.AST) -> Finding:
    return Finding(
        node,
        "{0} becomes infinite in float16, so the loss scale falls. Use a smaller number, such as -1e4 in a mask",
        context.source.segment(node),
    )


def _small_addend(context: Context, node: ast.AST, where: Where) -> ast.AST | None:
    """Return the constant in ``x + 1e-8``, unless x is cast to float32."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else []
    if any(isinstance(side, ast.Call) and _is_cast_to_float32(context, side, where) for side in sides):
        return None
    return next((side for side in sides if _is_small(context, side, where)), None)


def _is_sum(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _is_cast_to_float32(context: Context, call: ast.Call, where: Where) -> bool:
    name = context.resolve(call.func, where)
    types = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "dtype")]
    return name == "tensorflow.to_float" or (
        name == "tensorflow.cast"
        and any(
            context.resolve(dtype, where) == "tensorflow.float32" or boxed_constant(dtype) == ("float32",)
            for dtype in types
        )
    )


def _computes_in_float16(context: Context) -> bool:
    """Return True if a file mentions float16, or a program that it belongs to uses mixed precision or scales its loss."""
    text = context.source.text
    if any(word in text for word in _HALF_WORDS) and _FLOAT16.search(text):
        return True
    names = context.names
    programs = names.project.once(_programs_in_float16)
    return bool(programs) and not programs.isdisjoint(names.project.with_importers({names.path}))


def _programs_in_float16(project: ModuleIndex) -> frozenset[str]:
    """Return the files, except tests, that use mixed precision or scale the loss, or import one that does."""
    mixing = [path for path in project.paths if not _TEST.search(path) and _mixes_precision(project.raw(path))]
    return (
        frozenset(path for path in project.with_importers(mixing) if not _TEST.search(path)) if mixing else frozenset()
    )


def _mixes_precision(raw: bytes) -> bool:
    return any(word in raw for word in _MIXED) or b"LossScale" in raw and _SCALED.search(raw) is not None


def _is_small(context: Context, node: ast.AST, where: Where) -> bool:
    return _is_constant_with(context, node, where, lambda value: 0.0 < value < _ZERO_BELOW)


def _is_large(context: Context, node: ast.AST, where: Where) -> bool:
    return _is_constant_with(context, node, where, lambda value: _LARGEST < abs(value) < float("inf"))


def _is_constant_with(context: Context, node: ast.AST, where: Where, holds: Callable[[float], bool]) -> bool:
    """Return True for a number for which a test holds, and for a name or attribute that has no other."""
    if isinstance(node, (ast.Attribute, ast.Name)):
        values = [_float_value(origin.node) for origin in origins(node, where, context.names)]
    else:
        values = [_float_value(node)]
    return bool(values) and all(value is not None and holds(value) for value in values)


def _float_value(node: ast.AST) -> float | None:
    """Return the value of a number with a fraction or exponent, also of a power such as ``-2 ** 32 + 1``."""
    value = boxed_constant(node)
    if value is not None:
        return value[0] if isinstance(value[0], float) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        power, offset = _float_value(node.left), boxed_constant(node.right)
        return power if power is not None and offset is not None and isinstance(offset[0], int) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        power = _float_value(node.operand)
        return None if power is None else -power
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = boxed_constant(node.left), boxed_constant(node.right)
        if base is not None and exponent is not None and exponent[0] in range(-64, 65) and isinstance(base[0], int):
            return float(base[0]) ** exponent[0]
    return None
