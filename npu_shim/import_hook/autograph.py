"""Lets TensorFlow's AutoGraph read the migrated source.

AutoGraph makes graph code of a function (of ``dataset.map``, ``tf.function``, a
Keras layer's ``call``) from its source, which it looks up by file and line. In
an own file that is the original. So AutoGraph is handed a function that differs
in nothing but where its code says that it stands: in the migrated text, kept
where ``inspect`` looks for sources.
"""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FunctionType, MethodType
from typing import Any

from npu_shim.import_hook.lines import Lookup

_SUFFIX = " (migrated)"


def teach(parser: Any, migrated: Lookup) -> None:
    """Makes AutoGraph's parser read migrated text.

    Args:
        parser: its module ``pyct.parser``.
        migrated: gives the migrated form of a file, None where there is none.
    """
    parse_entity = parser.parse_entity

    def parse_migrated(entity: Any, *args: Any, **kwargs: Any) -> Any:
        return parse_entity(_in_migrated_text(entity, migrated), *args, **kwargs)

    parser.parse_entity = parse_migrated


def _in_migrated_text(entity: Any, migrated: Lookup) -> Any:
    """A function like ``entity`` whose code stands in the migrated text of its file; ``entity`` itself where
    its file has none."""
    function = entity.__func__ if isinstance(entity, MethodType) else entity
    if not isinstance(function, FunctionType):
        return entity
    path = function.__code__.co_filename
    script = migrated(path)
    if script is None:
        return entity
    text = script.text
    linecache.cache[path + _SUFFIX] = (len(text), None, text.splitlines(keepends=True), path + _SUFFIX)
    code = _moved(function.__code__, path + _SUFFIX, script.new_line(function.__code__.co_firstlineno))
    twin = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__module__ = function.__module__
    twin.__qualname__ = function.__qualname__
    return twin


def _moved(code: CodeType, filename: str, first_line: int) -> CodeType:
    if sys.version_info >= (3, 8):
        return code.replace(co_filename=filename, co_firstlineno=first_line)
    make: Any = CodeType
    return make(
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_nlocals,
        code.co_stacksize,
        code.co_flags,
        code.co_code,
        code.co_consts,
        code.co_names,
        code.co_varnames,
        filename,
        code.co_name,
        first_line,
        code.co_lnotab,
        code.co_freevars,
        code.co_cellvars,
    )
