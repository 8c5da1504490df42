"""The decision to lift a file of TensorFlow 1 to tf.compat.v1, made once after the file is parsed.

The decision changes the names of the file at once. So all rules, and other files that import from it, see the names
after lifting: if ``import tensorflow as tf`` becomes ``import tensorflow.compat.v1 as tf``, ``tf`` is
``tensorflow.compat.v1``.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from ...rewrite.removal import block_of
from ...semantics.model import Lift, Star
from ...semantics.module_index import ModuleIndex, Names
from ...semantics.version_evidence import is_written_for_tf2, may_have_used_gelu
from ...syntax.source import Source
from ...syntax.suppressions import is_suppressed_at
from ...tf_api.canonical_names import canonical_name
from ...tf_api.v1_fate import (
    NEW,
    NOWHERE,
    OF_CONTRIB,
    ONLY_IN_V1,
    OTHERWISE,
    V1,
    contains_compat_v1_names,
    fate_of_v1_name,
    is_compat_v1_module,
    needs_compat_v1,
)
from .contrib.replacements import (
    canonical_contrib_name,
    is_importable,
    part_with_replacement,
    replacement_of,
    shared_module_of_replacements,
)
from .lift_bindings import rebind_lifted_names
from .tensorflow_uses import (
    NOT_IN_V1,
    Import,
    Use,
    is_liftable_alias,
    scopes_with_statements,
    tensorflow_imports,
    tensorflow_uses,
)

CODE, MOVING = "NPU100", "NPU119"
_CONTRIB = "tensorflow.contrib"


class _Evidence(NamedTuple):
    """The TensorFlow of a file.

    Attributes:
        names: name resolution in it.
        others: the names that other files import from it; ``*`` for all.
        imports: its imports of TensorFlow, without those of tf.contrib.
        of_contrib: its imports of tf.contrib.
        used: the names of TensorFlow in it.
        wanted: the names that need tf.compat.v1.
    """

    names: Names
    others: frozenset[str]
    imports: list[Import]
    of_contrib: list[Import]
    used: list[Use]
    wanted: set[str]


def plan_lift_and_rebind_names(project: ModuleIndex, source: Source, names: Names) -> None:
    """Decide how to lift a file, and change its names to those after lifting.

    Args:
        project: the index of the project.
        source: the file.
        names: name resolution in it; sets its ``lift`` and ``by_name``.
    """
    evidence = _lifting_evidence(project, source, names)
    fates = _fates_of_used_names(evidence)
    if not _needs_lifting(evidence, fates):
        return
    moving = _imports_of_moving_contrib(source, evidence)
    names.by_name, kept = _fates_lifted_in_place_and_imports(evidence, fates)
    star = _star_whose_tf_is_lifted(evidence, bool(moving)) if NEW not in fates else None
    instead = None
    if star is not None:
        at_top = [i for i in kept if i.local == "tf" and i.scope is names.module]
        instead = _import_alone_before_star(names, star.node, [i.binding.where.statement for i in at_top])
        kept = [i for i in kept if i not in at_top]
    if not moving and _needs_only_parts(evidence, kept):
        kept = [i for i in kept if i.binding.target != "tensorflow"]
    statements = _statements_to_lift(evidence, kept)
    names.lift = Lift(tuple(statements), star, instead)
    rebind_lifted_names(names, statements, [star.node] if star else [])
    parts = _first_import_of_moving_parts(names, moving)
    if parts is not None:
        names.lift = names.lift._replace(parts=parts)
        rebind_lifted_names(names, [], [parts])


def _lifting_evidence(project: ModuleIndex, source: Source, names: Names) -> _Evidence:
    others = project.names_imported_from(names.path) if names.path else frozenset()
    plain = [
        i
        for i in tensorflow_imports(names, NOT_IN_V1)
        if i.binding.node and not is_suppressed_at(source, i.binding.node, CODE)
    ]
    of_contrib = [
        i for i in tensorflow_imports(names, NOT_IN_V1 - {"contrib"}) if i.binding.target.startswith(_CONTRIB)
    ]
    used = list(tensorflow_uses(names))
    wanted = {use.name for use in used if _use_needs_compat_v1(names, use)} | {i.binding.target for i in of_contrib}
    for imported in plain:
        is_taken = imported.scope is names.module and bool(others & {imported.local, "*"})
        if needs_compat_v1(imported.binding.target) or is_taken and contains_compat_v1_names(imported.binding.target):
            wanted.add(imported.binding.target)
    return _Evidence(names, others, plain, of_contrib, used, wanted)


def _fates_of_used_names(evidence: _Evidence) -> set[str]:
    """Return the fates in TensorFlow 2 of the names that a file uses."""
    targets = {i.binding.target for i in evidence.imports + evidence.of_contrib}
    fates = {
        fate_of_v1_name(name)
        for name in {use.name for use in evidence.used} | targets
        if fate_of_v1_name(name) != ONLY_IN_V1 or not name.startswith(V1)
    }
    if NEW not in fates and evidence.imports and may_have_used_gelu(evidence.names):
        if ONLY_IN_V1 not in fates or any(_is_explicit(evidence.names, use) for use in evidence.used):
            fates.add(NEW)
    return fates


def _is_explicit(names: Names, use: Use) -> bool:
    """Return True if a use reaches tf.compat.v1 from the plain TensorFlow."""
    return use.name.startswith(V1) and names.spelled_name(use.root, use.where) == "tensorflow"


def _needs_lifting(evidence: _Evidence, fates: set[str]) -> bool:
    """Return True if a file is written for TensorFlow 1 and does not run as it is on TensorFlow 2."""
    if not evidence.wanted:
        return False
    if fates & {ONLY_IN_V1, OF_CONTRIB, NOWHERE}:
        return True
    names, used = evidence.names, evidence.used
    return not (
        NEW in fates or _is_lifted_already(names, used) or is_written_for_tf2(names, {use.name for use in used})
    )


def _use_needs_compat_v1(names: Names, use: Use) -> bool:
    """Return True if a use needs tf.compat.v1: by its name, or as a module that is passed to unknown code."""
    if use.name == V1 or use.name.startswith(V1 + ".") or fate_of_v1_name(use.name) == NEW:
        return False
    if needs_compat_v1(use.name) or fate_of_v1_name(use.name) == OF_CONTRIB:
        return True
    parent = names.parents.get(use.whole)
    aliased = isinstance(parent, ast.Assign) and all(isinstance(t, ast.Name) for t in parent.targets)
    return contains_compat_v1_names(use.name) and not aliased


def _is_lifted_already(names: Names, uses: list[Use]) -> bool:
    return any(use.name.startswith(V1) for use in uses) or any(
        b.kind == "import" and b.target.startswith(V1)
        for scope in scopes_with_statements(names)
        for bindings in scope.bindings.values()
        for b in bindings
    )


def _fates_lifted_in_place_and_imports(evidence: _Evidence, fates: set[str]) -> tuple[frozenset[str], list[Import]]:
    """Return the fates of the names that are lifted where they stand, and the imports that may be lifted."""
    if NEW in fates:  # written for both versions: names that both have stay as they are
        return frozenset({ONLY_IN_V1}), [i for i in evidence.imports if fate_of_v1_name(i.binding.target) == ONLY_IN_V1]
    if any(i.is_bare_part for i in evidence.imports):
        return frozenset({ONLY_IN_V1, OTHERWISE}), [i for i in evidence.imports if not i.is_bare]
    return frozenset(), evidence.imports


def _star_whose_tf_is_lifted(evidence: _Evidence, moves_contrib: bool) -> Star | None:
    """Return the star import of npu_init that binds a ``tf`` which has to be lifted."""
    names = evidence.names
    whole = moves_contrib or bool(evidence.others & {"tf", "*"})
    needs_tf = any(
        use.root.id == "tf"
        and (use.name in evidence.wanted or whole and not use.name.startswith(V1))
        and all(b.where.scope is names.module for b in names.bindings_of_name("tf", use.where) or ())
        for use in evidence.used
    )
    return _star_binding_tf(names) if needs_tf else None


def _star_binding_tf(names: Names) -> Star | None:
    """Return the star import of npu_init that binds ``tf``, alone or last."""
    stars = [
        star
        for star in names.stars
        if canonical_name(star.module) == "npu_shim.npu_init" and names.places[star.node].scope is names.module
    ]
    bound = names.module.bindings.get("tf", [])
    if not stars or any(b.kind != "import" or b.target != "tensorflow" for b in bound):
        return None
    lines = [b.where.statement.lineno for b in bound if b.where.statement]
    return stars[-1] if not lines or max(lines) < stars[-1].node.lineno else None


def _import_alone_before_star(names: Names, star: ast.stmt, imported: list[ast.stmt | None]) -> ast.stmt | None:
    """Return the first of some imports if it imports one thing and only imports follow it up to a star import."""
    first = imported[0] if imported else None
    block = block_of(names, first) if first is not None else []
    if (
        isinstance(first, ast.Import)
        and len(first.names) == 1
        and star in block
        and all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in block[block.index(first) : block.index(star)])
    ):
        return first
    return None


def _needs_only_parts(evidence: _Evidence, kept_imports: list[Import]) -> bool:
    """Return True if only imports of parts of TensorFlow have to be lifted, and not the import of the whole."""
    names = evidence.names
    return not any(evidence.others & {i.local, "*"} for i in kept_imports) and all(
        b.kind == "import" and b.target != "tensorflow"
        for use in evidence.used
        if use.name in evidence.wanted
        for b in names.bindings_of_name(use.root.id, use.where) or ()
    )


def _statements_to_lift(evidence: _Evidence, kept_imports: list[Import]) -> list[ast.stmt]:
    """Return the import statements that import from tf.compat.v1 after lifting."""
    used = [use for use in evidence.used if use.name in evidence.wanted]
    statements: dict[ast.stmt, None] = {}
    for imported in kept_imports:
        target, node = imported.binding.target, imported.binding.node
        needed = (
            target == "tensorflow"
            or needs_compat_v1(target)
            or target in evidence.wanted
            or any(use.root.id == imported.local and use.name.startswith(target + ".") for use in used)
        )
        if needed and isinstance(node, ast.stmt) and _can_be_lifted(node):
            statements[node] = None
    for star in evidence.names.stars:
        if star.module.partition(".")[0] == "tensorflow" and _can_be_lifted(star.node):
            statements[star.node] = None
    return list(statements)


def _can_be_lifted(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom) and node.module:
        return is_compat_v1_module(node.module) and all(is_liftable_alias(a, node.module) for a in node.names)
    return isinstance(node, ast.Import) and any(is_liftable_alias(a) for a in node.names)


def _imports_of_moving_contrib(source: Source, evidence: _Evidence) -> list[ast.stmt]:
    """Return the imports of modules of tf.contrib that have a name which moves to a place that only ``tf`` reaches."""
    names = evidence.names
    moving: list[ast.stmt] = []
    for imported in evidence.of_contrib:
        node = imported.binding.node
        its = [
            part_with_replacement(names, u.whole, u.where)
            for u in evidence.used
            if u.root.id == imported.local and imported.binding in (names.bindings_of_name(u.root.id, u.where) or ())
        ]
        replacements = [(getattr(part[0], "attr", ""), part[2]) if part else ("", None) for part in its]
        own = replacement_of(canonical_contrib_name(imported.binding.target))
        stays = (
            not is_importable(own.name)
            if own
            else any(replacement for _, replacement in replacements) and not shared_module_of_replacements(replacements)
        )
        if isinstance(node, ast.stmt) and stays and not is_suppressed_at(source, node, MOVING):
            moving.append(node)
    return moving


def _first_import_of_moving_parts(names: Names, moving: list[ast.stmt]) -> ast.stmt | None:
    """Return the first import whose parts move to ``tf``, if nothing binds or reads the name ``tf``."""
    parts = [s for s in moving if s in names.tree.body]
    if (
        not parts
        or any("tf" in scope.bindings for scope in scopes_with_statements(names))
        or any(root.id == "tf" for root, _ in names.reads)
    ):
        return None
    return min(parts, key=lambda s: s.lineno)
