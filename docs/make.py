"""Make the generated pages from their sources.

* docs/rules/, one page for each rule and an index, from the rules' docstrings. It is not in git;
* docs/options.md from the rows of npu_shim.options;
* the list of names that exist on the NPU only, in docs/vendor-differences.md, from npu_shim/ops/npu_only.py;
* the table of checks in docs/on_a_card.md from npu_shim.cli._diagnostics;
* the tables of docs/troubles.md and docs/zh/troubles.md from npu_shim/troubles;
* docs/report-schema.md from docs/report.schema.json.

``python docs/make.py`` writes them all, ``--rules FOLDER`` the pages of the rules to another folder. ``--check`` writes
nothing and exits 1 when a page that is in git is stale.
"""

from __future__ import annotations

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "tools")]

import schema_page  # noqa: E402
import troubles_page  # noqa: E402
from convert_tf2npu.rules.base import Rule  # noqa: E402
from convert_tf2npu.rules.registry import Registry  # noqa: E402

from npu_shim.cli._diagnostics.card_check import CHECKS  # noqa: E402
from npu_shim.ops import npu_only  # noqa: E402
from npu_shim.options import page as options_page  # noqa: E402
from npu_shim.troubles.table import troubles  # noqa: E402

_NOTE = "<!-- made by docs/make.py; change the rule instead -->\n"
_SCHEMA_NOTE = "<!-- made by docs/make.py; change report.schema.json or schema_page.py instead -->\n\n"
_OPTIONS_NOTE = "<!-- made by docs/make.py; change the rows in npu_shim/options instead -->\n\n"


def table_of_checks() -> str:
    """Return the checks of ``npu-shim doctor --card-check`` as a table of Markdown."""
    rows = [
        f"| {number} | {check.claim} | `{check.command}` | {', '.join(check.versions)} |"
        for number, check in enumerate(CHECKS, 1)
    ]
    head = ["| | claim | command that shows it | TensorFlow |", "| --- | --- | --- | --- |"]
    return "\n".join(head + rows) + "\n"


def rule_page(rule: Rule) -> str:
    """Return a rule's page: its docstring, with the literal blocks as code."""
    lines = rule.doc.split("\n")
    made = [_NOTE, f"# {rule.code}: {rule.title.rstrip('.')}"]
    in_code = False
    for line in lines[1:]:
        code = line.startswith("    ") or (in_code and not line)
        if in_code and not code:
            while made[-1] == "":
                made.pop()
            made += ["```", ""]
            in_code = False
        if line.startswith("    ") and not in_code:
            made.append("```python")
            in_code = True
        text = line[4:] if in_code else re.sub(r"``([^`]+)``", r"`\1`", line)
        made.append(f"**{text[:-2]}**" if text.endswith("::") and not in_code else text)
    return "\n".join(made + (["```"] if in_code else []) + _troubles(rule.code)).rstrip() + "\n"


def _troubles(code: str) -> list[str]:
    """Return the lines with the troubles that a rule finds, by which people search for its page."""
    rows = [f"* [{row.symptom.en}](../troubles.md#{row.id})" for row in troubles() if code in row.found_by]
    return ["", "**Troubles that it finds**", "", *rows] if rows else []


def index_page() -> str:
    """Return the list of all rules."""
    rows = [f"| [{rule.code}]({rule.code}.md) | {rule.title} |" for rule in Registry().rules]
    head = [_NOTE, "# The rules of the migration tool", "", "| code | what it does |", "| --- | --- |"]
    return "\n".join(head + rows) + "\n"


def rule_pages() -> dict[str, str]:
    """Return the pages of the rules by their file names."""
    made = {rule.code + ".md": rule_page(rule) for rule in Registry().rules}
    made["README.md"] = index_page()
    return made


def kept_pages() -> dict[str, str]:
    """Return the generated pages that are in git, by their file names in docs/."""
    return {
        "options.md": _OPTIONS_NOTE + options_page.options_markdown(),
        "on_a_card.md": with_tables("on_a_card.md", "npu_shim/cli/_diagnostics", checks=table_of_checks()),
        "report-schema.md": _SCHEMA_NOTE + schema_page.markdown(),
        "vendor-differences.md": with_tables(
            "vendor-differences.md", "npu_shim/ops", names=npu_only.npu_only_markdown()
        ),
        **{
            page: with_tables(page, "npu_shim/troubles", troubles=troubles_page.troubles_markdown(language))
            for page, language in (("troubles.md", "en"), ("zh/troubles.md", "zh"))
        },
    }


def with_tables(page: str, source: str, **tables: str) -> str:
    """Return a page of docs/ with the tables between its markers made anew."""
    text = _read(os.path.join(HERE, page))
    for name, made in tables.items():
        begin, end = f"<!-- {name}: made by docs/make.py from {source} -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = text.partition(begin)
        text = before + begin + "\n" + made + "\n" + end + rest.partition(end)[2]
    return text


def stale(folder: str, wanted: dict[str, str]) -> dict[str, str]:
    """Return the pages that are missing in a folder or differ there."""
    found = {}
    for name, text in wanted.items():
        path = os.path.join(folder, name)
        if not os.path.exists(path) or _read(path) != text:
            found[name] = text
    return found


def write(folder: str, wanted: dict[str, str]) -> None:
    """Write the stale pages of a folder."""
    for name, text in stale(folder, wanted).items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the generated pages of docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page in git is stale")
    parser.add_argument("--rules", metavar="FOLDER", help="write only the pages of the rules, to FOLDER")
    arguments = parser.parse_args()
    if arguments.check:
        found = sorted(stale(HERE, kept_pages()))
        for name in found:
            print(f"docs/{name} is stale. Run python docs/make.py.")
        return 1 if found else 0
    if not arguments.rules:
        write(HERE, kept_pages())
    write(arguments.rules or os.path.join(HERE, "rules"), rule_pages())
    return 0


if __name__ == "__main__":
    sys.exit(main())
