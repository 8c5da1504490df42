"""The Python files of a run as modules that import each other.

A file is read and parsed when it is converted or when another one asks for what is in it; the last ones stay at hand.
Of the others an outline remains, which says what most of those who import them want to know, so that hardly any is
parsed twice, and a further file takes a few kilobytes of memory.
"""

from __future__ import annotations

import ast
import gc
import os
import re
import weakref
from collections import OrderedDict
from typing import (
    Callable,
    Iterable,
    KeysView,
    NamedTuple,
    Pattern,
    TypeVar,
)

from ..semantics.resolver import Names, from_star
from ..semantics.types import Types
from ..syntax.source import Source, SourceError
from .module_cache import AtHand
from .module_finder import ModuleFiles
from .module_summary import CLASS, DEFINED, Outline, outline

_Key = TypeVar("_Key")
_Answer = TypeVar("_Answer")
# What is kept of a project, so that files are read and understood once: nodes of trees, of which each takes about 600
# bytes with what is known of it, and bytes of files as they are.
_NODES_AT_HAND, _BYTES_AT_HAND = 150_000, 8_000_000
_OUTLINES_AT_HAND = 16_000_000  # characters
# Where the garbage collector is at rest, it runs once for so many characters; there is little for it, because what
# files know of each other is forgotten when they are let go.
_COLLECTED = 60_000_000
_ROOTS = (b"tensorflow", b"keras", b"horovod", b"tf_slim", b"npu_bridge", b"npu_shim")
_IMPORTED = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*(?:from|import)[ \t]+(\.|\w+)", re.MULTILINE)


class Module(NamedTuple):
    """One file, understood."""

    path: str
    source: Source
    names: Names
    types: Types


class Project:
    """The files of a run.

    Args:
        paths: of its Python files.
        fixed: those among them that stay as they are.
        prepare: what is done to the names of each other file when it is read.
    """

    def __init__(
        self,
        paths: Iterable[str] = (),
        fixed: Iterable[str] = (),
        prepare: Callable[[Project, Source, Names], None] | None = None,
    ) -> None:
        self._paths = {os.path.abspath(path): path for path in paths}
        self._whole = {path: whole for whole, path in self._paths.items()}
        self.fixed: frozenset[str] = frozenset(os.path.abspath(path) for path in fixed)
        self._prepare = prepare
        self.files = ModuleFiles(self._paths)
        self._at_hand = AtHand(_NODES_AT_HAND)
        self._outlines: OrderedDict[str, Outline] = OrderedDict()  # of those that are not at hand any more
        self._outlines_size = 0
        self._unreadable: set[str] = set()
        self._let_go: list[weakref.ReferenceType[Names]] = []  # and not yet forgotten
        self._understood = 0  # characters, since the collector last ran
        self._raw: OrderedDict[str, bytes] = OrderedDict()
        self._raw_size = 0
        self._loading: list[str] = []
        self._cuts = 0  # how often an answer was not had because of modules that import each other
        self._attributes: dict[tuple[str, str], str | None] = {}
        self._ancestries: dict[tuple[str, str], frozenset[str]] = {}
        self._returned: dict[tuple[str, str, str], str | None] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Project, (tuple(self._paths.values()), self.fixed, self._prepare)  # another process reads for itself

    @property
    def paths(self) -> KeysView[str]:
        """The files, by their whole path."""
        return self._paths.keys()

    def _whole_path(self, path: str) -> str:
        return self._whole.get(path) or path and os.path.abspath(path)

    def raw(self, path: str) -> bytes:
        """The bytes of a file; nothing where it cannot be read."""
        try:
            return self.read(path)
        except OSError:
            return b""  # said when its own turn comes

    def read(self, path: str) -> bytes:
        """The bytes of a file, which may be at hand since it was last read.

        Raises:
            OSError: it cannot be read.
        """
        path = self._whole_path(path)
        found = self._raw.get(path)
        if found is None:
            with open(path, "rb") as stream:
                found = self._raw[path] = stream.read()
            self._raw_size += len(found)
            while self._raw_size > _BYTES_AT_HAND and len(self._raw) > 1:
                self._raw_size -= len(self._raw.popitem(last=False)[1])
        return found

    def concerns(self, raw: bytes, path: str = "", on_objects: Pattern[bytes] | None = None) -> bool:
        """Whether a file can hold anything for a rule.

        It does not, unless it names TensorFlow or Keras, or imports a module of the project. A file of the project must
        have them from there, or get objects of them from files that import it.

        Args:
            raw: its bytes.
            path: where it stands.
            on_objects: what a rule that acts on objects finds in a file; without it, every file may have that.
        """
        if names_roots(raw):
            return True
        path = self._whole_path(path)
        if path in self._paths:
            from .import_graph import concerned  # which stands on projects

            found = concerned(self)
            if path not in found.reaching and not (
                path in found.handed and (on_objects is None or on_objects.search(raw))
            ):
                return False
        return any(
            name == b"." or self.files.may_be(name.decode("utf-8", "replace")) for name in _IMPORTED.findall(raw)
        )

    def is_handed(self, raw: bytes, path: str) -> bool:
        """Whether a file of the project can have no name of TensorFlow, but only objects from files that import it.

        Args:
            raw: its bytes.
            path: where it stands.
        """
        from .import_graph import concerned  # which stands on projects

        path = self._whole_path(path)
        return path in self._paths and path not in concerned(self).reaching and not names_roots(raw)

    def understand(self, raw: bytes, path: str = "", asked: bool = False) -> Module:
        """Read a file's bytes.

        Args:
            raw: its bytes.
            path: where it stands.
            asked: whether it is read because another file asks for what is in it.

        Raises:
            SourceError: they are not Python 3.
        """
        path = self._whole_path(path)
        known = self._at_hand.get(path) if path else None
        if known is not None and known.source.raw == raw:
            self._at_hand.keep(known, asked)
            return known
        source = Source(raw)
        names = Names(source.tree, self, path)
        if self._prepare and path not in self.fixed:
            self._prepare(self, source, names)
        module = Module(path, source, names, Types(names))
        if path:
            self._keep(module, asked)
        return module

    def module(self, path: str) -> Module | None:
        """The module of a file of the project; None where it cannot be read."""
        known = self._at_hand.get(path)
        if known is not None:
            return known
        if path in self._unreadable:
            return None
        try:
            return self.understand(self.read(path), path, True)
        except (OSError, SourceError, RecursionError):
            self._unreadable.add(path)  # said when its own turn comes
            return None

    def outline(self, path: str) -> Outline | None:
        """The outline of a module of the project, which may not be at hand; None where it cannot be read."""
        known = self._outlines.get(path)
        if known is not None:
            self._outlines.move_to_end(path)
            return known
        module = self.module(path)
        return self._outlined(module) if module else None

    def _outlined(self, module: Module) -> Outline:
        made = self._outlines[module.path] = outline(module.names)
        self._outlines_size += len(made.text)
        while self._outlines_size > _OUTLINES_AT_HAND and len(self._outlines) > 1:
            self._outlines_size -= len(self._outlines.popitem(last=False)[1].text)
        return made

    def _keep(self, module: Module, asked: bool) -> None:
        self._understood += len(module.source.text)
        if self._understood > _COLLECTED and not gc.isenabled():
            self._understood = 0
            gc.collect()
        for old in self._at_hand.keep(module, asked):
            self._let_go.append(weakref.ref(old.names))
            if old.path not in self._outlines:
                self._outlined(old)

    def settle(self) -> None:
        """Let modules that are not at hand any more forget what they know of each other, which keeps them in memory.

        It is for the time between files, when nothing is being asked.
        """
        for reference in self._let_go:
            names = reference()
            if names is not None:
                names.let_go()
                names.types.let_go()
        self._let_go.clear()

    def follow(self, dotted: str, importer: str) -> str | None:
        """What an imported name is, where it comes from a module of the project.

        Args:
            dotted: e.g. ``.compat.tf`` for ``from .compat import tf``.
            importer: the path of the importing file.

        Returns:
            the dotted name of what it is; ``/path/of/module.py`` or ``/path/of/module.py:name`` for a
            module, or something defined in a module, of the project; None where that is not known;
            ``dotted`` itself where no module of the project is meant.
        """
        origin = self.origin(dotted, importer)
        if origin is None:
            return dotted if not dotted.startswith(".") else None
        found: str | None = origin[0]
        for part in origin[1]:
            found = self.attribute(found, part) if found else None
        return found

    def origin(self, dotted: str, importer: str) -> tuple[str, list[str]] | None:
        """The file that an imported name comes from, and what remains of the name; None where no module
        of the project is meant."""
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = dotted[dots:].split(".")
        for cut in range(len(parts), -1, -1):
            path = self.files.find("." * dots + ".".join(parts[:cut]), importer) if cut or dots else None
            if path:
                return path, parts[cut:]
        return None

    def attribute(self, base: str, name: str) -> str | None:
        """What an attribute of a dotted name, or of a module of the project, is."""
        if not base.startswith(os.sep):
            return base + "." + name
        path, _, inner = base.partition(":")
        if inner:
            return None  # of a class or function of the project
        if self._loading:
            return self._attribute(path, name)
        key = path, name
        if key not in self._attributes:
            self._attributes[key] = self._attribute(path, name)
        return self._attributes[key]

    def _attribute(self, path: str, name: str) -> str | None:
        if path in self._loading:
            self._cuts += 1
            return None  # modules that import each other: what is still being looked for is not known
        if path in self._unreadable:
            return None
        self._loading.append(path)
        try:
            found = self._exported(path, name)
        finally:
            self._loading.pop()
        if found is None and path not in self._unreadable and os.path.basename(path) == "__init__.py":
            return self.files.inside(os.path.dirname(path), [name])
        return found

    def _exported(self, path: str, name: str) -> str | None:
        """What a module makes a name, to the modules that import it."""
        known = self._outlines.get(path) if path not in self._at_hand else None
        if known is not None:
            if known.bindings(name):
                told, found = known.exported(name, self.follow)
                if told:
                    return found
            else:
                return from_star(name, known.stars, self, path) if known.stars else None
        module = self.module(path)
        return module.names.exported(name) if module else None

    def starred(self, path: str, name: str) -> str | None:
        """What a star import of a module of the project makes a name, or None where it does not bring
        it."""
        known = self.outline(path)
        return self.attribute(path, name) if known and known.offers(name) else None

    def binds(self, path: str, name: str) -> bool:
        """Whether a star import of a module of the project certainly binds a name."""
        known = self.outline(path)
        return known is not None and bool(known.bindings(name)) and known.offers(name)

    def ancestry(self, path: str, name: str) -> frozenset[str]:
        """The names of the classes outside the project that a class of a module is made from; nothing for what is no
        class."""
        key = path, name
        module = None if key in self._ancestries else self._binding_module(path, name, CLASS)
        if module is None:
            return self._ancestries.get(key, frozenset())
        names, owner = module.names, module.names.module.bindings[name][0].node
        return self._once(self._ancestries, key, frozenset(), lambda: names.ancestry(owner))  # type: ignore[arg-type]

    def returned(self, path: str, name: str, part: str) -> str | None:
        """The name of what a function of a module returns, or of a part of that, see :meth:`names.Names.returned`."""
        key = path, name, part
        module = None if key in self._returned else self._binding_module(path, name, DEFINED)
        if module is None:
            return self._returned.get(key)
        names, function = module.names, module.names.module.bindings[name][0].node
        if not isinstance(function, ast.FunctionDef):
            return None
        return self._once(self._returned, key, None, lambda: names.returned(function, part))

    def _binding_module(self, path: str, name: str, kind: str) -> Module | None:
        """A module, read again where it must be, if all that binds a name in it is one function or class."""
        known = self.outline(path)
        return self.module(path) if known and known.bindings(name) == [kind] else None

    def _once(self, known: dict[_Key, _Answer], key: _Key, itself: _Answer, find: Callable[[], _Answer]) -> _Answer:
        """An answer that is kept, unless modules that import each other have cut it short.

        Args:
            known: the answers that are kept.
            key: of this one.
            itself: what it is meanwhile, where it is asked for to find it.
            find: finds it.
        """
        known[key] = itself
        cuts = self._cuts
        found = find()
        if self._cuts == cuts:
            known[key] = found
        else:
            del known[key]
        return found


def names_roots(raw: bytes) -> bool:
    """Whether a file names TensorFlow, Keras, Horovod or what replaces them."""
    return any(root in raw for root in _ROOTS)
