"""The Python files of a run as modules that import each other: the index that name resolution asks."""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import Callable, Collection, Iterable, KeysView, NamedTuple, Pattern, TypeVar, cast

from ..semantics.module_index import Module, ModuleIndex, Names
from ..semantics.resolved_name import ResolvedName
from ..semantics.resolver import Resolver
from ..semantics.types import TypeInference
from ..syntax.source import Source
from .free_memory import nodes_that_fit
from .import_graph import ImportGraph
from .module_store import ModuleStore
from .said_versions import SaidVersions
from .source_files import SourceFiles, mentions_frameworks

_Key = TypeVar("_Key")
_Answer = TypeVar("_Answer")
_IMPORTED = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*(?:from|import)[ \t]+(\.|\w+)", re.MULTILINE)
# A fixed beginning makes the search fast.
_FUNCTION = re.compile(rb"def(?<!\wdef)[\s\\]+([^\s\\(\[]+)")
_DERIVED = re.compile(rb"class(?<!\wclass)[\s\\]+([^\s\\(\[:]+)[\s\\]*[(\[]")
Prepare = Callable[[ModuleIndex, Source, Names], None]


class Project(ModuleIndex):
    """The files of a run.

    Args:
        paths: the Python files.
        fixed: those among them that stay unchanged.
        prepare: called with the names of each other file after it is parsed.
        keras_apart: True if the package keras is another one than tf.keras in all files.
        said: the versions of TensorFlow that the user gives for files.
    """

    def __init__(
        self,
        paths: Iterable[str] = (),
        fixed: Iterable[str] = (),
        prepare: Prepare | None = None,
        keras_apart: bool = False,
        said: SaidVersions = SaidVersions(),
    ) -> None:
        super().__init__()
        self.files = SourceFiles(paths)
        self._fixed = frozenset(os.path.abspath(path) for path in fixed)
        self._prepare = prepare
        self._keras_apart = keras_apart
        self._said = said
        self._store = ModuleStore(self.files, self._analyse)
        self._imports: ImportGraph | None = None
        self._loading: list[str] = []
        self.cuts = 0
        self._attributes: dict[tuple[str, str], ResolvedName | None] = {}
        self._ancestries: dict[tuple[str, str], frozenset[str]] = {}
        self._returned: dict[tuple[str, str, str], ResolvedName | None] = {}
        self._defined: dict[str, frozenset[str]] = {}  # by files that have been analysed

    def __reduce__(self) -> tuple[object, ...]:
        # Another process reads the files itself.
        return Project, (self.files.paths_as_given, self._fixed, self._prepare, self._keras_apart, self._said)

    # The files.

    @property
    def paths(self) -> KeysView[str]:
        return self.files.paths

    def raw(self, path: str) -> bytes:
        return self.files.raw(path)

    def file_of_module(self, module: str, importer: str) -> str | None:
        return self.files.finder.find_for_file(module, importer)

    def given_tf_version(self, path: str) -> str:
        return self._said.version_of(path)

    # The import graph.

    @property
    def imports(self) -> ImportGraph:
        """The import graph, read when it is first asked for."""
        if self._imports is None:
            self._imports = ImportGraph(self.files)
        return self._imports

    def direct_importers(self, path: str) -> tuple[str, ...]:
        return self.imports.direct_importers(path)

    def with_importers(self, paths: Collection[str]) -> frozenset[str]:
        return self.imports.with_importers(paths)

    def with_imports(self, path: str) -> frozenset[str]:
        return self.imports.with_imports(path)

    def names_imported_from(self, path: str) -> frozenset[str]:
        return self.imports.names_imported_from(path)

    def may_concern_rules(self, raw: bytes, path: str = "", on_objects: Pattern[bytes] | None = None) -> bool:
        # A file names TensorFlow or Keras, or gets them from a module of the project that it imports, or receives
        # objects of them from files that import it.
        if mentions_frameworks(raw):
            return True
        path = self.files.absolute_path(path)
        if path in self.paths:
            concerned = self.imports.concerned
            if path not in concerned.reaching:
                return path in concerned.handed and (on_objects is None or on_objects.search(raw) is not None)
        finder = self.files.finder
        return any(
            name == b"." or finder.may_be_module_of_project(name.decode("utf-8", "replace"))
            for name in _IMPORTED.findall(raw)
        )

    def only_uses_passed_objects(self, raw: bytes, path: str) -> bool:
        """Return True if a file of the project has no name of TensorFlow, only objects from files that import it."""
        path = self.files.absolute_path(path)
        return path in self.paths and path not in self.imports.concerned.reaching and not mentions_frameworks(raw)

    # The modules.

    def understand(self, raw: bytes, path: str = "") -> Module:
        """Return the module of a file's bytes.

        Raises:
            SourceError: they are not Python 3.
        """
        return self._store.understand(raw, self.files.absolute_path(path))

    def with_keras_apart(self, module: Module) -> Module:
        """Return a module anew, in which the package keras is another one than tf.keras. It is not kept."""
        return self._analyse(module.source.raw, module.path, True)

    def module(self, path: str) -> Module | None:
        module = self._store.module(path)
        self.cuts += module is None and path in self._store.in_progress
        return module

    def share_memory(self, processes: int) -> None:
        """Keep as many modules as fit into this process's part of the memory that the machine has free."""
        self._store.limit_nodes(nodes_that_fit(processes))

    def free_dropped_modules(self) -> None:
        """Release the memory of dropped modules. Call it between two files."""
        self._store.free_dropped_modules()

    def _analyse(self, raw: bytes, path: str, keras_apart: bool = False) -> Module:
        source = Source(raw)
        said = self._said.version_of(path)
        names = Resolver(source.tree, self, path, keras_apart or (said == "1" if said else self._keras_apart))
        if self._prepare and path not in self._fixed:
            self._prepare(self, source, names)
        if path:
            self._defined[path] = names.names_bound_by_one_definition()
        return Module(path, source, names, TypeInference(names))

    # The names of modules.

    def resolve_import(self, dotted: str, importer: str) -> ResolvedName | None:
        origin = self.file_of_import(dotted, importer)
        if origin is None:
            return ResolvedName(dotted) if not dotted.startswith(".") else None
        name: ResolvedName | None = ResolvedName("", origin[0])
        for part in origin[1]:
            name = self.resolve_attribute(name, part) if name else None
        return name

    def file_of_import(self, dotted: str, importer: str) -> tuple[str, list[str]] | None:
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = dotted[dots:].split(".")
        for cut in range(len(parts), -1, -1):
            path = self.file_of_module("." * dots + ".".join(parts[:cut]), importer) if cut or dots else None
            if path:
                return path, parts[cut:]
        return None

    def resolve_attribute(self, base: ResolvedName, name: str) -> ResolvedName | None:
        if not base.path:
            return ResolvedName(f"{base.dotted}.{name}")
        if base.dotted:
            return None  # of a class or function of the project
        key = base.path, name
        if key in self._attributes:
            return self._attributes[key]
        cuts = self.cuts
        answer = self._resolve_module_attribute(base.path, name)
        if not self._loading and not self._store.in_progress:
            self.cuts = cuts  # it is the first answer, which all others waited for
        if self.cuts == cuts:
            self._attributes[key] = answer
        return answer

    def outside_ancestors(self, path: str, name: str) -> frozenset[str]:
        key = path, name
        if key not in self._ancestries and name not in self.once(_words_that_may_be_definitions, path).derived:
            return frozenset()  # to parse the file takes longer
        module = None if key in self._ancestries else self._module_with_single_definition(path, name, "class")
        if module is None:
            return self._ancestries.get(key, frozenset())
        names, owner = module.names, module.names.module.bindings[name][0].node
        return self._computed_once(
            self._ancestries, key, frozenset(), lambda: names.outside_ancestors(cast(ast.ClassDef, owner))
        )

    def name_of_result(self, path: str, name: str, part: str) -> ResolvedName | None:
        key = path, name, part
        if key not in self._returned and name not in self.once(_words_that_may_be_definitions, path).functions:
            return None  # to parse the file takes longer
        module = None if key in self._returned else self._module_with_single_definition(path, name, "def")
        if module is None:
            return self._returned.get(key)
        names, function = module.names, module.names.module.bindings[name][0].node
        if not isinstance(function, ast.FunctionDef):
            return None
        return self._computed_once(self._returned, key, None, lambda: names.name_of_result(function, part))

    def _resolve_module_attribute(self, path: str, name: str) -> ResolvedName | None:
        if path in self._loading:
            self.cuts += 1
            return None  # modules that import each other: this name is unknown until the first answer is found
        if self._store.is_unreadable(path):
            return None
        self._loading.append(path)
        try:
            attribute = self._name_for_importers(path, name)
        finally:
            self._loading.pop()
        if attribute is None and not self._store.is_unreadable(path) and os.path.basename(path) == "__init__.py":
            inside = self.files.finder.find_in_folder(os.path.dirname(path), [name])
            return ResolvedName("", inside) if inside else None
        return attribute

    def _name_for_importers(self, path: str, name: str) -> ResolvedName | None:
        """Return what a module-level name is to the modules that import it."""
        if name in self._defined.get(path, ()):
            return ResolvedName(name, path)  # to parse the file again takes longer
        module = self.module(path)
        return module.names.name_for_importers(name) if module else None

    def _module_with_single_definition(self, path: str, name: str, kind: str) -> Module | None:
        """Return a module if the only binding of a name in it is a function or class at its top level."""
        module = self.module(path)
        bindings = module.names.module.bindings.get(name, []) if module else []
        is_one = len(bindings) == 1 and bindings[0].kind == kind
        return module if module and is_one and bindings[0].where.scope is module.names.module else None

    def _computed_once(
        self, answers: dict[_Key, _Answer], key: _Key, interim_answer: _Answer, compute: Callable[[], _Answer]
    ) -> _Answer:
        """Return an answer and keep it, unless modules that import each other cut it short.

        Args:
            answers: the answers that are kept.
            key: the key of this one.
            interim_answer: the answer for questions about the same key while it is being found.
            compute: finds it.
        """
        answers[key] = interim_answer
        cuts = self.cuts
        answer = compute()
        if self.cuts == cuts:
            answers[key] = answer
        else:
            del answers[key]
        return answer


class _Definitions(NamedTuple):
    """Names that a file may define.

    Attributes:
        functions: of functions and methods.
        derived: of classes with bases.
    """

    functions: frozenset[str]
    derived: frozenset[str]


def _words_that_may_be_definitions(project: Project, path: str) -> _Definitions:
    """Return the words of a file that may be names of functions and classes; a string has such words, too."""
    raw = project.raw(path)
    return _Definitions(
        *(
            frozenset(sys.intern(word.decode("utf-8", "replace")) for word in pattern.findall(raw))
            for pattern in (_FUNCTION, _DERIVED)
        )
    )
