"""Names of the vendor's interface that exist on the NPU only: their one list, for errors, tests and docs.

Each can be imported. A call raises OnlyOnNPU: what it does, why there is no form for the CPU, what to do.
"""

from __future__ import annotations

import inspect
import json
import pkgutil
from typing import Any, Callable, Mapping, NamedTuple, NoReturn

ONLY_ON_NPU = "exists on the NPU only"


class OnlyOnNPU(NotImplementedError):
    """Raised when a script calls a name of the vendor's interface that has no form for the CPU."""


class Row(NamedTuple):
    """One name: what it does, why there is no form for the CPU, and what to do."""

    what: str
    reason: str
    instead: str


TABLE: Mapping[str, Mapping[str, Any]] = json.loads(pkgutil.get_data(__name__, "operators.json") or b"")
# operator -> its row; npu_ops and npu_cpu_ops have functions of the same names for some
ROWS = {
    name: Row(what, reason, instead)
    for reason, by_instead in TABLE["npu_only"].items()
    for instead, names in by_instead.items()
    for name, what in names.items()
}
# Functions of the vendor's modules and their parameters
SIGNATURES: Mapping[str, Mapping[str, str]] = TABLE["npu_only_signatures"]
NOT_OPERATORS = ("channel_get_next",)


def npu_only_text(owner: str, name: str) -> str:
    """Return the text of the error of a name, which scripts call as owner.name."""
    row = ROWS[name]
    return f"{owner}.{name} {ONLY_ON_NPU}: it {row.what}. {row.reason}. {row.instead}."


def npu_only_function(module: str, name: str) -> Callable[..., NoReturn]:
    """Return a function of a module of SIGNATURES that raises OnlyOnNPU."""
    return make_raising_function(module, name, SIGNATURES[module][name])


def make_raising_function(owner: str, name: str, signature: str = "(*args, **kwargs)") -> Callable[..., NoReturn]:
    """Return a function that raises OnlyOnNPU when it is called, so that a script which only imports the name runs.

    Args:
        owner: how scripts call the module, for messages.
        name: a name of ROWS.
        signature: its parameters as source, for example ``"(x, name=None)"``.
    """

    def only_on_npu(*args: object, **kwargs: object) -> NoReturn:
        raise OnlyOnNPU(npu_only_text(owner, name))

    only_on_npu.__doc__ = npu_only_text(owner, name)
    only_on_npu.__signature__ = _parse_signature(signature)  # type: ignore[attr-defined]
    return only_on_npu


def npu_only_markdown() -> str:
    """Return the list as a table for the docs."""
    lines = ["| name | what it does | why it has no form for the CPU | instead |", "| --- | --- | --- | --- |"]
    for name, row in sorted(ROWS.items()):
        where = [module for module, names in SIGNATURES.items() if name in names]
        where += [] if name in NOT_OPERATORS else ["npu.gen_npu_ops"]
        lines.append(f"| `{name}` ({', '.join(where)}) | {row.what} | {row.reason} | {row.instead} |")
    return "\n".join(lines) + "\n"


def _parse_signature(signature: str) -> inspect.Signature:
    import inspect

    scope: dict[str, Callable[..., object]] = {}
    exec(f"def f{signature}: pass", scope)  # signatures are literals of this package
    return inspect.signature(scope["f"])
