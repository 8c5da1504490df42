"""Whether a node stands where Python 3.7 says that it starts, which spares finding its tokens.

Names are where Python says, and what begins with one, as ``tf.nn.relu(x)``, has the place of that name. It only starts
before it where a part of it stands in parentheses, as in ``(tf.nn.relu)(x)``. Those of a call are no such parentheses.
"""

from __future__ import annotations

import ast
import keyword
import re

_BLANK = " \t\f\r\n\\"
_CALLED = re.compile(r"(?:(?<!\w)([^\W\d]\w*)|[)\]])\Z")


def starts_as_told(node: ast.AST, text: str, offset: int) -> bool:
    """Whether a node certainly starts at an offset.

    Args:
        node: any node that is in no f-string.
        text: of its file.
        offset: where Python says that it starts.
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
