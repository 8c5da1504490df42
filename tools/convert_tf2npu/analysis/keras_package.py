"""Find the imports of Keras as a package of its own, instead of ``tf.keras``."""

from __future__ import annotations

import ast

from ..semantics.model import Binding
from ..semantics.module_index import Names
from ..tf_api.canonical_names import is_standalone_keras


def imports_keras(names: Names) -> bool:
    """Return True if a file imports the package keras or a name of it."""
    return bool(keras_imports(names)) or any(is_standalone_keras(star.module) for star in names.stars)


def keras_imports(names: Names) -> list[Binding]:
    """Return the imports of the package, those left out that a script tries with ``tf.keras`` first or second."""
    scopes = [names.module] + [function.scope for function in names.functions]
    package_imports: list[Binding] = []
    for scope in scopes:
        for bindings in scope.bindings.values():
            imports = [b for b in bindings if b.kind == "import" and b.node is not None]
            has_both = any(b.target.startswith("tensorflow.") for b in imports)
            package_imports += [
                b for b in imports if _is_import_of_keras(names, b) and not (has_both and _is_in_try_or_if(names, b))
            ]
    return package_imports


def _is_in_try_or_if(names: Names, binding: Binding) -> bool:
    return any(isinstance(parent, (ast.Try, ast.If)) for parent in names.ancestors(binding.node))  # type: ignore[arg-type]


def _is_import_of_keras(names: Names, binding: Binding) -> bool:
    target = names.project.resolve_import(binding.target, names.path)
    return target is not None and not target.path and is_standalone_keras(target.dotted)
