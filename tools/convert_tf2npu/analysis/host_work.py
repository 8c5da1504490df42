"""Recognise scripts that use TensorFlow on the host only: they code images, freeze graphs or show datasets."""

from __future__ import annotations

import ast
from typing import Iterable

from ..project.context import Context
from ..semantics.model import Where
from ..semantics.tf_types import Type
from ..syntax.expressions import last_name
from .device_placement import trains_itself
from .freezing import only_freezes

_CODECS = tuple(f"tensorflow.{home}.{way}code_" for home in ("image", "io") for way in ("de", "en"))
_TENSORRT = (
    "tensorflow.contrib.tensorrt.",
    "tensorflow.experimental.tensorrt.",
    "tensorflow.python.compiler.tensorrt.",
)
# The beginnings of the names of TensorFlow that a script around an image codec calls.
_AROUND = tuple(
    "tensorflow." + name
    for name in """ConfigProto GPUOptions Graph InteractiveSession Session app. cast compat. constant device disable_
enable_ expand_dims flags. get_default_graph gfile. global_variables_initializer image. io. local_variables_initializer
logging. placeholder python_io. read_file reset_default_graph squeeze train.BytesList train.Coordinator train.Example
train.Feature train.Features train.FloatList train.Int64List""".split()
)
# Modules that build no graphs.
PLAIN_MODULES = frozenset(
    """PIL absl argparse base64 collections copy csv cv2 datetime errno functools glob gzip h5py hashlib imageio io
itertools json logging lxml math matplotlib multiprocessing numpy os pandas pathlib pickle random re scipy shutil six
skimage string struct subprocess sys tarfile tempfile tensorflow threading time tqdm typing urllib uuid warnings xml
zipfile __future__""".split()
)
_DRAWING = frozenset(
    """axis colorbar figure imshow legend plot savefig set_axis_off set_title show subplot subplots suptitle
tight_layout title xlabel ylabel""".split()
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_VALUES = frozenset({"numpy", "format", "join", "astype", "squeeze", "decode"})
_SHOWING = frozenset({"print", "len", "str", "repr", "format", "type", "list", "range", "enumerate", "zip", "next"})


def is_on_host(context: Context, node: ast.AST) -> bool:
    """Return True if a session runs nothing on the NPU.

    Its file codes images, or its code builds TensorRT graphs, or it only restores variables that are frozen.

    Args:
        context: the file.
        node: the call that makes the session.
    """
    converters = context.once(_tensorrt_calls)
    if converters:
        place = _outermost_definition(context, node)
        return any(_outermost_definition(context, call) is place for call in converters) and not (
            place is None and trains_itself(context)
        )
    return only_freezes(context, node) or context.once(_only_encodes_or_decodes_images)


def _tensorrt_calls(context: Context) -> tuple[ast.Call, ...]:
    return tuple(call for call, name in context.called_names.items() if name.startswith(_TENSORRT))


def _only_encodes_or_decodes_images(context: Context) -> bool:
    """Return True if a file codes images with TensorFlow, and does nothing else with it."""
    called = [name for name in context.called_names.values() if name.startswith("tensorflow.")]
    return (
        any(name.startswith(_CODECS) for name in called)
        and all(name.startswith(_AROUND) for name in called)
        and _imported_packages(context.names.tree) <= PLAIN_MODULES
    )


def _outermost_definition(context: Context, node: ast.AST) -> ast.AST | None:
    """Return the function or class of the module around a node, or None."""
    around = [p for p in context.names.ancestors(node) if isinstance(p, (ast.FunctionDef, ast.ClassDef))]
    return around[-1] if around else None


def is_only_printed_or_drawn(context: Context, node: ast.AST) -> bool:
    """Return True if the elements of a dataset are only printed or drawn, in the block that makes it.

    Args:
        context: the file.
        node: an expression in the statement that makes the dataset.
    """
    names = context.names
    statement = next((p for p in names.ancestors(node) if isinstance(p, ast.stmt)), None)
    if isinstance(statement, ast.For):
        return only_prints(statement.body)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    word, where = statement.targets[0].id, names.places[statement]
    uses = [
        mention
        for mention in names.mentions(word, where.scope.node)
        if isinstance(mention, ast.Name)
        and isinstance(mention.ctx, ast.Load)
        and names.place(mention).scope is where.scope
        and mention.lineno > statement.lineno
    ]
    return any(_type_of_statement_around(context, use) is ast.For for use in uses) and all(
        _only_shows_elements(context, use, where) for use in uses
    )


def belongs_to_host_code(context: Context, node: ast.AST) -> bool:
    """Return True if code belongs to a unit test, a serving function, or a function that writes records."""
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.ClassDef) and (
            parent.name.endswith(("Test", "TestCase", "Tests"))
            or any(last_name(base).endswith("TestCase") for base in parent.bases)
        ):
            return True
        if isinstance(parent, _FUNCTIONS) and (
            parent.name.startswith(("test_", "serving")) or "serving_" in parent.name or _writes_records(parent)
        ):
            return True
    return False


def _writes_records(function: ast.AST) -> bool:
    return any(last_name(n) == "TFRecordWriter" for n in ast.walk(function))


def _type_of_statement_around(context: Context, use: ast.Name) -> type | None:
    return next((type(parent) for parent in context.names.ancestors(use) if isinstance(parent, ast.stmt)), None)


def _only_shows_elements(context: Context, use: ast.Name, where: Where) -> bool:
    loop = next((p for p in context.names.ancestors(use) if isinstance(p, ast.stmt)), None)
    if isinstance(loop, ast.Assign):  # dataset = dataset.map(...): the loop is over the last of them
        return (
            isinstance(loop.targets[0], ast.Name)
            and loop.targets[0].id == use.id
            and context.types.type_of(loop.value, where) == Type.DATASET
        )
    if not isinstance(loop, ast.For) or not any(use is inner for inner in ast.walk(loop.iter)):
        return False
    return only_prints(loop.body)


def only_prints(body: list[ast.stmt]) -> bool:
    """Return True if the body of a loop only prints or draws."""
    calls = [inner for statement in body for inner in ast.walk(statement) if isinstance(inner, ast.Call)]
    names = [(getattr(call.func, "id", ""), getattr(call.func, "attr", "")) for call in calls]
    return any(name == "print" or attribute in _DRAWING for name, attribute in names) and all(
        name in _SHOWING or attribute in _VALUES or attribute in _DRAWING for name, attribute in names
    )


def _imported_packages(tree: ast.AST) -> set[str]:
    """Return the first parts of the modules that a file imports; "." for modules of its own package."""
    roots: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots.update(_first_parts(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            roots.update(_first_parts([node.module or "."]) if not node.level else ["."])
    return roots


def _first_parts(modules: Iterable[str]) -> list[str]:
    return [module.split(".")[0] for module in modules]
