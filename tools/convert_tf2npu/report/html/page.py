"""report.html: the report of a migration on one self-contained page."""

from __future__ import annotations

import json
from typing import Iterator

from ... import __version__
from ...engine.results import CHANGE, ERROR, FINDING, UNREACHED, Calls
from ..content import Report
from ..language import ENGLISH, Language
from ..support import STATUSES
from ..text import calls_sentence, cpu_sentences
from .apis import api_section
from .files import files_section
from .frame import escape_html, page_pieces, read_asset
from .parts import LABEL
from .rules import manual_changes_section, rewritten_section

_SHOWN = '<output id="copied" aria-live="polite"></output>'
KEYS = (
    ("/", "search"),
    ("j", "next rule, file or API"),
    ("k", "previous rule, file or API"),
    ("Enter", "open or close the item"),
    ("o", "open or close all items"),
    ("1", "go to the manual changes"),
    ("2", "go to the rewrites"),
    ("3", "go to the files"),
    ("4", "go to the API support"),
    ("Esc", "clear search and filters"),
    ("?", "this list"),
)


# The words that page.js shows.
SCRIPT_WORDS = (
    "place",
    "places",
    " in ",
    "file",
    "files",
    "API",
    "APIs",
    " of ",
    "Open all",
    "Close all",
    "Copied: ",
    "cell {0}",
)


def to_html(report: Report) -> Iterator[str]:
    """Return the HTML page of a run, in pieces."""
    translate = report.translate
    keys = (
        '<dialog id="keys" aria-labelledby="keys-title"><h2 id="keys-title">{}</h2><dl>{}</dl><p>{}</p>'
        '<form method="dialog"><button>{}</button></form></dialog>'.format(
            translate("Keys"),
            "".join(f"<dt><kbd>{key}</kbd></dt><dd>{translate(meaning)}</dd>" for key, meaning in KEYS),
            translate(
                "Click code in a message to copy it. The address contains the search and filters; "
                "# beside a name links to it."
            ),
            translate("Close"),
        )
    )
    title = translate("Keys")
    yield from page_pieces(
        translate("Migration of {0} to Ascend NPUs").format(report.source),
        translate("Migration to Ascend NPUs"),
        [report.source],
        _main_pieces(report),
        f"convert_tf2npu {__version__}",
        read_asset("page.js"),
        translate.tag,
        _script_words_attribute(report),
        f'<button type="button" id="help" aria-haspopup="dialog" aria-label="{title}">?</button>\n',
        f"{keys}\n{_SHOWN}\n",
    )


def _main_pieces(report: Report) -> Iterator[str]:
    yield _overview_html(report) + "\n" + _toolbar_html(report)
    for section in (manual_changes_section, rewritten_section, files_section, api_section):
        for piece in section(report):
            yield "\n"
            yield piece


def _script_words_attribute(report: Report) -> str:
    """Return the words that the page's script shows, as an attribute; none in English."""
    translate = report.translate
    words = {word: translate(word) for word in SCRIPT_WORDS}
    return "" if translate is ENGLISH else f' data-words="{escape_html(json.dumps(words, ensure_ascii=False))}"'


def _overview_html(report: Report) -> str:
    changed = sum(1 for f in report.files if f.result.new is not None)
    unreadable = sum(1 for f in report.files if f.result.unreadable)
    translate = report.translate
    cards: list[tuple[int, tuple[str, str], str, str]] = [
        (report.count(FINDING), ("manual change", "manual changes"), FINDING, "manual-changes"),
        (report.count(CHANGE), ("rewrite", "rewrites"), CHANGE, "rewritten"),
        (changed, ("file changed, of {0}", "files changed, of {0}"), "", "files"),
        (len(report.apis), ("API called", "APIs called"), "", "apis"),
    ]
    if unreadable:
        cards.insert(1, (unreadable, ("unreadable file", "unreadable files"), ERROR, "unreadable"))
    elements = [
        f'<section id="overview" aria-label="{translate("Overview")}">',
        _calls_bar_html(report.calls, sum(1 for f in report.files if f.result.calls.total), translate),
        *(
            f'<p class="calls">{escape_html(line)}</p>'
            for line in cpu_sentences([(f.name, f.result) for f in report.files], translate)
        ),
        '<div class="cards">',
    ]
    elements += [
        f'<a class="card {kind if number else ""}" href="#{section}"><strong>{number}</strong>'
        f"<span>{translate(labels[number != 1]).format(len(report.files))}</span></a>"
        for number, labels, kind, section in cards
    ]
    elements.append("</div>")
    for paths, label in (
        (report.excluded, "Excluded from the migration"),
        (report.left_out, "Not part of the migration"),
    ):
        if paths:
            listed = "".join(f"<li><code>{escape_html(p)}</code></li>" for p in paths)
            elements.append(
                f'<details class="aside"><summary>{translate(label)}: {len(paths)}</summary><ul>{listed}</ul></details>'
            )
    return "\n".join(elements + ["</section>"])


def _calls_bar_html(calls: Calls, number_of_files: int, translate: Language) -> str:
    if not calls.total:
        return f'<p class="calls">{translate("No TensorFlow call was found.")}</p>'
    text = calls_sentence(calls, number_of_files, translate)
    pieces = "".join(
        f'<span class="{kind}" style="flex-grow:{number}"></span>'
        for number, kind in ((calls.left, FINDING), (calls.rewritten, CHANGE), (calls.fine, "fine"))
        if number
    )
    return f'<p class="calls">{text}</p>\n<div class="bar" aria-hidden="true">{pieces}</div>'


def _toolbar_html(report: Report) -> str:
    translate = report.translate
    kinds = [k for k in (FINDING, ERROR, CHANGE, UNREACHED) if report.count(k)]
    chips = "".join(
        f'<button type="button" class="chip {k}" data-kind="{k}" aria-pressed="true">{translate(LABEL[k])} '
        f"<b>{report.count(k)}</b></button>"
        for k in kinds
    )
    rules = "".join(
        f'<option value="{r.code}">{r.code}: {escape_html(translate(r.title))}</option>' for r in report.rules
    )
    any_support = translate("any support")
    support = "".join(
        f'<option value="{name}">{translate(status.label)}</option>'
        for name, status in STATUSES.items()
        if any(use.status == name for use in report.apis)
    )
    return f"""<nav id="toolbar" aria-label="{translate("Search and filter")}">
<input id="search" type="search" placeholder="{translate("Search files, rules, APIs, code")}  ( / )" \
aria-label="{translate("Search")}" autocomplete="off" spellcheck="false">
<select id="rule" aria-label="{translate("Rule")}"><option value="">{translate("all rules")}</option>{rules}</select>
<select id="support" aria-label="{translate("Support of APIs")}">\
<option value="">{any_support}</option>{support}</select>
{chips}
<button type="button" id="toggle">{translate("Open all")}</button>
<output id="shown" aria-live="polite"></output>
</nav>"""
