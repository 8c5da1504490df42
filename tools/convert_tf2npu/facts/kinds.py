"""The kinds of questions about an expression, and the attributes of the answers.

``npu_shim.rehearsal.observing`` has a function for each kind, which notes the attributes.
"""

from __future__ import annotations

# The rows of a tensor, or of the first of several: "rows", of the first dimension; "of", of the mask or the input that
# they come from, if it is known.
ROWS = "rows"
# A condition or a number: "is", which is "python" for numbers of Python and NumPy, "tensor", "none" or "other"; of a
# tensor also "dtype".
VALUE = "value"
# A function: "parameters", their names.
FUNCTION = "function"
KINDS = frozenset({ROWS, VALUE, FUNCTION})
