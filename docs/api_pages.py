"""The API reference: a page for each public module, read from the sources without importing them."""

from __future__ import annotations

import ast
import os
import re
import textwrap
from dataclasses import dataclass, replace
from typing import Iterator

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODULES = (
    "npu_shim",
    "npu_shim.npu_init",
    "npu_shim.npu_device",
    "npu_shim.npu_device.distribute",
    "npu_shim.npu_device.train",
    "npu_shim.npu_device.train.optimizer",
    "npu_shim.backports",
    "npu_shim.backports.keras_ops",
    "npu_shim.backports.keras_random",
    "npu_shim.backports.layers",
    "npu_shim.backports.optimizers",
    "npu_shim.backports.seeds",
    "npu_shim.backports.variables",
    "npu_shim.data",
    "npu_shim.estimator.npu_ops",
    "npu_shim.estimator.npu.npu_scope",
    "npu_shim.estimator.npu.npu_strategy",
    "npu_shim.estimator.npu.keras_to_npu",
    "npu_shim.estimator.npu.util",
    "npu_shim.hccl.hccl_ops",
    "npu_shim.hccl.manage.api",
    "npu_shim.hccl.split.api",
    "npu_shim.horovod.tensorflow",
    "npu_shim.horovod.tensorflow.elastic",
    "npu_shim.horovod.keras.callbacks",
)
_SECTION = re.compile(r"(Args|Returns|Raises|Yields|Attributes|Source|Shapes):\s*(.*)$")
_LAZY = ("lazy_names", "_lazy_names")


@dataclass(frozen=True)
class Found:
    """A documented function or class."""

    module: str
    node: ast.FunctionDef | ast.ClassDef
    only_in_graphs: bool = False  # npu_shim.ops.graph_mode


class Sources:
    """The modules of the package, parsed once each."""

    def __init__(self, root: str = ROOT) -> None:
        self._root = root
        self._trees: dict[str, ast.Module | None] = {}

    def tree(self, module: str) -> ast.Module | None:
        """Return the parsed module, or None if there is no such file."""
        if module not in self._trees:
            package, *names = module.split(".")
            folders = (package, os.path.join(package, "_vendor_paths", "modules"))
            bases = [os.path.join(self._root, folder, *names) for folder in folders]
            ends = (
                ".pyi",
                ".py",
                os.sep + "__init__.pyi",
                os.sep + "__init__.py",
            )  # a stub has the names of a lazy module
            paths = [base + end for base in bases for end in ends if os.path.exists(base + end)]
            self._trees[module] = ast.parse(_read(paths[0])) if paths else None
        return self._trees[module]

    def exported(self, module: str) -> list[str]:
        """Return ``__all__`` of a module, or else its public functions and classes; submodules are listed too."""
        tree = self.tree(module)
        assert tree is not None, f"no module {module}"
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return [str(e.value) for e in ast.walk(node.value) if isinstance(e, ast.Constant)]
        return [
            node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_"
        ]

    def find(self, module: str, name: str) -> Found | None:
        """Return the function or class that a name of a module is, through any number of imports."""
        tree = self.tree(module)
        if tree is None or self.tree(f"{module}.{name}"):
            return None
        for node in _statements(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                return Found(module, node, any("only_in_graphs" in ast.unparse(d) for d in node.decorator_list))
            if isinstance(node, ast.Assign) and ast.unparse(node).startswith(f"{name} = only_in_graphs("):
                assert isinstance(node.value, ast.Call)
                home, _, function = ast.unparse(node.value.args[0]).rpartition(".")
                found = self.find(f"{module.rpartition('.')[0]}.{home}" if home else module, function)
                return found and replace(found, only_in_graphs=True)
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self.find(node.module, alias.name)
        home = self._lazy_homes(tree).get(name)
        return self.find(home, name) if home else None

    def _lazy_homes(self, tree: ast.Module) -> dict[str, str]:
        """Return the home of each name that a module loads on first use."""
        homes: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _LAZY and isinstance(node.args[1], ast.Dict):
                table = ast.literal_eval(node.args[1])
                homes.update({name: home for home, names in table.items() for name in names.split()})
        return homes


def pages() -> dict[str, str]:
    """Return the pages by their file names: one for each module and an index."""
    sources = Sources()
    made = {f"{module}.md": _module_page(sources, module) for module in MODULES}
    rows = [f"| [{module}]({module}.md) | {_summary(sources, module)} |" for module in MODULES]
    made["README.md"] = "\n".join(
        [
            "# API reference",
            "",
            "Made from the docstrings of this version.",
            "",
            "| module | |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )
    return made


def docstring_markdown(text: str) -> str:
    """Return a docstring as Markdown: literal blocks as code, sections of arguments as lists."""
    made: list[str] = []
    code = False
    section = ""
    for line in text.split("\n"):
        indented = line.startswith("    ")
        if code and line and not indented:
            while made[-1] == "":
                made.pop()
            made += ["```", ""]
            code = False
        if code:
            made.append(line[4:])
            continue
        match = _SECTION.match(line)
        if match:
            section = match[1]
            made += ["", f"**{section}**", "", *([match[2]] if match[2] else [])]
        elif section and indented:
            made.append(_item(line))
        elif indented and made and made[-1] == "" and len(made) > 1 and made[-2].endswith("::"):
            made[-2] = made[-2][:-1]
            made += ["```python", line[4:]]
            code = True
        else:
            section = section if not line else ""
            made.append(line)
    return "\n".join(re.sub(r"``([^`]+)``", r"`\1`", line) for line in made + (["```"] if code else [])).strip() + "\n"


def _item(line: str) -> str:
    """Return a line of a section: ``name: meaning`` begins an item, a deeper line continues it."""
    if line.startswith("     "):
        return "    " + line.strip()
    name, colon, meaning = line.strip().partition(": ")
    return f"* `{name}`: {meaning}" if colon and re.fullmatch(r"[\w*., ]+", name) else f"* {line.strip()}"


def _module_page(sources: Sources, module: str) -> str:
    tree = sources.tree(module)
    assert tree is not None
    parts = [f"# {module}", "", docstring_markdown(ast.get_docstring(tree) or "")]
    others = []
    for name in sources.exported(module):
        found = sources.find(module, name)
        if found is None:
            others.append(f"`{name}`")
            continue
        parts += [f"## {name}", "", *_described(name, found)]
    if others:
        parts += ["## Other names", "", "Modules and values: " + ", ".join(others) + ".", ""]
    return "\n".join(parts)


def _described(name: str, found: Found) -> Iterator[str]:
    node = found.node
    function = _constructor(node) if isinstance(node, ast.ClassDef) else node
    yield "```python"
    yield _signature(name, function, isinstance(node, ast.ClassDef))
    yield "```"
    yield ""
    yield docstring_markdown(ast.get_docstring(node) or "")
    if found.only_in_graphs:
        yield "It works in graph mode, and raises `RuntimeError` in eager mode.\n"
    if isinstance(node, ast.ClassDef):
        if function is not None and ast.get_docstring(function):
            yield docstring_markdown(ast.get_docstring(function) or "")
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name[0] != "_" and ast.get_docstring(method):
                yield f"### {name}.{method.name}\n\n```python\n{_signature(method.name, method, True)}\n```\n"
                yield docstring_markdown(ast.get_docstring(method) or "")


def _constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)


def _signature(name: str, function: ast.FunctionDef | None, method: bool) -> str:
    if function is None:
        return name
    arguments = ast.unparse(function.args)
    if method:
        arguments = re.sub(r"^(?:self|cls)(?:, )?", "", arguments)
    returns = f" -> {ast.unparse(function.returns)}" if function.returns and function.name != "__init__" else ""
    return "\n    ".join(textwrap.wrap(f"{name}({arguments}){returns}", 100, break_long_words=False))


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Return the statements of a module, also those under ``if`` and ``try``."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, (ast.If, ast.Try)):
            waiting += node.body + node.orelse


def _summary(sources: Sources, module: str) -> str:
    tree = sources.tree(module)
    first = ((ast.get_docstring(tree) if tree else "") or "").split("\n\n")[0].replace("\n", " ")
    return re.sub(r"``([^`]+)``", r"`\1`", first)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()
