"""Make TensorFlow's AutoGraph read the migrated source.

AutoGraph makes graph code of a function (of ``dataset.map``, ``tf.function``, a
Keras layer's ``call``) from its source, which it looks up by file and line. For
a file of the project, that is the original. So AutoGraph gets a copy of the
function whose code object names the migrated text as its file. That text is in
``linecache``, where ``inspect`` looks for sources.
"""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Callable

from npu_shim.import_hook.migrated_code import Lookup

_PARSER = ".python.autograph.pyct.parser"  # below tensorflow; in TensorFlow 1.15 below tensorflow_core
_SUFFIX = " (migrated)"
_ATTRIBUTES = (
    "argcount kwonlyargcount nlocals stacksize flags code consts names varnames filename name firstlineno lnotab "
    "freevars cellvars"
)


def use_migrated_source(migrated: Lookup) -> None:
    """Make AutoGraph's parser read migrated text, in a process that has imported TensorFlow.

    Args:
        migrated: returns the migrated form of a file, None if it is not converted.
    """
    names = [name for name in sys.modules if name.startswith("tensorflow") and name.endswith(_PARSER)]
    for parser in {id(sys.modules[name]): sys.modules[name] for name in names}.values():
        _use_migrated_source(parser, migrated)


def _use_migrated_source(parser: ModuleType, migrated: Lookup) -> None:
    parse_entity: Callable[..., object] = parser.parse_entity

    def parse_migrated(entity: object, *args: object, **kwargs: object) -> object:
        return parse_entity(_in_migrated_text(entity, migrated), *args, **kwargs)

    setattr(parser, "parse_entity", parse_migrated)


def _in_migrated_text(entity: object, migrated: Lookup) -> object:
    """Return a copy of a function that names the migrated text of its file, or ``entity`` itself if there is none."""
    function = entity.__func__ if isinstance(entity, MethodType) else entity
    if not isinstance(function, FunctionType):
        return entity
    path = function.__code__.co_filename
    script = migrated(path)
    if script is None:
        return entity
    text = script.text
    linecache.cache[path + _SUFFIX] = (len(text), None, text.splitlines(keepends=True), path + _SUFFIX)
    code = _with_location(function.__code__, path + _SUFFIX, script.new_line(function.__code__.co_firstlineno))
    twin = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__module__ = function.__module__
    twin.__qualname__ = function.__qualname__
    return twin


def _with_location(code: CodeType, filename: str, first_line: int) -> CodeType:
    if sys.version_info >= (3, 8):
        return code.replace(co_filename=filename, co_firstlineno=first_line)
    make: Callable[..., CodeType] = CodeType  # Python 3.7 takes the attributes in this order
    values = {name: getattr(code, f"co_{name}") for name in _ATTRIBUTES.split()}
    return make(*{**values, "filename": filename, "firstlineno": first_line}.values())
