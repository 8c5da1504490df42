"""Whether a file of TensorFlow 1 is lifted to tf.compat.v1, and how: decided once, when it is read.

What is decided is at once true for the names of the file, so that all rules, and other files that import from it,
see what will stand there: ``import tensorflow as tf`` that becomes ``import tensorflow.compat.v1 as tf`` binds
``tensorflow.compat.v1``.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from ...rewrite.removal import block_of
from ...semantics.model import Binding, Lift, Scope, Star, Where
from ...semantics.module_index import ModuleIndex, Names
from ...semantics.version_evidence import had_gelu, is_eager
from ...syntax.source import Edit, Source
from ...syntax.suppressions import ignored
from ...tf_api.canonical_names import canonical
from ...tf_api.v1_fate import (
    NEW,
    NOWHERE,
    OF_CONTRIB,
    ONLY_IN_V1,
    OTHERWISE,
    V1,
    became,
    holds_lifted,
    is_lifted,
    is_module,
    lifted,
    rest_of,
)
from .contrib.homes import contrib_name, home_of, is_importable, part_with_home, shared_module

CODE, MOVING = "NPU100", "NPU119"
_CONTRIB = "tensorflow.contrib"
_DOTTED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)((?:\.\w+)+)")
# Parts of the package that are not in compat.v1 and can be imported all the same.
_BESIDE = frozenset({"python", "core", "examples", "tools", "compiler", "contrib", "compat"})


class Use(NamedTuple):
    """A dotted name of TensorFlow in an expression: where it starts, the whole, and what it means."""

    root: ast.Name
    whole: ast.expr
    where: Where
    name: str


class _Import(NamedTuple):
    """What one import statement binds to a name of TensorFlow."""

    scope: Scope
    local: str
    binding: Binding

    @property
    def is_bare(self) -> bool:
        """Whether it is ``import tensorflow`` or ``import tensorflow.keras``, which bind the root itself."""
        return isinstance(self.binding.node, ast.Import) and any(
            a.asname is None and a.name.partition(".")[0] == self.local for a in self.binding.node.names
        )

    @property
    def is_bare_part(self) -> bool:
        """Whether it is ``import tensorflow.keras``, with or without ``import tensorflow``."""
        return self.is_bare and any(
            a.asname is None and a.name.startswith("tensorflow.")
            for a in self.binding.node.names  # type: ignore[union-attr]
        )


def lift(project: ModuleIndex, source: Source, names: Names) -> None:
    """Decide it for a file, and let its names mean what they will.

    Args:
        project: the files among which it stands.
        source: the file.
        names: its names; they get ``lift`` and ``by_name``.
    """
    others = project.taken(names.path) if names.path else frozenset()
    imports = [i for i in _imports(names, _BESIDE) if i.binding.node and not ignored(source, i.binding.node, CODE)]
    of_contrib = [i for i in _imports(names, _BESIDE - {"contrib"}) if i.binding.target.startswith(_CONTRIB)]
    used = list(uses(names))
    wanted = (
        {use.name for use in used if _is_wanted(names, use)}
        | {
            i.binding.target
            for i in imports
            if is_lifted(i.binding.target)
            or i.scope is names.module
            and others & {i.local, "*"}
            and holds_lifted(i.binding.target)
        }
        | {i.binding.target for i in of_contrib}
    )
    fates = {
        became(name)
        for name in {use.name for use in used} | {i.binding.target for i in imports + of_contrib}
        if became(name) != ONLY_IN_V1 or not name.startswith(V1)
    }
    if (
        NEW not in fates
        and imports
        and had_gelu(names)
        and (
            ONLY_IN_V1 not in fates
            or any(
                use.name.startswith(V1)
                and rest_of(use.name) != "disable_v2_behavior"
                and names.spelled(use.root, use.where) == "tensorflow"
                for use in used
            )
        )
    ):
        fates.add(NEW)
    if (
        not wanted
        or not fates & {ONLY_IN_V1, OF_CONTRIB, NOWHERE}
        and (NEW in fates or _is_lifted_already(names, used) or is_eager(names, {use.name for use in used}))
    ):
        return
    moving = _moving(names, source, of_contrib, used)
    whole = bool(moving or others & {"tf", "*"})
    star = (
        _star(names)
        if any(
            use.root.id == "tf"
            and (use.name in wanted or whole and not use.name.startswith(V1))
            and all(b.where.scope is names.module for b in names.lookup("tf", use.where) or ())
            for use in used
        )
        else None
    )
    if NEW in fates:  # written for TensorFlow 1 and 2; what both have, it means
        names.by_name, star = frozenset({ONLY_IN_V1}), None
        imports = [i for i in imports if became(i.binding.target) == ONLY_IN_V1]
    elif any(i.is_bare_part for i in imports):
        names.by_name = frozenset({ONLY_IN_V1, OTHERWISE})
        imports = [i for i in imports if not i.is_bare]
    instead = None
    if star is not None:
        at_top = [i for i in imports if i.local == "tf" and i.scope is names.module]
        instead = _alone_before(names, star.node, [i.binding.where.statement for i in at_top])
        imports = [i for i in imports if i not in at_top]
    if (
        not moving
        and not any(others & {i.local, "*"} for i in imports)
        and all(_is_by_parts(names, use) for use in used if use.name in wanted)
    ):
        imports = [i for i in imports if i.binding.target != "tensorflow"]
    statements = _chosen(names, imports, wanted, [use for use in used if use.name in wanted])
    names.lift = Lift(tuple(statements), star, instead)
    _rebind(names, statements, [star.node] if star else [])
    parts = [s for s in moving if s in names.tree.body]
    if (
        parts
        and not any("tf" in scope.bindings for scope in _scopes(names))
        and not any(root.id == "tf" for root, _ in names.reads)
    ):
        names.lift = names.lift._replace(parts=min(parts, key=lambda s: s.lineno))
        _rebind(names, [], [min(parts, key=lambda s: s.lineno)])


def uses(names: Names) -> Iterator[Use]:
    """The dotted names of TensorFlow that a file uses, each as long as it is written."""
    for root, where in names.reads:
        whole: ast.expr = root
        parent = names.parents.get(whole)
        while isinstance(parent, ast.Attribute) and parent.value is whole:
            whole, parent = parent, names.parents.get(parent)
        name = names.spelled(whole, where)
        if name and name.partition(".")[0] == "tensorflow":
            yield Use(root, whole, where, name)


def whole_call(names: Names, node: ast.expr) -> ast.expr:
    """The call of an expression, or itself where it is not called."""
    parent = names.parents.get(node)
    return parent if isinstance(parent, ast.Call) and parent.func is node else node


def as_lifted(names: Names, edit: Edit, node: ast.AST) -> Edit:
    """An edit that another rule made at a node, of the names as they stand in a file, for the file as it is lifted."""
    if names.lift is None or not edit.new:
        return edit
    where = next((names.places[n] for n in (node, *names.ancestors(node)) if n in names.places), None)

    def renamed(match: re.Match[str]) -> str:
        root, rest = match.group(1), match.group(2)
        bound = (names.lookup(root, where) if where else names.module.bindings.get(root)) or []
        bound = [b for b in bound if b.node is node] or bound  # behind an import it is what that binds
        if bound and all(b.target == V1 for b in bound) and rest.startswith(".compat.v1."):
            return root + rest[len(".compat.v1") :]
        if (
            names.by_name
            and not rest.startswith(".compat.")
            and any(b.target == "tensorflow" for b in bound)
            and became("tensorflow" + rest) in names.by_name
        ):
            return root + ".compat.v1" + rest
        return match.group()

    return edit._replace(new=_DOTTED.sub(renamed, edit.new))


def is_lifted_alias(alias: ast.alias, module: str = "") -> bool:
    """Whether a name in an import statement is one that compat.v1 has, too.

    Args:
        alias: the name.
        module: of ``from module import``; of ``import`` nothing.
    """
    name = module + "." + alias.name if module else alias.name
    return (
        name.partition(".")[0] == "tensorflow"
        and rest_of(name).partition(".")[0] not in _BESIDE
        and (became(name) not in (NEW, NOWHERE) if module else is_module(name))
    )


def _is_wanted(names: Names, use: Use) -> bool:
    """Whether a use needs compat.v1: by its name, or as a module handed on to what is not known here."""
    if use.name == V1 or use.name.startswith(V1 + ".") or became(use.name) == NEW:
        return False
    if is_lifted(use.name) or became(use.name) == OF_CONTRIB:
        return True
    parent = names.parents.get(use.whole)
    aliased = isinstance(parent, ast.Assign) and all(isinstance(t, ast.Name) for t in parent.targets)
    return holds_lifted(use.name) and not aliased


def _is_lifted_already(names: Names, used: list[Use]) -> bool:
    return any(use.name.startswith(V1) for use in used) or any(
        b.kind == "import" and b.target.startswith(V1)
        for scope in _scopes(names)
        for bindings in scope.bindings.values()
        for b in bindings
    )


def _scopes(names: Names) -> list[Scope]:
    return list({id(where.scope): where.scope for where in names.places.values()}.values())


def _imports(names: Names, beside: frozenset[str]) -> Iterator[_Import]:
    """What plain imports bind to names of TensorFlow, apart from those of some parts of it."""
    for scope in _scopes(names):
        for local, bindings in scope.bindings.items():
            if any(b.kind == "import" and b.target.startswith(V1) for b in bindings):
                continue  # lifted where that can be done, plain where it cannot
            for binding in bindings:
                if (
                    binding.kind == "import"
                    and binding.target.partition(".")[0] == "tensorflow"
                    and rest_of(binding.target).partition(".")[0] not in beside
                ):
                    yield _Import(scope, local, binding)


def _star(names: Names) -> Star | None:
    """The star import of npu_init that gives ``tf``, first or last."""
    found = [
        star
        for star in names.stars
        if canonical(star.module) == "npu_shim.npu_init" and names.places[star.node].scope is names.module
    ]
    bound = names.module.bindings.get("tf", [])
    if not found or any(b.kind != "import" or b.target != "tensorflow" for b in bound):
        return None
    lines = [b.where.statement.lineno for b in bound if b.where.statement]
    return found[-1] if not lines or max(lines) < found[-1].node.lineno else None


def _alone_before(names: Names, star: ast.stmt, imports: list[ast.stmt | None]) -> ast.stmt | None:
    """The first of some imports, if it imports one thing, and only imports follow it until a star import."""
    first = imports[0] if imports else None
    block = block_of(names, first) if first is not None else []
    if (
        isinstance(first, ast.Import)
        and len(first.names) == 1
        and star in block
        and all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in block[block.index(first) : block.index(star)])
    ):
        return first
    return None


def _chosen(names: Names, imports: list[_Import], wanted: set[str], used: list[Use]) -> list[ast.stmt]:
    """The import statements that are to import from compat.v1: of what is wanted, and what is used by their names."""
    found: dict[ast.stmt, None] = {}
    for each in imports:
        target, node = each.binding.target, each.binding.node
        needed = (
            target == "tensorflow"
            or is_lifted(target)
            or target in wanted
            or any(use.root.id == each.local and use.name.startswith(target + ".") for use in used)
        )
        if needed and isinstance(node, ast.stmt) and _can_be_lifted(node):
            found[node] = None
    for star in names.stars:
        if star.module.partition(".")[0] == "tensorflow" and _can_be_lifted(star.node):
            found[star.node] = None
    return list(found)


def _can_be_lifted(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom) and node.module:
        return is_module(node.module) and all(is_lifted_alias(a, node.module) for a in node.names)
    return isinstance(node, ast.Import) and any(is_lifted_alias(a) for a in node.names)


def _is_by_parts(names: Names, use: Use) -> bool:
    """Whether the first word of a name is an import of a part of TensorFlow, and not of the whole."""
    return all(b.kind == "import" and b.target != "tensorflow" for b in names.lookup(use.root.id, use.where) or ())


def _moving(names: Names, source: Source, imports: list[_Import], used: list[Use]) -> list[ast.stmt]:
    """The imports of modules of tf.contrib of which something moves to where only ``tf`` has it."""
    moving: list[ast.stmt] = []
    for each in imports:
        node = each.binding.node
        its = [
            part_with_home(names, u.whole, u.where)
            for u in used
            if u.root.id == each.local and each.binding in (names.lookup(u.root.id, u.where) or ())
        ]
        homes = [(getattr(found[0], "attr", ""), found[2]) if found else ("", None) for found in its]
        own = home_of(contrib_name(each.binding.target))
        stays = not is_importable(own.name) if own else any(home for _, home in homes) and not shared_module(homes)
        if isinstance(node, ast.stmt) and stays and not ignored(source, node, MOVING):
            moving.append(node)
    return moving


def _rebind(names: Names, statements: list[ast.stmt], added: list[ast.stmt]) -> None:
    """Let the names that the statements bind mean what they mean once these are lifted, and ``tf`` what is imported
    behind others."""

    def after(binding: Binding) -> Binding:
        target = binding.target
        whole = target == "tensorflow" or isinstance(binding.node, ast.ImportFrom) or is_module(target)
        is_ours = (
            binding.node in chosen
            and target.partition(".")[0] == "tensorflow"
            and rest_of(target).partition(".")[0] not in _BESIDE
        )
        return binding._replace(target=lifted(target)) if is_ours and whole else binding

    chosen = set(statements)
    names.forget()
    for scope in _scopes(names):
        for local, bindings in scope.bindings.items():
            scope.bindings[local] = [after(b) for b in bindings]
    names.stars = [s._replace(module=lifted(s.module)) if s.node in chosen else s for s in names.stars]
    for statement in added:
        names.module.bindings.setdefault("tf", []).append(Binding("import", names.places[statement], statement, V1))
