"""float64 and complex tensors.

The NPU computes in float16, float32 and integers. It cannot compile float64 or complex tensors. In the input
pipeline, which runs on the host, these are fine and not reported. Cast them before they reach the model. Complex
numbers can also be written as two float32 tensors, one for the real and one for the imaginary part.

NumPy computes in float64 unless it is asked for another type. A variable or a constant made of ``np.random.rand`` or
``np.linspace`` is float64, too. Write ``.astype(np.float32)`` or ``dtype=tf.float32``.

With facts of ``npu-shim observe``, the rule writes float32 if all float64 that a value meets in a graph or in eager
code comes from calls that can be changed in the same file. A checkpoint of float64 variables cannot be restored then,
and what the session returns, saves or exports is float32: its bytes are others, integers that exceed 2**24 in later
runs lose digits, and a variable stands still when its updates are smaller than 2**-24 of it. Nothing is changed if a
run saw values that float32 cannot hold, such as integers above 2**24, or a value carried from step to step: a variable
to which each step adds, or, in eager code, a result that a call computes from its own earlier one, as in ``total =
total + n``. In eager code, an exponential or a product counts as a value that float32 cannot hold: it may be so in a
later step. The finding then names that reason, and the types that were seen of complex tensors. There is no finding for
float64 that only the input pipeline has.

Reported::

    import tensorflow as tf

    x = tf.placeholder(tf.float64, [8, 3])
    y = tf.cast(x, tf.double)

Reported::

    import numpy as np
    import tensorflow as tf

    w = tf.get_variable('w', [3], dtype='float64')
    v = tf.constant(0.5, dtype=np.float64)
    spectrum = tf.signal.rfft(w)

Reported::

    import numpy as np
    import tensorflow as tf

    start = 0.1 * np.random.rand(3)
    w = tf.Variable(start)
    centres = tf.constant(np.linspace(0, 1, 5))
    table = tf.get_variable('table', initializer=np.array([0.5, 1]))

Untouched::

    import numpy as np
    import tensorflow as tf

    w = tf.Variable(np.random.rand(3).astype(np.float32))
    centres = tf.constant(np.linspace(0, 1, 5), dtype=tf.float32)
    steps = tf.constant(np.arange(5))
    mask = tf.constant(np.ones([3], np.float32))
    scaled = tf.constant(2.0 * np.random.rand(3) * tf.ones([3]))
    counts = tf.constant(np.array([int(0.5 * n), 2]))
    names = tf.constant(np.array(['a', str(0.5)]))
    table = tf.get_variable('table', initializer=np.array([1, 2]))

Untouched::

    import numpy as np
    import tensorflow as tf

    x = tf.placeholder(tf.float32, [8, 3])
    data = np.zeros([8, 3], dtype=np.float64)
    y = tf.cast(x, tf.int64)

Untouched::

    import tensorflow as tf

    dataset = tf.data.TextLineDataset(files).map(
        lambda line: tf.cast(tf.string_to_number(line, tf.float64), tf.float32))
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...facts.kinds import DTYPE
from ...facts.seen import Place, Seen
from ...project.context import place_of
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename
from ...rewrite.npu_imports import name_of_tensorflow
from ...rewrite.seen_findings import was_never_on_npu
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.value_flow import origins
from ...syntax.edits import Edit
from ...syntax.expressions import boxed_constant, last_part
from ...syntax.suppressions import is_suppressed_at
from ..base import Change, Context, Finding, Message, Question

CODE = "NPU221"
_TYPED = frozenset(
    "tensorflow." + name
    for name in """
cast saturate_cast placeholder placeholder_with_default constant Variable get_variable zeros ones
zeros_like ones_like fill eye range linspace one_hot convert_to_tensor random_normal random_uniform
truncated_normal random.normal random.uniform random.truncated_normal keras.Input keras.layers.Input
keras.backend.cast keras.backend.variable keras.backend.placeholder keras.backend.constant
initializers.constant constant_initializer dtypes.cast""".split()
)
_DOUBLE = frozenset({"tensorflow.to_double"})
_COMPLEX = frozenset(
    "tensorflow." + name
    for name in """
complex dtypes.complex to_complex64 to_complex128 fft fft2d fft3d ifft ifft2d ifft3d
signal.fft signal.fft2d signal.fft3d
signal.ifft signal.ifft2d signal.ifft3d signal.rfft signal.rfft2d signal.rfft3d signal.irfft
signal.irfft2d signal.irfft3d signal.stft signal.inverse_stft spectral.fft spectral.fft2d spectral.fft3d
spectral.ifft spectral.ifft2d spectral.ifft3d spectral.rfft spectral.rfft2d spectral.rfft3d spectral.irfft
spectral.irfft2d spectral.irfft3d contrib.signal.stft contrib.signal.inverse_stft""".split()
)
_FLOATX = frozenset({"tensorflow.keras.backend.set_floatx"})
_TYPE_FIRST = _FLOATX | {"tensorflow.placeholder"}
CALLS = _TYPED | _DOUBLE | _COMPLEX | _FLOATX
_BAD = {"float64": "float64", "double": "float64", "complex64": "complex64", "complex128": "complex128"}

# The position of the array, and that of the type.
_TAKES_ARRAY = {
    "tensorflow.Variable": ("initial_value", 6),
    "tensorflow.constant": ("value", 1),
    "tensorflow.convert_to_tensor": ("value", 1),
    "tensorflow.get_variable": ("initializer", 2),
}
_DOUBLES = frozenset(
    "numpy." + name
    for name in """random.rand random.randn random.normal random.uniform random.random random.random_sample
random.standard_normal random.beta random.gamma random.exponential linspace logspace geomspace zeros ones eye identity
empty hanning hamming blackman""".split()
)
_TYPE_AT = {"zeros": 1, "ones": 1, "empty": 1, "identity": 1, "eye": 3, "linspace": 5, "array": 1, "asarray": 1}
# Facts that must not be, and what they show.
_REASONS = {
    "sums": Message("a value carried from step to step"),
    "large": Message("values that float32 cannot hold"),
    "mixed": Message("float64 of other calls, which it meets"),
}
_ON_NPU = frozenset({"graph", "eager"})
_LITERALS = frozenset({"numpy.array", "numpy.asarray"})
_DEEPEST = 3  # names around an array


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    finding = _unsupported_type_finding(context, call, name)
    if finding is None or not runs_on_npu(context, call.node):
        return
    if name in _FLOATX:
        yield finding
        return
    regions = context.once(_changes_of_float64_regions)
    if call.node in regions:
        if regions[call.node] is not None:
            yield regions[call.node]  # type: ignore[misc]
    elif not was_never_on_npu(context, CODE, DTYPE, call.node):
        seen = context.observed_at(CODE, DTYPE, call.node)
        message = _message_with_facts(finding.message, seen) if seen is not None else finding.message
        yield finding._replace(asks=(Question(DTYPE, call.node),), message=message)


def _unsupported_type_finding(context: Context, call: Call, name: str) -> Finding | None:
    """Return the finding about a call; None if its type is supported."""
    short = last_part(name)
    if name in _DOUBLE:
        kind: str | None = "float64"
    elif name in _COMPLEX:
        kind = "complex"
    else:
        # The first argument of all other calls is a value or a name, not a type.
        values = call.node.args[0 if name in _TYPE_FIRST else 1 :] + [
            k.value for k in call.node.keywords if k.arg in ("dtype", "DstT") or name in _FLOATX
        ]
        kind = next((k for k in (_unsupported_type(context, v, call.where) for v in values) if k), None)
    if kind is None and name in _TAKES_ARRAY and _is_made_of_float64_array(context, call, name):
        return Finding(
            call.node,
            "this NumPy array is float64, which is unsupported on the NPU. Write .astype(np.float32) behind it",
        )
    if kind is None:
        return None
    if name in _FLOATX:
        return Finding(call.node, "{0} is unsupported on the NPU. Write set_floatx('float32')", kind)
    if kind == "float64":
        replacement = "tf.cast(..., tf.float32)" if name in _DOUBLE else "tf.float32"
        return Finding(call.node, "float64 is unsupported on the NPU. Write {0}", replacement)
    return Finding(
        call.node,
        "complex tensors ({0}) are unsupported on the NPU. "
        "Compute them in the input pipeline, or use two float32 tensors for the real and imaginary parts",
        short,
    )


def _message_with_facts(message: str, seen: Seen) -> str:
    """Return a message with the reason for which facts do not settle it."""
    types = seen.all("dtype") or ()
    reason: str | None = ", ".join(sorted(map(str, types)))
    if "complex" not in str(reason):
        reasons = [text for fact, text in _REASONS.items() if True in (seen.all(fact) or ())]
        reason = reasons[0] if reasons and _has_float64(seen) else None
    return message if reason is None else Message("{0} (seen: {1})", message, reason)


def _changes_of_float64_regions(context: Context) -> dict[ast.Call, Change | None]:
    """Return the change of each region of float64 that facts show at its first call, and None at the others."""
    seen = {place: one for place, one in (context.facts.seen if context.facts else {}).items() if place.kind == DTYPE}
    if any(
        _ON_NPU & set(one.all("place") or ()) and not one.all("region") and _has_float64(one) for one in seen.values()
    ):
        return {}  # they are not all of one run
    edits: dict[Place, tuple[ast.Call, tuple[Edit, ...], int]] = {}
    for call in context.names.calls:
        name = context.called_names.get(call.node, "")
        one = context.observed_at(CODE, DTYPE, call.node) if name in CALLS else None
        is_exact = one is not None and all(one.all(fact) == (False,) for fact in _REASONS)
        if one is not None and is_exact and one.only("dtype") == "float64":
            edited = _edits_to_float32(context, call, name)
            is_on_npu = _ON_NPU >= set(one.all("place") or ("",))
            if edited and is_on_npu and not is_suppressed_at(context.source, call.node, CODE):
                edits[place_of(context.source, DTYPE, call.node)] = call.node, edited, one.runs
    changes: dict[ast.Call, Change | None] = {}
    for region in _joined_overlapping_sets([set(one.all("region") or ()) for one in seen.values()]):
        places = [place for place, one in seen.items() if region & set(one.all("region") or ())]
        if not places or not all(place in edits for place in places):
            continue
        parts = [edits[place] for place in sorted(places)]
        message = Message("float64 becomes float32, with all that it meets")
        all_edits = tuple(edit for _, edited, _ in parts for edit in edited)
        changes.update(dict.fromkeys([node for node, _, _ in parts]))
        changes[parts[0][0]] = Change(parts[0][0], message, all_edits, (), min(runs for _, _, runs in parts))
    return changes


def _has_float64(seen: Seen) -> bool:
    return "float64" in (seen.all("dtype") or ())


def _joined_overlapping_sets(sets: list[set[object]]) -> list[set[object]]:
    """Return the sets joined where they have a member in common."""
    joined: list[set[object]] = []
    for one in filter(None, sets):
        apart = [other for other in joined if not other & one]
        joined = [*apart, one.union(*(other for other in joined if other & one))]
    return joined


def _edits_to_float32(context: Context, call: Call, name: str) -> tuple[Edit, ...]:
    """Return the edits that make a call float32; () if that is unclear."""
    source, node = context.source, call.node
    if name in _DOUBLE:
        is_plain = isinstance(node.func, ast.Attribute)
        return (
            edit_to_rename(source, node.func, source.segment(node.func)[: -len("to_double")] + "to_float"),
        ) * is_plain
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if name == "tensorflow.get_variable":  # with the type of an array or a tensor, whatever else is given
        initializer = given.get("initializer")
        maker = context.called_names.get(initializer, "") if isinstance(initializer, ast.Call) else ""
        if None in given or len(node.args) > 3 or initializer is not None and "initializer" not in maker:
            return ()
    typed = [
        value
        for value in [*node.args, *(value for word, value in given.items() if word in ("dtype", "DstT"))]
        if _unsupported_type(context, value, call.where) == "float64" and not isinstance(value, ast.Name)
    ]
    if len(typed) == 1:
        text = source.segment(typed[0])
        new = re.sub(r"(?:float64|double)(?=['\"]?\Z)", "float32", text)
        start = source.start(typed[0])
        return (Edit(start, source.end(typed[0]), new),) if new != text else ()
    tensorflow = name_of_tensorflow(context.names)
    if typed or "dtype" in given or name not in _TAKES_ARRAY or name == "tensorflow.get_variable" or not tensorflow:
        return ()
    added = edit_to_add_argument(source, node, f"dtype={tensorflow}.float32")
    return (added,) if added is not None and _is_made_of_float64_array(context, call, name) else ()


def _unsupported_type(context: Context, node: ast.AST, where: Where) -> str | None:
    value = boxed_constant(node)
    if value:
        return _BAD.get(value[0]) if isinstance(value[0], str) and value[0] != "double" else None
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    root, _, rest = (context.resolve(node, where) or "").partition(".")
    if rest.startswith("dtypes."):
        rest = rest[len("dtypes.") :]
    return _BAD.get(rest) if root in ("tensorflow", "numpy") else None


def _is_made_of_float64_array(context: Context, call: Call, name: str) -> bool:
    """Return True if a variable or constant without a type is made of a NumPy array of float64."""
    argument, type_at = _TAKES_ARRAY[name]
    given = {keyword.arg: keyword.value for keyword in call.node.keywords}
    if None in given or "dtype" in given or "preferred_dtype" in given or len(call.node.args) > type_at:
        return False
    value = given.get(argument) or (call.node.args[0] if call.node.args and argument != "initializer" else None)
    return value is not None and _is_float64_array(value, call.where, context.names, _DEEPEST)


def _is_float64_array(value: ast.expr, where: Where, names: Names, depth: int) -> bool:
    """Return True if a value certainly is a NumPy array of float64."""
    if isinstance(value, ast.BinOp):
        sides = [side for side in (value.left, value.right) if boxed_constant(side) is None]
        return bool(sides) and all(_is_float64_array(side, where, names, depth) for side in sides)
    sources = origins(value, where, names) if depth and isinstance(value, (ast.Attribute, ast.Call, ast.Name)) else ()
    if not isinstance(value, ast.Call) or any(source.node is not value for source in sources):  # or a function's result
        return bool(sources) and all(
            isinstance(source.node, (ast.BinOp, ast.Call))
            and _is_float64_array(source.node, source.where, source.names, depth - 1)
            for source in sources
        )
    if not isinstance(value, ast.Call):
        return False
    name = names.resolve(value.func, where) or ""
    if any(keyword.arg == "dtype" for keyword in value.keywords) or len(value.args) > _TYPE_AT.get(last_part(name), 99):
        return False
    if name in _LITERALS and value.args:
        numbers = list(_literal_values(value.args[0]))
        return all(isinstance(number, (float, int)) for number in numbers) and any(
            isinstance(number, float) for number in numbers
        )
    return name in _DOUBLES and (bool(value.args) or not name.startswith("numpy.random."))


def _literal_values(node: ast.AST) -> Iterator[object]:
    """Yield the values in a literal of lists and tuples; None for what is no literal."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _literal_values(element)
    else:
        value = boxed_constant(node)
        yield None if value is None else value[0]
