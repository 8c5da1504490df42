"""Check of the start positions that Python 3.7 records. A reliable position saves the search for the node's tokens.

The position of a name is correct, and an expression that begins with a name, as ``tf.nn.relu(x)``, has its position.
The expression only starts earlier if a part of it is in parentheses, as in ``(tf.nn.relu)(x)``.
"""

from __future__ import annotations

import ast
import keyword
import re

_BLANK = " \t\f\r\n\\"
_CALLED = re.compile(r"(?:(?<!\w)([^\W\d]\w*)|[)\]])\Z")


def starts_as_recorded(node: ast.AST, text: str, offset: int) -> bool:
    """Return True if a node certainly starts at an offset.

    Args:
        node: any node that is in no f-string.
        text: of its file.
        offset: the recorded start.
    """
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return False
    end = offset
    while end and text[end - 1] in _BLANK:
        end -= 1
    line = text[text.rfind("\n", 0, end) + 1 : end]
    if "#" in line:
        return False  # which may be a comment
    if not line.endswith("("):
        return True
    called = _CALLED.search(line, 0, len(line) - 1)
    return called is not None and not keyword.iskeyword(called.group(1) or "")
