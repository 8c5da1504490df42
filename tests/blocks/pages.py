"""The code blocks of the pages, and how each is run."""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass

# The word after the language of a block that is not run, and what the block needs.
NEEDS = {
    "card": "an NPU",
    "cluster": "several hosts",
    "network": "packages or repositories from the network, or an environment of its own",
    "tested": "the public project of its page, or several trainings: the tests of the command run it",
}
ALONE = "alone"  # a Python block in a process of its own
RUN = ("bash", "python")
_FENCE = re.compile(r"^\s*(?:```|<!-- before the blocks:)(\w*) ?([^\n]*)$")
_VERSION_1 = "<!-- code blocks: TensorFlow 1.15 -->"


@dataclass(frozen=True)
class Block:
    """A fenced block, or a comment ``<!-- before the blocks: ... -->`` with what Python blocks need, which readers skip."""

    page: str
    line: int
    language: str
    mark: str
    text: str

    @property
    def place(self) -> str:
        """Page and line."""
        return f"{self.page}:{self.line}"


def pages(root: pathlib.Path) -> list[pathlib.Path]:
    """Return the pages whose blocks are run. Those of docs/zh are compared with the English ones."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]


def blocks(page: pathlib.Path) -> list[Block]:
    """Return the blocks of a page in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").split("\n")
    begin, language, mark = 0, "", ""
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if begin and line.strip() in ("```", "-->"):
            found.append(Block(page.name, begin, language, mark, "\n".join(lines[begin : number - 1])))
            begin = 0
        elif not begin and fence:
            begin, language, mark = number, fence[1], fence[2].strip()
            if line.startswith("<!--"):
                language, mark = "python", ""
    assert not begin, f"{page.name}:{begin}: the block does not end"
    return found


def runnable(page: pathlib.Path) -> list[Block]:
    """Return the blocks of a page that are run."""
    return [block for block in blocks(page) if block.language in RUN and block.mark not in NEEDS]


def is_for_version_1(page: pathlib.Path) -> bool:
    """Return True if the blocks of a page are run with TensorFlow 1.15."""
    return _VERSION_1 in page.read_text(encoding="utf-8").split("\n")
