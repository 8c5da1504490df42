"""The docstring of a rule as paragraphs, headings, lists and code."""

from __future__ import annotations

import html
import re
from typing import NamedTuple


class Block(NamedTuple):
    """A piece of a docstring: ``kind`` is ``text``, ``heading``, ``list`` or ``code``."""

    kind: str
    text: str


def blocks(doc: str) -> list[Block]:
    """Return the pieces of a docstring, without its title."""
    found: list[Block] = []
    for paragraph in re.split(r"\n[ \t]*\n", doc.split("\n", 1)[1] if "\n" in doc else ""):
        paragraph = paragraph.strip("\n")
        if not paragraph.strip():
            continue
        if paragraph.startswith("    "):
            code = re.sub("(?m)^ {4}", "", paragraph)  # not dedent: a paragraph may be the inside of a class
            if found and found[-1].kind == "code":
                code = found.pop().text + "\n\n" + code
            found.append(Block("code", code))
        elif re.match(r"[*-] ", paragraph):
            found.append(Block("list", paragraph))
        elif re.match(r"\w[\w ,]*::\Z", paragraph):
            found.append(Block("heading", paragraph[:-2]))
        else:
            text = " ".join(line.strip() for line in paragraph.split("\n"))
            found.append(Block("text", text[:-1] if text.endswith("::") else text))
    return found


def markdown(doc: str) -> str:
    """Return a docstring, without its title, as Markdown."""
    made = []
    for block in blocks(doc):
        text = re.sub(r"``([^`]+)``", r"`\1`", block.text)
        made.append({"code": f"```python\n{block.text}\n```", "heading": f"**{text}**"}.get(block.kind, text))
    return "\n\n".join(made)


def plain(doc: str) -> str:
    """Return the first paragraph after the title as plain text; the empty string if there is none."""
    return next((block.text.replace("``", "") for block in blocks(doc) if block.kind == "text"), "")


def as_html(doc: str) -> str:
    """Return a docstring, without its title, as HTML: Before and After in two columns, Untouched folded."""
    made: list[str] = []
    untouched: list[str] = []
    found = blocks(doc)
    while found:
        block = found.pop(0)
        code = found.pop(0) if block.kind == "heading" and found and found[0].kind == "code" else None
        if code and block.text == "Untouched":
            untouched.append(_code(code.text))
        elif code and block.text == "Before" and len(found) > 1 and found[0].text == "After":
            made.append(
                f'<div class="pair"><div><h4>Before</h4>{_code(code.text)}</div>'
                f"<div><h4>After</h4>{_code(found[1].text)}</div></div>"
            )
            del found[:2]
        else:
            made.append(_block(block))
            made += [_code(code.text)] if code else []
    if untouched:
        made.append(
            f'<details class="untouched"><summary>Untouched: {len(untouched)} examples</summary>'
            f"{''.join(untouched)}</details>"
            if len(untouched) > 1
            else "<h4>Untouched</h4>" + untouched[0]
        )
    return "\n".join(made)


def _block(block: Block) -> str:
    if block.kind == "code":
        return _code(block.text)
    if block.kind == "heading":
        return f"<h4>{_inline(block.text)}</h4>"
    if block.kind == "list":
        items = re.split(r"\n(?=[*-] )", block.text)
        return "<ul>{}</ul>".format("".join(f"<li>{_inline(item[2:])}</li>" for item in items))
    return f"<p>{_inline(block.text)}</p>"


def _code(text: str) -> str:
    return f'<pre class="example"><code>{html.escape(text)}</code></pre>'


def _inline(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"<code>\1</code>", html.escape(text))
