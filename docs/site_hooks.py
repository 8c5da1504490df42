"""Hooks of mkdocs: pages from outside of docs/, generated pages, and links as they are on a code host."""

from __future__ import annotations

import copy
import logging
import os
import posixpath
import re
import sys
from typing import Any

from mkdocs.structure.files import File, Files

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)

import api_pages  # noqa: E402
import make  # noqa: E402
import screenshots  # noqa: E402
import site_versions  # noqa: E402

# Pages of the checkout that are not in docs/, and their names in the site
OUTSIDE = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh/index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
}
LANGUAGES = {"en": "English", "zh": "中文"}  # the Chinese pages are those below zh/, and the last section of the menu
_log = logging.getLogger("mkdocs.plugins.site_hooks")  # its warnings fail a strict build
_HOMES = {"en": "index.html", "zh": "zh/index.html"}
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]*)(#[^)\s]*)?\)")
_CODE_OF_RULE = re.compile(r"(?<![\w/\[`#])NPU[123]\d\d(?!\w|\.md)")


def on_config(config: Any) -> Any:
    """Give the site of a release the switch between versions, if docs/site_versions.py builds it."""
    if os.path.exists(os.path.join(os.path.dirname(config.site_dir), site_versions.VERSIONS)):
        config.extra["version"] = {"provider": "mike"}  # the form of versions.json
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    pages = {name: _read(source) for source, name in OUTSIDE.items()}
    pages.update({"rules/" + name: text for name, text in make.rule_pages().items()})
    pages.update({"api/" + name: text for name, text in api_pages.pages().items()})
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    for name, image in screenshots.images().items():
        files.append(File.generated(config, "images/" + name, content=image))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Return the text of a page with links of the site."""
    name = page.file.src_uri
    source = next((outside for outside, inside in OUTSIDE.items() if inside == name), "docs/" + name)
    made, in_code = [], False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            in_code = not in_code
            line = re.sub(r"(```\w+) .*", r"\1", line)  # words after the language are for tests
        elif not in_code:
            line = _LINK.sub(lambda match: _link(match, source, name), line)
            if not line.startswith("#") and not name.startswith("rules/"):
                line = _link_rules(line, name)
        made.append(line)
    return "\n".join(made)


def on_page_context(context: dict[str, Any], page: Any, config: Any, nav: Any) -> dict[str, Any]:
    """Give a page the language of its text, the menu of this language, and a switch to the other language."""
    language = _language(page.url)
    config.theme["language"] = language
    urls = {each.url for each in nav.pages}
    links = {"en": page.url.replace("zh/", "", 1) if language == "zh" else page.url}
    links["zh"] = page.url if language == "zh" else "zh/" + page.url
    config.extra["alternate"] = [
        {"lang": each, "name": name, "link": links[each] if links[each] in urls else _HOMES[each]}
        for each, name in LANGUAGES.items()
    ]
    chinese = nav.items[-1]
    context["nav"] = copy.copy(nav)
    context["nav"].items = chinese.children if language == "zh" else nav.items[:-1]
    return context


def _language(url: str) -> str:
    return "zh" if url.startswith("zh/") else "en"


def _link(match: re.Match[str], source: str, name: str) -> str:
    """Return a link for the site. A file that is no page becomes its path."""
    text, target, anchor = match[1], match[2], match[3] or ""
    if not target:
        return match[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if path in OUTSIDE:
        inside = OUTSIDE[path]
    elif path.startswith("docs/") and (path.endswith(".md") or path.startswith("docs/images/")):
        inside = path[len("docs/") :]
    elif os.path.exists(os.path.join(ROOT, path)):
        return text if path in text else f"{text} (`{path}`)"
    else:
        _log.warning("%s: the link to %s leads to no file", source, target)
        return text
    return f"[{text}]({posixpath.relpath(inside, posixpath.dirname(name) or '.')}{anchor})"


def _link_rules(line: str, name: str) -> str:
    """Return a line with links from the codes of rules to their pages."""
    root = posixpath.relpath(".", posixpath.dirname(name) or ".")
    parts = re.split(r"(`[^`]*`|\[[^\]]*\]\([^)]*\))", line)  # neither in code nor in links
    parts[::2] = [_CODE_OF_RULE.sub(rf"[\g<0>]({root}/rules/\g<0>.md)", part) for part in parts[::2]]
    return "".join(parts)


def _read(path: str) -> str:
    with open(os.path.join(ROOT, path), encoding="utf-8") as stream:
        return stream.read()
