"""The frame of an HTML page that needs no network, light and dark."""

from __future__ import annotations

import html
import os
import re
from typing import Iterable, Iterator, Sequence

_HERE = os.path.dirname(os.path.abspath(__file__))
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_START = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'{policy}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body{words}>
<header>
<div>
<h1>{heading}</h1>
{about}
</div>
{button}</header>
<main>
"""
_END = """
</main>
<footer>{footer}</footer>
{script}</body>
</html>
"""


def page_pieces(
    title: str,
    heading: str,
    about: Sequence[str],
    main: Iterable[str],
    footer: str,
    script: str = "",
    language: str = "en",
    words: str = "",
    button: str = "",
    dialog: str = "",
) -> Iterator[str]:
    """Yield a page in pieces.

    Args:
        title: of the window.
        heading: of the page.
        about: the lines below the heading; the first one names the source.
        main: HTML, in pieces.
        footer: the last line.
        script: JavaScript that runs at the end; empty for a page without.
        language: the tag of the language.
        words: an attribute of the body.
        button: HTML at the end of the heading.
        dialog: HTML before the script.
    """
    yield _START.format(
        language=language,
        policy="; script-src 'unsafe-inline'" if script else "",
        title=escape_html(title),
        style=read_asset("page.css"),
        words=words,
        heading=escape_html(heading),
        about="\n".join(
            f'<p class="{"quiet" if place else "source"}">{escape_html(line)}</p>' for place, line in enumerate(about)
        ),
        button=button,
    )
    yield from main
    code = f"<script>\n{script}</script>\n" if script else ""
    yield _END.format(footer=escape_html(footer), script=dialog + code)


def escape_html(text: str) -> str:
    """Return a text escaped for HTML, without the characters that HTML forbids."""
    return html.escape(_CONTROLS.sub("\ufffd", text))


def read_asset(name: str) -> str:
    """Return the text of a file of this folder."""
    with open(os.path.join(_HERE, name), encoding="utf-8") as stream:
        return stream.read()
