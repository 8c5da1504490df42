"""Names that exist, import and show their signature, but whose work is not in this release.

They raise one clear error when they are *called*: never on import, so that a
script which only imports them runs.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable


class NotInThisRelease(NotImplementedError):
    """A name of the vendor's interface was used that npu_shim cannot do yet."""


def later(name: str, signature: str, instead: str, what: str = "") -> Callable[..., Any]:
    """Makes a function of the vendor's name and signature which says that it is missing.

    Args:
        name: the public name, as the user writes it (``npu_ops.LARSV2``).
        signature: its parameters as source, e.g. ``"(x, name=None)"``.
        instead: what to write instead, as a sentence.
        what: one line on what it does on a card, for the docstring.
    Returns:
        A function; calling it raises NotInThisRelease (a NotImplementedError).
    """

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotInThisRelease(f"{name} is not part of this release of npu_shim. {instead}")

    missing.__name__ = missing.__qualname__ = name.rpartition(".")[2]
    missing.__doc__ = f"{what or name}\n\nNot part of this release: calling it raises NotInThisRelease. {instead}"
    missing.__signature__ = _parse(signature)  # type: ignore[attr-defined]
    return missing


def _parse(signature: str) -> inspect.Signature:
    scope: dict = {}
    exec(f"def f{signature}: pass", scope)  # signatures are literals of this package
    return inspect.signature(scope["f"])
