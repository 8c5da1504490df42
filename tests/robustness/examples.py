"""The examples in the rules' docstrings, and what of other code they are put among."""

from __future__ import annotations

import ast
import sys
from typing import Iterator, NamedTuple

from convert_tf2npu.analysis.idle_sessions import Use, use_of_session
from convert_tf2npu.analysis.tensorflow_evidence import evidence_of
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project
from convert_tf2npu.report.explanation import doc_blocks
from convert_tf2npu.rules.base import Rule
from convert_tf2npu.rules.registry import Registry

# What these do depends on more of the file than the piece that their examples show: where training starts, what the
# file does besides, which functions are called with what, whether the whole file can be converted, and which backend
# of Keras it chooses.
WHOLE_FILE = frozenset(
    {"NPU105", "NPU106", "NPU107", "NPU109", "NPU114", "NPU115", "NPU116", "NPU118", "NPU238", "NPU277"}
) | {rule.code for rule in Registry().rules if rule.needed_settings}


class Example(NamedTuple):
    """A piece of code and what becomes of it; ``after`` is ``before`` where it stays."""

    code: str
    before: str
    after: str

    @property
    def stays(self) -> bool:
        """True if the tool leaves it as it is."""
        return self.before == self.after

    @property
    def is_alone(self) -> bool:
        """True if it means something else among other code."""
        return (
            self.code in WHOLE_FILE
            or "import *" in self.before
            or "__future__" in self.before
            or depends_on_version(self.before)
        )


def depends_on_version(text: str) -> bool:
    """Return True if a script, and so each that contains it, may be one of TensorFlow 2, or leaves a session idle."""
    names = Project().understand(text.encode("utf-8")).names
    found = evidence_of(names)
    idle = any(use_of_session(names, call.node) != Use.PROGRAM for call in names.calls)
    return found.two is not None or found.trains or idle


def _of(rule: Rule) -> Iterator[Example]:
    found = doc_blocks(rule.doc)
    for index, block in enumerate(found):
        if block.text == "Before":
            yield Example(rule.code, found[index + 1].text + "\n", found[index + 3].text + "\n")
        elif block.text == "Untouched":
            yield Example(rule.code, *(found[index + 1].text + "\n",) * 2)
        elif block.text == "Reported":  # by this rule; another one may change something in it
            text = found[index + 1].text + "\n"
            new = Converter(Settings(**rule.needed_settings)).convert(text.encode("utf-8")).new
            yield Example(rule.code, text, text if new is None else new.decode("utf-8"))


RULES = Registry().rules
EXAMPLES: tuple[Example, ...] = tuple(example for rule in RULES for example in _of(rule))
COMPOSABLE: tuple[Example, ...] = tuple(example for example in EXAMPLES if not example.is_alone)

# Statements that have nothing to do with TensorFlow, or only look as if they had.
_ANY_PYTHON = [
    '"""tf.Session()\n  # npu: ignore\n"""\n',
    "total = sum(width * height for width, height in sizes)  # tf.Session()\n",
    "session_maker = requests.Session\n",
    'def helper(a, b=(1, 2), *rest, key=None, **more):\n    # type: (int, tuple) -> None\n    return {**more, "key": key}\n',
    '@decorated(by="this")\n@and_this\nclass Thing(object, metaclass=Meta):\n    size: int = 3\n\n    def batch(self, n): return n\n',
    "async def fetch(url):\n    async with client.get(url) as answer:\n        return [row async for row in answer if await row]\n",
    "try: import cPickle as pickle\nexcept ImportError: import pickle\nelse: pass\nfinally: done = True\n",
    "with open(name) as stream, lock:\n\tfor line in stream: count[line] += 1\n",
    "matrix = [[1, 2],\n          [3, 4]]  # aligned by hand\n",
    "caf\u00e9 = lambda *a, k=1, **kw: (yield_ if a else -k ** 2)\n",
    'assert x is not None, \\\n    "no x"\n',
    "names[1:, ::2], other.attribute = (yes) if (not no) else [*items]\n",
    'print(f"{total!r:>{width}} {names[0]} {{}}", rb"\\d", end="")\n',
    "while True:\n    if a < b <= c: break\n    elif a: continue\nelse:\n    del a, b[0]\n",
    "def counter():\n    n = 0\n    def step():\n        nonlocal n\n        n = yield from range(n)\n    return step\n",
]
_SINCE = {
    (3, 8): [
        'if (count := len(items)) > 1: print(f"{count=}")\n',
        "def positional(a, b=1, /, c=2, *, d): return a @ b\n",
    ],
    (3, 10): [
        'match command.split():\n    case ["go", direction] | {"to": direction}: move(direction)\n'
        "    case Point(x=0, y=y) if y: pass\n    case _:\n        raise ValueError(command)\n",
        "with (open(a) as x,\n      open(b) as y,):\n    pass\n",
    ],
    (3, 11): ["try:\n    work()\nexcept* ValueError as group: log(group)\n"],
    (3, 12): [
        "type Pair[T] = tuple[T, T]\n",
        "def first[T: int](items: list[T]) -> T: return items[0]\n",
        "class Box[*Ts]:\n    pass\n",
        'print(f"{"nested"!r} {\n    x  # here\n}")\n',
    ],
}
OTHER_CODE: list[str] = _ANY_PYTHON + [
    text for version, texts in _SINCE.items() if sys.version_info >= version for text in texts
]
for _text in OTHER_CODE:
    ast.parse(_text)
