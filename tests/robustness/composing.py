"""Scripts made of examples and other code, before and after, in the same shape."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from typing import NamedTuple, Sequence

from examples import OTHER_CODE, Example

_NPU_IMPORT = re.compile(r"^[ \t]*from npu_shim\.npu_init import (?:\*|[\w, ]+)\n", re.MULTILINE)
# What a piece of code may stand in; {} is where it stands, and %d its number.
_PLACES = [
    "def work_%d(flags, *rest):\n{}",
    'class Work%d(object):\n    """Does it."""\n    limit = 3\n\n    def go(self):\n        """Goes."""\n{}',
    "def outer_%d():\n    def inner():\n{}\n    return inner\n",
    "def guarded_%d():\n    try:\n{}\n    finally:\n        del flags[0]\n",
    "def chosen_%d(flag):\n    if flag:\n{}\n    else:\n        pass\n",
    "def repeated_%d():\n    for number in range(3):\n{}\n        print(number)\n",
    "def locked_%d():\n    with lock, open(name) as stream:\n{}\n    # done\n",
    "async def awaited_%d():\n    await other\n{}\n",
    "@decorated(by=1)\ndef made_%d(a: int = 1, *, b) -> None:\n{}\n",
]


class Script(NamedTuple):
    """A script, and what becomes of it but for the import of npu_shim."""

    before: str
    after: str


class _Piece(NamedTuple):
    head: str
    body: str


def composed(parts: Sequence[Example], chance: random.Random) -> Script:
    """Examples in functions, methods and blocks of one script, with other code between them; their imports at the
    top, or with them."""
    heads: list[str] = []
    before: list[str] = []
    after: list[str] = []
    for number, part in enumerate(parts):
        piece, becomes = _split(part.before), _split(without_import(part.after))
        place = chance.choice(_PLACES)
        hoisted = chance.random() < 0.5 and _bound(piece.head, heads)
        if hoisted and piece.head not in heads:
            heads.append(piece.head)
        for made, one in ((before, piece), (after, becomes)):
            made.append(_placed(place, number, one.body if hoisted else one.head + one.body))
        if chance.random() < 0.6:
            other = chance.choice(OTHER_CODE)
            before.append(other)
            after.append(other)
    top = chance.choice(
        [
            "",
            '"""Trains."""\n',
            "#!/usr/bin/env python\n",
            '"""Trains."""\nfrom __future__ import print_function\n',
            "from __future__ import division\n",
            "\n\n# a script\n",
        ]
    ) + "".join(heads)
    return Script(*("\n".join([top] * bool(top) + made) for made in (before, after)))


def alone(part: Example, chance: random.Random) -> Script:
    """One example, with nothing around it that could change what it means."""
    top = chance.choice(["", "", "#!/usr/bin/env python\n", "# a script\n\n"])
    return Script(top + part.before, top + without_import(part.after))


def without_import(text: str) -> str:
    """Code without the import of npu_shim."""
    return _NPU_IMPORT.sub("", text)


def _split(text: str) -> _Piece:
    """The leading imports of some code, and the rest."""
    body = ast.parse(text).body
    lines = text.splitlines(True)
    count = next((i for i, s in enumerate(body) if not isinstance(s, (ast.Import, ast.ImportFrom))), len(body))
    if count == len(body):
        return _Piece("", text)
    first = body[count]
    start = min([first.lineno] + [d.lineno for d in getattr(first, "decorator_list", [])]) - 1
    while start and lines[start - 1].startswith("#"):
        start -= 1
    return _Piece("".join(line for line in lines[:start] if line.strip()), "".join(lines[start:]))


def _bound(head: str, heads: Sequence[str]) -> bool:
    """Return True if imports can stand at the top together with others: no name means two things."""
    mine = _bindings(head)
    return all(_bindings(other).get(name, what) == what for other in heads for name, what in mine.items())


def _bindings(head: str) -> dict:
    found = {}
    for statement in ast.parse(head).body:
        module = getattr(statement, "module", "")
        for alias in statement.names:  # type: ignore[attr-defined]
            name = alias.asname or (alias.name if module else alias.name.split(".")[0])
            found[name] = (module, alias.name if alias.asname or module else name)
    return found


def _placed(place: str, number: int, text: str) -> str:
    depth = re.search(r"\n( *)\{\}|\n\{\}", place)
    assert depth
    above = place[: depth.start()].rsplit("\n", 1)[-1]
    indent = " " * (len(above) - len(above.lstrip()) + (0 if above.rstrip().endswith(("other", '"""')) else 4))
    body = textwrap.indent(text.strip("\n"), indent)
    return (place.replace("%d", str(number), 1)).replace("{}", body) + ("" if place.endswith("\n") else "\n")


def encoded(text: str, chance: random.Random) -> tuple[bytes, str]:
    """A script's bytes in some encoding, with some line ends, and the line end."""
    newline = chance.choice(["\n", "\n", "\r\n", "\r"])
    kind = chance.choice(["utf-8", "utf-8", "utf-8-sig", "latin-1"])
    if kind == "latin-1":
        text = "# -*- coding: latin-1 -*-  \xfc\n" + text
    if chance.random() < 0.2:
        text = text.rstrip("\n")
    return text.replace("\n", newline).encode(kind), newline
