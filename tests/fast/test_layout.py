"""Imports go down the list of packages, and no two files import each other in a circle.

A string that names a module is an import, too: of a process, of a source text, or of importlib.
"""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re
import sys
from typing import Callable, Iterable, Iterator, Mapping

import pytest
from convert_tf2npu import api

pytestmark = pytest.mark.once

# From the top down. A file imports from its own line and from those below it.
TOOL = """
api
main
cli
report
engine
rules
rewrite
analysis
project
semantics
syntax
tf_api
facts
files
"""
LIBRARY = """
__main__
cli
cli._diagnostics
exporting dumps profiles
rehearsal
launching
troubles
import_hook
alias
npu_init npu_device
_api
estimator experimental hccl helper image npu_cpu profiler scoped_graph_manager tbe tf_adapter _vendor_paths
horovod
training
optimizer
data
config
ops backports
distributed
options
_host
_tensorflow
"""


def order(text: str) -> dict[str, int]:
    """Return the line of each package; a file that the list does not name is at the bottom."""
    return {name: place for place, line in enumerate(text.strip().splitlines()) for name in line.split()}


@functools.lru_cache(maxsize=None)
def trees_of(folder: pathlib.Path) -> dict[pathlib.Path, ast.Module]:
    """Return the syntax trees of the modules below a folder."""
    return {path: parsed(path.read_text(encoding="utf-8-sig")) for path in sorted(folder.rglob("*.py"))}


class _Strings(ast.NodeTransformer):
    """Give Python 3.7 the constants of later versions for strings."""

    def visit_Str(self, node: ast.Str) -> ast.Constant:
        return ast.copy_location(ast.Constant(value=node.s), node)


def parsed(text: str) -> ast.Module:
    """Return the syntax tree of a text, with constants for strings."""
    tree = ast.parse(text)
    return _Strings().visit(tree) if sys.version_info < (3, 8) else tree


class Code:
    """The modules below one folder and their imports, those for type checking included, and those that strings name."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.top = folder.name
        trees = self._trees = trees_of(folder)
        self.files = {self._name(folder.parent, path): path for path in trees}
        self.imports = {name: sorted(set(self._imported(name, path, trees[path]))) for name, path in self.files.items()}

    @staticmethod
    def _name(root: pathlib.Path, path: pathlib.Path) -> str:
        parts = path.relative_to(root).with_suffix("").parts
        if parts[1:3] == ("_vendor_paths", "modules"):  # Python imports them from npu_shim
            parts = parts[:1] + parts[3:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _imported(self, name: str, path: pathlib.Path, tree: ast.Module) -> Iterator[str]:
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        for node in ast.walk(tree):
            found: list[str] = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                home = package[: len(package) + 1 - node.level] if node.level else []
                module = ".".join(home + ([node.module] if node.module else []))
                members = [f"{module}.{alias.name}" for alias in node.names]
                found = [member if member in self.files else module for member in members]
            yield from (each for each in found if each in self.files and each != name)

    def _named(self, name: str, path: pathlib.Path, tree: ast.Module) -> Iterator[str]:
        """Yield the modules that strings name whole or import, and private ones of other packages in any text."""
        whole = re.compile(rf"({self.top}(?:\.\w+)+)(?:\.|:\w+)?")
        imported = re.compile(rf"(?:\bfrom|\bimport|-m)\s+({self.top}(?:\.\w+)+)")
        docs = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        found = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                match = whole.fullmatch(node.value)
                found += [match[1]] if match else imported.findall(node.value)
        for each in found:
            while each not in self.files and "." in each:
                each = each.rpartition(".")[0]
            if each != name:
                yield each
        text = path.read_text(encoding="utf-8-sig")
        private = (f"{self.top}.{package}.{each}" for package, each in re.findall(r"\b(\w+)[./](_[a-z]\w*)", text))
        yield from (each for each in private if each in self.files and each != name)

    def upward(self, places: dict[str, int]) -> list[str]:
        """Return the imports against the order."""

        def place(name: str) -> int:
            rooms = (".".join(name.split(".")[1:end]) for end in (3, 2))
            return next((places[room] for room in rooms if room in places), len(places))

        return [
            f"{name} imports {other}"
            for name, path in self.files.items()
            for other in sorted({*self.imports[name], *self._named(name, path, self._trees[path])})
            if name != self.top and other != self.top and place(other) < place(name)
        ]

    def circles(self) -> list[str]:
        """Return the files that are left when those without imports among the rest are taken away again and again."""
        left = {name: set(others) for name, others in self.imports.items()}
        while True:
            free = {name for name, others in left.items() if not others}
            if not free:
                break
            left = {name: others - free for name, others in left.items() if name not in free}
        imported = {other for others in left.values() for other in others}
        while set(left) - imported:  # who only imports a circle
            left = {name: others for name, others in left.items() if name in imported}
            imported = {other for others in left.values() for other in others}
        return sorted(left)


@functools.lru_cache(maxsize=None)
def code_of(folder: pathlib.Path) -> Code:
    """Return the code below a folder of the project, which is read once."""
    return Code(folder)


@pytest.mark.parametrize(("folder", "packages"), [("tools/convert_tf2npu", TOOL), ("npu_shim", LIBRARY)])
def test_imports_go_down(folder: str, packages: str, repo_root: pathlib.Path) -> None:
    code, places = code_of(repo_root / folder), order(packages)
    assert code.upward(places) == []
    assert {f"{code.top}.{room}" for room in places} <= set(code.files), "a package of the list is gone"


def shown_rooms(page: str) -> list[list[str]]:
    """Return for each diagram of the page of the architecture the rooms that it lists, from the top down."""
    diagrams = re.findall(r"^```text\n(.*?)^```", page, re.M | re.S)
    return [re.findall(r"^ {3}(\w+)(?:, vendor paths)? {2,}(?=\S.*\n)", diagram, re.M) for diagram in diagrams]


def test_the_page_of_the_architecture_shows_all_rooms(repo_root: pathlib.Path) -> None:
    tool, library = shown_rooms((repo_root / "docs" / "architecture.md").read_text(encoding="utf-8"))
    vendor = {path.name for path in (repo_root / "npu_shim" / "_vendor_paths" / "modules").iterdir()}
    assert tool == [name for name in order(TOOL) if name != "main"]
    hidden = {"__main__", "cli._diagnostics", "_vendor_paths", *vendor}
    assert library == [name for name in order(LIBRARY) if name not in hidden]
    assert shown_rooms("```text\n   cli        verbs\n     _x  y\n```\n") == [["cli"]]


OLD = {
    "rehearsal/running.py": 'PROCESS = "npu_shim.cli._recorded"',
    "rehearsal/preloaded.py": 'command = [python, "-c", "import sys; from npu_shim.cli._recorded import main; main()"]',
    "launching/fork_server.py": '_CODE = ("import sys; " "from npu_shim.cli import _fork_server; " f"{root}")',
    "dumps/ladder.py": '_NAMES = ("folder", "steps")  # the settings of cli._recorded',
    "import_hook/rank.py": 'command = f"-m npu_shim.cli.{verb}"',
    "npu_device/card_steps.py": "from npu_shim.cli._recorded import MARK",
}


@pytest.mark.parametrize("path", OLD)
def test_a_string_is_an_import(path: str, tmp_path: pathlib.Path) -> None:
    own = "npu_shim." + path[:-3].replace("/", ".")
    lawful = f'"""npu_shim.cli starts it."""\nTEXT = "use npu-shim launch, as {own} does"'
    for folder, text in (("unlawful", OLD[path]), ("lawful", lawful)):
        root = tmp_path / folder / "npu_shim"
        for name, code in (("cli/__init__.py", ""), ("cli/_recorded.py", "MARK = 1"), (path, text)):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(code, encoding="utf-8")
        found = Code(root).upward(order(LIBRARY))
        assert [each.startswith(f"{own} imports npu_shim.cli") for each in found] == [True] * (folder == "unlawful")


def between_verbs(code: Code) -> list[tuple[str, str]]:
    """Return the imports of one verb of the CLI by another."""
    verbs = {name for name in code.files if re.fullmatch(r"npu_shim\.cli\.[a-z]\w*", name)}
    return [(name, other) for name in sorted(verbs) for other in code.imports[name] if other in verbs]


def test_no_verb_imports_another(repo_root: pathlib.Path) -> None:
    assert between_verbs(code_of(repo_root / "npu_shim")) == []


@pytest.mark.parametrize(
    "text",
    [
        "from npu_shim.cli import parser_of, verify",
        "from npu_shim.cli.verify import problem",
        "def main():\n    from npu_shim.cli import verify",
    ],
)
def test_a_verb_that_imports_another_is_found(text: str, tmp_path: pathlib.Path) -> None:
    cli = tmp_path / "npu_shim" / "cli"
    cli.mkdir(parents=True)
    for name, code in (("__init__", "parser = 1"), ("verify", "problem = 1"), ("diagnose", text), ("_shared", text)):
        (cli / f"{name}.py").write_text(code, encoding="utf-8")
    assert between_verbs(Code(tmp_path / "npu_shim")) == [("npu_shim.cli.diagnose", "npu_shim.cli.verify")]


def commands_in(tree: ast.Module, verbs: Iterable[str]) -> list[str]:
    """Return the verbs of the command that a module starts as a process: the words behind "npu_shim"."""
    lists = [node.elts for node in ast.walk(tree) if isinstance(node, (ast.List, ast.Tuple))]
    words = [[text_of(part, {}) for part in parts] for parts in lists]
    return [after for row in words for word, after in zip(row, row[1:]) if word == "npu_shim" and after in verbs]


def test_rooms_below_the_verbs_start_two_of_them_as_users_do(repo_root: pathlib.Path) -> None:
    code = code_of(repo_root / "npu_shim")
    below = {name: path for name, path in code.files.items() if not name.startswith("npu_shim.cli")}
    verbs = [path.stem for path in (repo_root / "npu_shim" / "cli").glob("[a-z]*.py")]
    started = {name: commands_in(trees_of(repo_root / "npu_shim")[path], verbs) for name, path in below.items()}
    assert {name: words for name, words in started.items() if words} == {
        "npu_shim.rehearsal.migrating.plan": ["observe"],
        "npu_shim.rehearsal.running": ["launch"],
    }
    assert commands_in(parsed('command = [sys.executable, "-m", "npu_shim", "launch", *words]'), verbs) == ["launch"]


def test_a_verb_is_no_process(repo_root: pathlib.Path) -> None:
    code = code_of(repo_root / "npu_shim")
    verbs = [name for name in code.files if name.startswith("npu_shim.cli") and "._diagnostics" not in name]
    assert [name for name in verbs if "\nif __name__ ==" in code.files[name].read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("folder", ["tools/convert_tf2npu", "npu_shim", "benchmarks", "tests"])
def test_no_files_import_each_other(folder: str, repo_root: pathlib.Path) -> None:
    code = code_of(repo_root / folder)
    assert code.circles() == []
    assert sum(map(len, code.imports.values())) > 3


OLD_IMPORTS = {
    "preamble_and_guard": "from ..rewrite.insertion import is_main_guard",
    "later_names": "from ..rewrite.call_edits import add_argument, rename, wrap",
    "dropouts": "from ..rewrite.change import Change, Finding, Result",
    "v2_behavior": "from ..rewrite.npu_imports import edit_adding_after",
    "in_a_function": "def switch():\n    from ..rewrite import insertion",
}


@pytest.mark.parametrize("name", OLD_IMPORTS)
def test_analysis_that_rewrites_is_noticed(name: str, tmp_path: pathlib.Path) -> None:
    tool = tmp_path / "convert_tf2npu"
    for stage in ("analysis", "rewrite"):
        (tool / stage).mkdir(parents=True)
    for module in ("call_edits", "change", "insertion", "npu_imports"):
        (tool / "rewrite" / f"{module}.py").write_text("")
    (tool / "analysis" / f"{name}.py").write_text(OLD_IMPORTS[name])
    assert [text.split()[0] for text in Code(tool).upward(order(TOOL))] == [f"convert_tf2npu.analysis.{name}"]


def names_of_edits(text: str) -> list[str]:
    """Return the names in a module that stand for edits, changes and findings."""
    words = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(ast.parse(text))}
    return sorted(words & {"Edit", "Change", "Finding"})


def test_analysis_makes_no_edits(repo_root: pathlib.Path) -> None:
    files = sorted((repo_root / "tools" / "convert_tf2npu" / "analysis").glob("*.py"))
    assert len(files) > 40
    assert [path.name for path in files if names_of_edits(path.read_text(encoding="utf-8"))] == []
    assert names_of_edits("yield Change(node, text, (source.Edit(0, 1, new),))") == ["Change", "Edit"]


TOOL_NAME, LIBRARY_NAME, DOOR = "convert_tf2npu", "npu_shim", "convert_tf2npu.api"
INSIDE = re.compile(rf"\b{TOOL_NAME}[./](?!api\b|__init__\b)\w")
BY_NAME = ("import_module", "__import__", "find_spec", "run_module")


def text_of(node: ast.AST, constants: Mapping[str, str]) -> str:
    """Return the string that an expression makes of strings and constants; other parts of it are a tab."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return constants.get(node.id if isinstance(node, ast.Name) else node.attr, "\t")
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value, constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left, constants) + text_of(node.right, constants)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, constants) for part in node.values)
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "join":  # of os.path
        return "/".join(text_of(part, constants) for part in node.args)
    return "\t"


def constants_of(trees: Iterable[ast.Module]) -> dict[str, str]:
    """Return the strings that modules name, by name."""
    found = {}
    for statement in (statement for tree in trees for statement in tree.body):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found[statement.targets[0].id] = text_of(statement.value, {})
    return {name: text for name, text in found.items() if text != "\t"}


def through_the_wall(tree: ast.Module, constants: Mapping[str, str]) -> Iterator[str]:
    """Yield what a file of the library names of the tool beside its door, in import statements and in strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.split(".")[0] == TOOL_NAME and each.name != DOOR)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == TOOL_NAME:
            names = [f"{node.module}.{each.name}" for each in node.names]
            yield from (name for name in names if name not in {DOOR, *(f"{DOOR}.{each}" for each in api.__all__)})
        elif isinstance(node, ast.expr) and INSIDE.search(text_of(node, constants)):
            yield text_of(node, constants)


def of_the_library(tree: ast.Module, constants: Mapping[str, str]) -> Iterator[str]:
    """Yield what a file of the tool imports of the library, by statements and by names."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in BY_NAME:
            names = [text_of(part, constants) for part in node.args]
        yield from (name for name in names if name.split(".")[0] == LIBRARY_NAME)


@pytest.mark.parametrize(("folder", "law"), [("npu_shim", through_the_wall), ("tools/convert_tf2npu", of_the_library)])
def test_the_library_uses_the_door_of_the_tool_and_the_tool_nothing_of_the_library(
    folder: str, law: Callable[..., Iterator[str]], repo_root: pathlib.Path
) -> None:
    trees = trees_of(repo_root / folder)
    constants = constants_of(trees.values())
    assert [(str(path), name) for path, tree in trees.items() for name in law(tree, constants)] == []


def test_the_library_needs_each_name_of_the_door(repo_root: pathlib.Path) -> None:
    nodes = [node for tree in trees_of(repo_root / "npu_shim").values() for node in ast.walk(tree)]
    used = {
        each.name for node in nodes if isinstance(node, ast.ImportFrom) and node.module == DOOR for each in node.names
    }
    assert sorted(set(api.__all__) - used) == ["Deliberate"]  # a type of what its functions return
    public = {name for name, each in vars(api).items() if getattr(each, "__module__", "").startswith(TOOL_NAME)}
    assert public - {"CHANGE"} == set(api.__all__)
    assert all((getattr(api, name).__doc__ or "").strip() for name in api.__all__)


@pytest.mark.parametrize(
    "code",
    [
        "from convert_tf2npu.engine.converter import Converter",
        "if TYPE_CHECKING:\n    from convert_tf2npu.syntax.source import Edit",
        "from convert_tf2npu.report.terminal import print_line",
        "from convert_tf2npu.cli import arguments, config",
        "def style():\n    from convert_tf2npu.report import html as package",
        "import convert_tf2npu.main",
        "from convert_tf2npu.api import Converter",
        "importlib.import_module('convert_tf2npu.rules.registry')",
        "importlib.import_module(PACKAGE + '.engine')",
        "importlib.import_module(f'{tool.PACKAGE}.engine')",
        "run([sys.executable, '-m', 'convert_tf2npu.main'])",
        "run('python -m convert_tf2npu.main')",
        "open(os.path.join('tools', PACKAGE, 'report', 'html', 'page.css'))",
    ],
)
def test_the_law_of_the_door_sees(code: str) -> None:
    assert list(through_the_wall(parsed(code), {"PACKAGE": TOOL_NAME}))


@pytest.mark.parametrize(
    "code",
    [
        "from convert_tf2npu import api",
        "def line():\n    from convert_tf2npu.api import print_line",
        "importlib.import_module(PACKAGE + '.api')",
        "os.path.join('tools', PACKAGE, '__init__.py')",
        "message = 'the script as convert_tf2npu converts it. List the rules.'",
    ],
)
def test_the_law_of_the_door_allows(code: str) -> None:
    assert not list(through_the_wall(parsed(code), {"PACKAGE": TOOL_NAME}))


@pytest.mark.parametrize("code", ["import npu_shim", "from npu_shim.data import x", "import_module('npu_shim.data')"])
def test_the_law_of_the_tool_sees(code: str) -> None:
    assert list(of_the_library(parsed(code), {}))


VAGUE = {"found", "made", "each"}
VAGUE_PARAMETERS = {"what", "got", "taken", "thing", "how"}


def vague_names(text: str) -> list[str]:
    """Return the names in a module that say that something was found or made, and the parameters that say no more."""
    nodes = list(ast.walk(ast.parse(text)))
    words = {getattr(node, "id", getattr(node, "arg", getattr(node, "name", ""))) for node in nodes}
    return sorted(words & VAGUE | {node.arg for node in nodes if isinstance(node, ast.arg)} & VAGUE_PARAMETERS)


def test_names_say_what_they_hold(repo_root: pathlib.Path) -> None:
    folders = [repo_root / "tools" / "convert_tf2npu", repo_root / "npu_shim"]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    assert len(files) > 1000
    vague = {str(path): vague_names(path.read_text(encoding="utf-8")) for path in files}
    assert {name: words for name, words in vague.items() if words} == {}
    assert vague_names("def f(made):\n    found = made\n    return [each for each in found]\n") == sorted(VAGUE)
    assert vague_names("def f(what, how):\n    got = what\n    return got\n") == ["how", "what"]


def one_word_questions(text: str) -> list[str]:
    """Return the private functions of a module that return a bool and have a name of one word, as ``_makes``."""
    return [
        name
        for name, function in functions_of(ast.parse(text)).items()
        if re.fullmatch("_[a-z]+", name) and getattr(function.returns, "id", "") == "bool"
    ]


def test_questions_name_their_object(repo_root: pathlib.Path) -> None:
    files = [
        path for folder in ("tools/convert_tf2npu", "npu_shim") for path in sorted((repo_root / folder).rglob("*.py"))
    ]
    short = {path.name: one_word_questions(path.read_text(encoding="utf-8")) for path in files}
    assert short.pop("tf_estimator.py") == ["_save"]  # of TensorFlow's CheckpointSaverHook
    assert {name: functions for name, functions in short.items() if functions} == {}
    assert one_word_questions("def _makes(x: int) -> bool: ...\ndef _makes_session(x: int) -> bool: ...") == ["_makes"]


def recurring(paths: Iterable[pathlib.Path]) -> list[str]:
    """Return the base names that several files have, those that Python and pytest ask for apart."""
    names = collections.Counter(path.name for path in paths)
    return sorted(name for name, number in names.items() if number > 1 and name not in ("__init__.py", "conftest.py"))


def test_files_of_the_tool_and_of_the_tests_have_unique_names(repo_root: pathlib.Path) -> None:
    assert recurring((repo_root / "tools" / "convert_tf2npu").rglob("*.py")) == []
    assert recurring((repo_root / "tests").rglob("test_*.py")) == []
    assert recurring(map(pathlib.Path, ("a/plan.py", "b/plan.py", "a/__init__.py", "b/__init__.py"))) == ["plan.py"]


# A line of a recording, and the head of all reports.
EDGES = {"recording/events.py": ["update"], "reports/__init__.py": ["report_head"]}
JSON_METHODS = "to_json", "from_json", "table_to_json", "get_config"  # the last one is that of Keras


def untyped_interfaces(text: str) -> list[str]:
    """Return the public functions and methods of a module that take or return JSON, but for to_json and from_json."""
    tree = ast.parse(text)
    owners = [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    functions = [node for owner in owners for node in owner.body if isinstance(node, ast.FunctionDef)]
    public = [node for node in functions if not node.name.startswith("_") and node.name not in JSON_METHODS]
    hints = {
        node.name: [of.annotation for of in node.args.args + node.args.kwonlyargs] + [node.returns] for node in public
    }
    parts = ((name, part) for name, types in hints.items() for hint in filter(None, types) for part in ast.walk(hint))
    return sorted({name for name, part in parts if getattr(part, "id", "") == "JsonObject"})


def test_results_are_classes_and_json_is_made_at_the_edge(repo_root: pathlib.Path) -> None:
    files = {"/".join(path.parts[-2:]): path for path in sorted((repo_root / "npu_shim").rglob("*.py"))}
    untyped = {name: untyped_interfaces(path.read_text(encoding="utf-8")) for name, path in files.items()}
    assert {name: functions for name, functions in untyped.items() if functions} == EDGES
    case = "def run(folder: str) -> JsonObject: ...\nclass C:\n    def show(self, rows: list[JsonObject]) -> str: ...\n"
    assert untyped_interfaces(case + "    def to_json(self) -> JsonObject: ...\n") == ["run", "show"]


def functions_of(tree: ast.AST) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def not_called_across(interface: ast.Module, others: Iterable[ast.Module]) -> list[str]:
    """Return the abstract methods of an interface that only the one file that defines them calls."""
    abstract = [
        name
        for name, function in functions_of(interface).items()
        if any(isinstance(node, ast.Name) and node.id == "abstractmethod" for node in function.decorator_list)
    ]
    functions = [(tree, functions_of(tree)) for tree in others]
    homes = collections.Counter(name for _, own in functions for name in own)
    used: set[str] = set()
    for tree, own in functions:
        calls = {node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")}
        used |= {name for name in calls if name not in own or homes[name] > 1}
    return [name for name in abstract if name not in used]


def test_interfaces_have_what_is_called_across_them(repo_root: pathlib.Path) -> None:
    tool = repo_root / "tools" / "convert_tf2npu"
    interface = tool / "semantics" / "module_index.py"
    others = [tree for path, tree in trees_of(tool).items() if path != interface]
    assert not_called_across(trees_of(tool)[interface], others) == ["paths"]  # a property


OLD_METHODS = "class Types(ABC):\n" + "".join(
    f"    @abstractmethod\n    def {name}(self): ...\n" for name in ("type_of", "inferred", "fixed")
)
OLD_CALLERS = [
    "class TypeInference(Types):\n    def inferred(self, node):\n        return node.names.types.inferred(node.value)\n",
    "kind = names.types.type_of(node)\n",
]


def test_a_method_that_only_its_class_calls_is_noticed() -> None:
    callers = [ast.parse(text) for text in OLD_CALLERS]
    assert not_called_across(ast.parse(OLD_METHODS), callers) == ["inferred", "fixed"]


# Overrides of argparse, whose own signatures have it, and JSON as it is read.
KNOWN: dict[str, dict[str, list[str]]] = {
    "npu_shim": {},
    "tools/convert_tf2npu": {
        "convert_tf2npu.cli.usage": ["parse_known_args", "print_help"],
        "convert_tf2npu.cli.wide_help": ["add_usage"],
        "convert_tf2npu.engine.results": ["result_from_plain"],
        "convert_tf2npu.syntax.notebook_cells": ["read_notebook_json", "is_python_notebook", "read_cells"],
    },
}


def untyped(tree: ast.Module) -> Iterator[str]:
    """Yield the public functions and methods with ``Any`` in their signatures."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")]
    for node in (node for body in bodies for node in body if isinstance(node, ast.FunctionDef)):
        if not node.name.startswith("_") or node.name == "__init__":
            args = node.args
            parts = [*args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            hints = [node.returns, *(part.annotation for part in parts if part is not None)]
            if any(
                isinstance(each, ast.Name) and each.id == "Any" for hint in hints if hint for each in ast.walk(hint)
            ):
                yield node.name


def test_few_expressions_of_types_are_any(repo_root: pathlib.Path) -> None:
    trees = [tree for top in ("npu_shim", "tools/convert_tf2npu") for tree in trees_of(repo_root / top).values()]
    assert sum(getattr(node, "id", "") == "Any" for tree in trees for node in ast.walk(tree)) <= 60


@pytest.mark.parametrize("folder", ["npu_shim", "tools/convert_tf2npu"])
def test_public_signatures_say_what_they_hold(folder: str, repo_root: pathlib.Path) -> None:
    trees = {name: trees_of(repo_root / folder)[path] for name, path in code_of(repo_root / folder).files.items()}
    assert {name: list(untyped(tree)) for name, tree in trees.items() if any(untyped(tree))} == KNOWN[folder]


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("def made(settings: Mapping[str, Any]) -> int: ...", True),
        ("def made(*args: Any) -> int: ...", True),
        ("class Found:\n    def verdict(self) -> dict[str, Any]: ...", True),
        ("class Found:\n    def __init__(self, *, options: Any = None) -> None: ...", True),
        ("def _made(settings: Any) -> Any: ...", False),
        ("class Found:\n    def verdict(self, other: Found) -> str:\n        kept: Any = 1", False),
    ],
)
def test_a_signature_with_any_is_found(text: str, is_found: bool) -> None:
    assert any(untyped(ast.parse(text))) == is_found


def is_rule(path: pathlib.Path) -> bool:
    """Return True for a module with a code and a check."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(line.startswith("CODE = ") for line in lines) and any(line.startswith("def check_") for line in lines)


def test_no_rule_imports_another(repo_root: pathlib.Path) -> None:
    code = code_of(repo_root / "tools" / "convert_tf2npu")
    rules = {name for name, path in code.files.items() if name.startswith("convert_tf2npu.rules.") and is_rule(path)}
    assert len(rules) > 70
    assert [(name, other) for name in sorted(rules) for other in code.imports[name] if other in rules] == []


def test_the_tool_has_no_files_beside_its_packages(repo_root: pathlib.Path) -> None:
    tool = repo_root / "tools" / "convert_tf2npu"
    assert sorted(path.name for path in tool.glob("*.py")) == ["__init__.py", "api.py", "main.py"]
    for package in [path.parent for path in tool.rglob("__init__.py") if path.parent != tool]:
        text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
        assert text and (package.parent != tool or len(text.splitlines()) >= 3), (
            f"{package} does not say what it is for"
        )


def test_the_root_of_the_library_shows_its_rooms(repo_root: pathlib.Path) -> None:
    entries = [path for path in (repo_root / "npu_shim").iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 26, sorted(path.name for path in entries)
    for path in entries:
        module = path / "__init__.py" if path.is_dir() else path
        text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
        assert text and text.splitlines()[0].endswith((".", ":")), f"{path.name} does not say what it is for"
