"""Make docs/licences.md: the licences of the packages that npu_shim and its extras bring, from their metadata.

``python docs/make_licences.py`` asks pip, with the network, which packages it would install for this Python, and
installs none. Run it before a release and after a change of the requirements in setup.py.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from typing import Mapping

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "licences.md")
_HEAD = """<!-- made by docs/make_licences.py -->

# Licences of other packages

npu_shim has the licence Apache-2.0 and contains no code of other packages. pip installs these beside it. The licences
are those that their metadata state, the versions those for Python {python}; other Pythons get other ones. A package
that is already there and fits stays, as NumPy and protobuf do beside TensorFlow.
"""


def requirements(setup: str) -> dict[str, list[str]]:
    """Return the requirements in the text of setup.py, by extra; those of npu_shim itself have an empty name."""
    for node in ast.walk(ast.parse(setup)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setup":
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            extras = ast.literal_eval(given["extras_require"])
            return {"": ast.literal_eval(given["install_requires"]), **extras}
    raise AssertionError("setup.py has no call of setup")


def name_of(requirement: str) -> str:
    """Return the name of the package that a requirement asks for, in the form of an index."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def licence(metadata: Mapping[str, object]) -> str:
    """Return the licence that metadata state: an expression, a classifier, or the first line of a text."""
    expression = metadata.get("license_expression")
    if expression:
        return str(expression)
    classifiers = metadata.get("classifier")
    found = (
        [str(each) for each in classifiers if str(each).startswith("License ::")]
        if isinstance(classifiers, list)
        else []
    )
    names = [each.rpartition(" :: ")[2] for each in found if each != "License :: OSI Approved"]
    lines = str(metadata.get("license") or "").strip().splitlines()
    return ", ".join(names) or (lines[0].strip()[:60] if lines else "not stated")


def resolved(wanted: list[str]) -> list[Mapping[str, object]]:
    """Return the metadata of the packages that pip would install."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "-q",
        "--dry-run",
        "--ignore-installed",
    ]
    done = subprocess.run([*command, "--report", "-", *wanted], stdout=subprocess.PIPE, check=True)
    return [each["metadata"] for each in json.loads(done.stdout)["install"]]


def page(extras: Mapping[str, list[str]]) -> str:
    """Return the page."""
    parts = [_HEAD.format(python=".".join(map(str, sys.version_info[:2])))]
    for extra, wanted in extras.items():
        own = {name_of(each) for each in wanted}
        rows = []
        for metadata in resolved(wanted):
            name = str(metadata["name"])
            by = "npu_shim" if name_of(name) in own else "one of these"
            rows.append(f"| {name} | {metadata['version']} | {licence(metadata)} | {by} |")
        heading = f"With `npu_shim[{extra}]`" if extra else "Always"
        table = [
            "| package | version | licence | required by |",
            "| --- | --- | --- | --- |",
            *sorted(rows, key=str.lower),
        ]
        parts.append("\n".join([f"## {heading}", "", *table, ""]))
    return "\n".join(parts)


def main() -> None:
    with open(os.path.join(os.path.dirname(HERE), "setup.py"), encoding="utf-8") as stream:
        extras = requirements(stream.read())
    text = page(extras)
    with open(PAGE, "w", encoding="utf-8") as stream:
        stream.write(text)


if __name__ == "__main__":
    main()
