"""The docstring of a rule as paragraphs, headings, lists and code."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from .language import ENGLISH, Language
from .translation import wrap_text

_COLUMNS = 100


class Block(NamedTuple):
    """A piece of a docstring: ``kind`` is ``text``, ``heading``, ``list``, ``table`` or ``code``."""

    kind: str
    text: str


def doc_blocks(doc: str) -> list[Block]:
    """Return the pieces of a docstring, without its title."""
    parts: list[Block] = []
    for paragraph in re.split(r"\n[ \t]*\n", doc.split("\n", 1)[1] if "\n" in doc else ""):
        paragraph = paragraph.strip("\n")
        if not paragraph.strip():
            continue
        if paragraph.startswith("    "):
            code = re.sub("(?m)^ {4}", "", paragraph)  # not dedent: a paragraph may be the inside of a class
            if parts and parts[-1].kind == "code":
                code = parts.pop().text + "\n\n" + code
            parts.append(Block("code", code))
        elif re.match(r"[*-] ", paragraph):
            parts.append(Block("list", paragraph))
        elif paragraph.startswith("|"):
            parts.append(Block("table", paragraph))
        elif re.match(r"\w[\w ,]*::\Z", paragraph):
            parts.append(Block("heading", paragraph[:-2]))
        else:
            text = " ".join(line.strip() for line in paragraph.split("\n"))
            parts.append(Block("text", text[:-1] if text.endswith("::") else text))
    return parts


def translated_doc(doc: str, translate: Language) -> str:
    """Return a docstring in another language: its title, then its parts; the code stays."""
    if translate is ENGLISH:
        return doc
    parts = [translate(doc.split("\n", 1)[0].rstrip(".")) + translate(".")]
    for block in doc_blocks(doc):
        if block.kind == "code":
            parts.append("\n".join(f"    {line}".rstrip() for line in block.text.split("\n")))
        elif block.kind == "list":
            items = ["\n  ".join(wrap_text(translate(item), _COLUMNS - 2)) for item in list_items(block)]
            parts.append("\n".join(f"* {item}" for item in items))
        elif block.kind == "table":
            parts.append("\n".join(map(translate, block.text.split("\n"))))
        else:
            parts.append(
                "\n".join(wrap_text(translate(block.text), _COLUMNS))
                + (translate("::") if block.kind == "heading" else "")
            )
    return "\n\n".join(parts)


def list_items(block: Block) -> list[str]:
    """Return the texts of a list, each on one line."""
    return [" ".join(item[2:].split()) for item in re.split(r"\n(?=[*-] )", block.text)]


def doc_body_as_markdown(doc: str) -> str:
    """Return a docstring, without its title, as Markdown."""
    parts = []
    for block in doc_blocks(doc):
        text = re.sub(r"``([^`]+)``", r"`\1`", block.text)
        parts.append({"code": f"```python\n{block.text}\n```", "heading": f"**{text}**"}.get(block.kind, text))
    return "\n\n".join(parts)


def first_paragraph(doc: str) -> str:
    """Return the first paragraph after the title as plain text; the empty string if there is none."""
    return next((block.text.replace("``", "") for block in doc_blocks(doc) if block.kind == "text"), "")


def doc_as_html(doc: str, translate: Language = ENGLISH) -> str:
    """Return a docstring, without its title, as HTML: Before and After in two columns, Untouched folded."""
    before, after, unchanged = translate("Before"), translate("After"), translate("Untouched")
    elements: list[str] = []
    untouched: list[str] = []
    remaining = doc_blocks(doc)
    while remaining:
        block = remaining.pop(0)
        code = remaining.pop(0) if block.kind == "heading" and remaining and remaining[0].kind == "code" else None
        if code and block.text == "Untouched":
            untouched.append(_code_html(code.text))
        elif code and block.text == "Before" and len(remaining) > 1 and remaining[0].text == "After":
            elements.append(
                f'<div class="pair"><div><h4>{before}</h4>{_code_html(code.text)}</div>'
                f"<div><h4>{after}</h4>{_code_html(remaining[1].text)}</div></div>"
            )
            del remaining[:2]
        else:
            elements.append(_block_html(block, translate))
            elements += [_code_html(code.text)] if code else []
    if untouched:
        elements.append(
            '<details class="untouched"><summary>'
            f"{translate('Untouched: {0} examples').format(len(untouched))}</summary>"
            f"{''.join(untouched)}</details>"
            if len(untouched) > 1
            else f"<h4>{unchanged}</h4>" + untouched[0]
        )
    return "\n".join(elements)


def _block_html(block: Block, translate: Language) -> str:
    if block.kind == "code":
        return _code_html(block.text)
    if block.kind == "heading":
        return f"<h4>{_inline_html(translate(block.text))}</h4>"
    if block.kind == "table":
        rows = [
            translate(row).strip("| ").split(" | ") for row in block.text.split("\n") if not row.startswith("| ---")
        ]
        return "<table>{}</table>".format(
            "".join(f"<tr>{''.join(f'<td>{_inline_html(cell)}</td>' for cell in row)}</tr>" for row in rows)
        )
    if block.kind == "list":
        return "<ul>{}</ul>".format("".join(f"<li>{_inline_html(translate(item))}</li>" for item in list_items(block)))
    return f"<p>{_inline_html(translate(block.text))}</p>"


def _code_html(text: str) -> str:
    return f'<pre class="example"><code>{html.escape(text)}</code></pre>'


def _inline_html(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"<code>\1</code>", html.escape(text))
