"""The public surface: what users may rely on, a line for each, and the comparison with that of the last release.

    python docs/public_surface.py             print what was added, changed and removed since the last release
    python docs/public_surface.py --write     write docs/public_surface.txt, as the last step before a release

Lines are names with their arguments, commands with their options, environment variables, NPU options, rules, properties
of JSON, and files that are written. Additions are allowed. What is removed or changed needs an entry in the first
section of CHANGELOG.md that begins with Remove, Rename, Replace or Change and has the name in backticks.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import pathlib
import re
import sys
from typing import Callable, Iterable, Iterator, NamedTuple
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, ROOT, os.path.join(ROOT, "tools")]

import api_pages  # noqa: E402
from convert_tf2npu.cli import arguments as tool_arguments  # noqa: E402
from convert_tf2npu.facts import facts  # noqa: E402
from convert_tf2npu.report import json_report, writers  # noqa: E402
from convert_tf2npu.rules.registry import Registry  # noqa: E402

from npu_shim import cli  # noqa: E402
from npu_shim.options.table import TABLE  # noqa: E402
from npu_shim.rehearsal import portable  # noqa: E402
from npu_shim.rehearsal.reports import WRITERS  # noqa: E402

FILE = os.path.join(HERE, "public_surface.txt")
_CHANGE = re.compile(r"\* (?:Remove|Rename|Replace|Change)\b.*")
_CODES = re.compile(r"exit codes? ([^(|]+)")


class Departure(NamedTuple):
    """A line of the last release that is not there any more: its name, and what is wrong."""

    name: str
    reason: str


def lines() -> list[str]:
    """Return the present surface."""
    parts = (_names, _modules, _commands, _exit_codes, _variables, _options, _rules, _json, _files)
    return [line for part in parts for line in sorted(set(part()))]


def departures(old: Iterable[str], new: Iterable[str]) -> list[Departure]:
    """Return what was removed or changed."""
    before, after = _by_name(old), _by_name(new)
    found = []
    for name, detail in before.items():
        if name not in after:
            found.append(Departure(name, "was removed"))
        elif name.startswith("name ") and "(" in detail and "(" in after[name]:
            found += [Departure(name, reason) for reason in _changes(detail, after[name])]
        elif not _keeps(name, detail, after[name]):
            found.append(Departure(name, f"was {detail or 'without a value'}, and is {after[name] or 'without one'}"))
    return found


def _keeps(name: str, old: str, new: str) -> bool:
    """Return True if a detail is as before, or an option takes more values than before."""
    return old == new or (name.startswith("option ") and bool(old) and {*old.split("|")} <= {*new.split("|")})


def additions(old: Iterable[str], new: Iterable[str]) -> list[str]:
    """Return the names that the last release does not have."""
    before = _by_name(old)
    return [name for name in _by_name(new) if name not in before]


def unexplained(found: Iterable[Departure], changelog: str) -> list[str]:
    """Return the departures that the first section of the changelog does not name."""
    section = re.split(r"(?m)^## ", changelog)[1]
    entries = _CHANGE.findall(re.sub(r"\n  +", " ", section))
    words = {code for entry in entries for code in re.findall(r"`([^`]+)`", entry)}
    said = words | {part for code in words for part in re.findall(r"[\w.-]+", code)}
    return [
        f"{departure.name} {departure.reason}"
        for departure in found
        if not {departure.name.partition(" ")[2], re.split(r"[ .]", departure.name)[-1]} & said
    ]


def _by_name(surface: Iterable[str]) -> dict[str, str]:
    named = {}
    for line in surface:
        if line and not line.startswith("#"):
            name, _, detail = line.partition(": ")
            named[name] = detail
    return named


# --- the library


def _names() -> Iterator[str]:
    sources = api_pages.Sources()
    for module in api_pages.MODULES:
        for name in sources.exported(module):
            if name.startswith("_"):
                continue
            found = sources.find(module, name)
            yield f"name {module}.{name}" + (f": {_arguments(found.node)}" if found else "")
            if found and isinstance(found.node, ast.ClassDef):
                for method in found.node.body:
                    if isinstance(method, ast.FunctionDef) and method.name[0] != "_" and ast.get_docstring(method):
                        yield f"name {module}.{name}.{method.name}: {_arguments(method, is_method=True)}"


def _arguments(node: ast.FunctionDef | ast.ClassDef, is_method: bool = False) -> str:
    """Return the arguments of a function without types, or those of the constructor of a class."""
    if isinstance(node, ast.ClassDef):
        made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        return _arguments(made[0], is_method=True) if made else "class"
    is_static = any(ast.unparse(each) in ("staticmethod", "property") for each in node.decorator_list)
    copied = ast.parse(ast.unparse(node.args).join(["def f(", "): pass"])).body[0]
    assert isinstance(copied, ast.FunctionDef)
    for argument in ast.walk(copied.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    text = ast.unparse(copied.args)
    return f"({re.sub(r'^(?:self|cls)(?:, )?', '', text) if is_method and not is_static else text})"


def _changes(old: str, new: str) -> Iterator[str]:
    """Yield what a caller of the old arguments notices of the new ones."""
    before, after = _parameters(old), _parameters(new)
    for name, (place, default) in before.items():
        if name not in after:
            yield f"has no argument {name}"
        elif after[name] != (place, default):
            yield f"has another place or default of {name}"
    yield from (
        f"needs the new argument {name}"
        for name, (_, default) in after.items()
        if name not in before and default is None and name[0] != "*"
    )


def _parameters(text: str) -> dict[str, tuple[int | None, str | None]]:
    """Return place and default of each argument; keyword arguments have no place, required ones no default."""
    node = ast.parse(f"def f{text}: pass").body[0]
    assert isinstance(node, ast.FunctionDef)
    arguments = node.args
    positional = [*getattr(arguments, "posonlyargs", []), *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + [ast.unparse(each) for each in arguments.defaults]
    made: dict[str, tuple[int | None, str | None]] = {}
    for place, (argument, default) in enumerate(zip(positional, defaults)):
        made[argument.arg] = place, default
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults):
        made[argument.arg] = None, None if value is None else ast.unparse(value)
    made.update({"*" + each.arg: (None, None) for each in [arguments.vararg] if each})
    made.update({"**" + each.arg: (None, None) for each in [arguments.kwarg] if each})
    return made


def _modules() -> Iterator[str]:
    folder = pathlib.Path(ROOT, "npu_shim", "_vendor_paths", "modules")
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        yield "module " + ".".join(("npu_shim", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def _options() -> Iterator[str]:
    for option in TABLE:
        yield f"npu-option {option.name}"


def _variables() -> Iterator[str]:
    section = _read("docs/reference.md").partition("## Environment variables")[2].partition("\n## ")[0]
    for row in re.findall(r"(?m)^\| (`.*?) \|", section):
        yield from (f"variable {name}" for name in re.findall(r"`([A-Z_*]+)`", row))


# --- the commands


class _Captured(Exception):
    """Raised with the first parser that parses."""


def _commands() -> Iterator[str]:
    for verb in cli.verb_names():
        if verb != "convert":  # has the options of convert_tf2npu
            yield from _of_parser(f"npu-shim {verb}", _parser_of(cli.verb(verb).main))
        else:
            yield "command npu-shim convert"
    yield from _of_parser("convert_tf2npu", tool_arguments.make_parser())


def _parser_of(main: Callable[[list[str]], int]) -> argparse.ArgumentParser:
    def capture(self: argparse.ArgumentParser, *args: object, **kwargs: object) -> None:
        raise _Captured(self)

    with mock.patch.object(argparse.ArgumentParser, "parse_known_args", capture), contextlib.redirect_stdout(
        io.StringIO()
    ):
        try:
            main(["--help"])
        except _Captured as captured:
            [parser] = captured.args
            return parser
    raise AssertionError(main)


def _of_parser(command: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"command {command}"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, part in action.choices.items():
                yield from _of_parser(f"{command} {name}", part)
        elif not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS:
            value = "" if action.nargs == 0 else "|".join(map(str, action.choices or ["VALUE"]))
            for name in action.option_strings:
                yield f"option {command} {name}" + (f": {value}" if value else "")


def _exit_codes() -> Iterator[str]:
    for row in re.findall(r"(?m)^\| (`(?:npu-shim|convert_tf2npu).*)$", _read("docs/reference.md")):
        command = re.match(r"`((?:npu-shim )?\w+)", row)
        codes = _CODES.search(row)
        if command and codes:
            yield f"exit-codes {command[1]}: {_numbers(codes[1])}"
    yield f"exit-codes convert_tf2npu: {_numbers(str(tool_arguments.make_parser().epilog))}"


def _numbers(sentence: str) -> str:
    return ", ".join(re.findall(r"(?:[:;,]|^) *(\d+)\b", sentence))


def _rules() -> Iterator[str]:
    yield from (f"rule {rule.code}" for rule in Registry().rules)


# --- files


def _json() -> Iterator[str]:
    for path in pathlib.Path(HERE).glob("*.schema.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        name = path.name.partition(".")[0]
        yield from (f"json {name} {place}: {kind}" for place, kind in _properties(schema, schema, ""))
    yield f"format report.json: {json_report.SCHEMA_VERSION}"
    yield f"format {facts.SCHEMA}: {facts.VERSION}"
    yield f"format {portable.FORMAT}: {portable.VERSION}"


def _properties(part: object, schema: dict[str, object], place: str) -> Iterator[tuple[str, str]]:
    """Yield the place and type of each property."""
    if not isinstance(part, dict):
        return
    if "$ref" in part:
        target: object = schema
        for key in str(part["$ref"]).lstrip("#/").split("/"):
            target = target[key] if isinstance(target, dict) else None
        yield from _properties(target, schema, place)
    for name, value in (part.get("properties") or {}).items():
        kind = value.get("type", "") if isinstance(value, dict) else ""
        yield f"{place}{name}", "|".join(kind) if isinstance(kind, list) else kind or "any"
        yield from _properties(value, schema, f"{place}{name}.")
    yield from _properties(part.get("items"), schema, place)
    for choice in part.get("anyOf") or part.get("oneOf") or []:
        yield from _properties(choice, schema, place)


def _files() -> Iterator[str]:
    yield from (f"file convert_tf2npu --report {name}" for name in writers.WRITERS)
    yield from (f"file npu-shim verify --report {name}" for name in WRITERS)
    yield f"file npu-shim verify --record {portable.MANIFEST}"


def _read(path: str) -> str:
    with open(os.path.join(ROOT, path), encoding="utf-8") as stream:
        return stream.read()


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the public surface with that of the last release.")
    parser.add_argument("--write", action="store_true", help="write docs/public_surface.txt")
    if parser.parse_args().write:
        from npu_shim import __version__

        head = [f"# Made by docs/public_surface.py for {__version__}. docs/compatibility.md says what it means."]
        with open(FILE, "w", encoding="utf-8") as stream:
            stream.write("\n".join(head + lines()) + "\n")
        return 0
    old, new = _read("docs/public_surface.txt").splitlines(), lines()
    found = departures(old, new)
    print(*(f"added: {name}" for name in additions(old, new)), sep="\n")
    print(*(f"changed: {departure.name} {departure.reason}" for departure in found), sep="\n")
    missing = unexplained(found, _read("CHANGELOG.md"))
    print(*(f"not in CHANGELOG.md: {text}" for text in missing), sep="\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
