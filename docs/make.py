"""Make the generated pages: docs/rules/ from the rules' docstrings, docs/options.md from the options' rows,
docs/report-schema.md from docs/report.schema.json.

``python docs/make.py`` writes them, ``python docs/make.py --check`` exits 1 when one is stale.
"""

from __future__ import annotations

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "tools")]

import schema_page  # noqa: E402
from convert_tf2npu.rules.base import Rule
from convert_tf2npu.rules.registry import Registry

from npu_shim.options import page as options_page  # noqa: E402

_NOTE = "<!-- made by docs/make.py; change the rule instead -->\n"
_SCHEMA_NOTE = "<!-- made by docs/make.py; change report.schema.json or schema_page.py instead -->\n\n"
_OPTIONS_NOTE = "<!-- made by docs/make.py; change the rows in npu_shim/options instead -->\n\n"


def rule_page(rule: Rule) -> str:
    """A rule's page: its docstring, with the literal blocks as code."""
    lines = rule.doc.split("\n")
    made = [_NOTE, "# {}: {}".format(rule.code, lines[0].rstrip("."))]
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
    return "\n".join(made + (["```"] if in_code else [])).rstrip() + "\n"


def index_page() -> str:
    """The list of all rules."""
    rows = [f"| [{rule.code}]({rule.code}.md) | {rule.title} |" for rule in Registry().rules]
    return (
        _NOTE
        + "\n# The rules of the migration tool\n\n| code | what it does |\n| --- | --- |\n"
        + "\n".join(rows)
        + "\n"
    )


def pages() -> dict[str, str]:
    """All generated pages by their path below docs/."""
    made = {os.path.join("rules", rule.code + ".md"): rule_page(rule) for rule in Registry().rules}
    made[os.path.join("rules", "README.md")] = index_page()
    made["options.md"] = _OPTIONS_NOTE + options_page.markdown()
    made["report-schema.md"] = _SCHEMA_NOTE + schema_page.markdown()
    return made


def stale() -> dict[str, str]:
    """The generated pages that are not on disk as they should be; an empty text means: remove it."""
    wanted = pages()
    found: dict[str, str] = {}
    for path, text in wanted.items():
        full = os.path.join(HERE, path)
        if not os.path.exists(full) or _read(full) != text:
            found[path] = text
    folder = os.path.join(HERE, "rules")
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if os.path.join("rules", name) not in wanted:
            found[os.path.join("rules", name)] = ""
    return found


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def main() -> int:
    changed = stale()
    for path, text in sorted(changed.items()):
        if "--check" in sys.argv:
            print(f"docs/{path} is stale; run python docs/make.py")
            continue
        full = os.path.join(HERE, path)
        if not text:
            os.unlink(full)
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as stream:
            stream.write(text)
    return 1 if changed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
