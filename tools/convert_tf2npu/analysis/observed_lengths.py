"""The lengths of the padded batches of a dataset in observed runs."""

from __future__ import annotations

import ast
from typing import Iterator

from ..facts.seen import Seen
from ..syntax.expressions import boxed_constant, constant_or, last_name

_MOST_BUCKETS = 8


class ObservedLengths:
    """The dimensions of batches that the type of their dataset does not show, in all observed runs.

    Args:
        seen: the notes; None if no run reached the dataset.
    """

    def __init__(self, seen: Seen | None) -> None:
        self._seen = seen or Seen()
        self._axes = [name for name in self._seen.values if name.startswith("axis:")]

    @property
    def runs(self) -> int:
        """The number of runs that reached it."""
        return self._seen.runs

    @property
    def are_fixed(self) -> bool:
        """True if each dimension always had the same size."""
        return bool(self._axes) and all(self._seen.only(axis) is not None for axis in self._axes)

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest length."""
        values = [self._seen.values[axis] for axis in self._axes]
        return int(min(v.least or 0 for v in values)), int(max(v.most or 0 for v in values))

    @property
    def buckets(self) -> tuple[int, ...]:
        """A few lengths that hold all that were seen: powers of two, and the greatest; none if nothing was seen."""
        least, most = self.range if self._axes else (0, 0)
        powers = [2**n for n in range(1, 31) if least <= 2**n < most]
        return (*powers[-_MOST_BUCKETS + 1 :], most) if most else ()

    def unknown_dimensions_with_size(self, shapes: ast.AST | None) -> Iterator[tuple[ast.expr, int]]:
        """Yield the unknown dimensions of a literal of padded shapes, each with the only size that it had.

        Nothing is yielded if the literal has others than those that were seen.
        """
        unknown = {
            f"axis:{component}.{axis + 1}": size
            for component, leaf in enumerate(_shapes_in_structure(shapes))
            for axis, size in enumerate(getattr(leaf, "elts", ()))
            if boxed_constant(size) in ((None,), (-1,))
        }
        if set(unknown) == set(self._axes):
            for name, node in unknown.items():
                size = self._seen.only(name)
                if isinstance(size, int):
                    yield node, size


def _shapes_in_structure(shapes: ast.AST | None) -> list[ast.AST]:
    """Return the shapes in a structure of them, in the order of TensorFlow; none if a part is no literal."""
    if isinstance(shapes, ast.Call) and last_name(shapes.func) == "TensorShape" and len(shapes.args) == 1:
        return _shapes_in_structure(shapes.args[0])
    if isinstance(shapes, ast.Dict):
        keys = [constant_or(key, None) for key in shapes.keys]
        if not all(isinstance(key, str) for key in keys):
            return []
        parts = [value for _, value in sorted(zip(map(str, keys), shapes.values), key=lambda pair: pair[0])]
    elif isinstance(shapes, ast.Tuple) and any(not _is_size(part) for part in shapes.elts):
        parts = shapes.elts
    else:
        return [shapes] if isinstance(shapes, (ast.List, ast.Tuple)) and all(map(_is_size, shapes.elts)) else []
    leaves = [_shapes_in_structure(part) for part in parts]
    return [leaf for part in leaves for leaf in part] if all(leaves) else []


def _is_size(node: ast.expr) -> bool:
    return not isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Call, ast.Starred))
