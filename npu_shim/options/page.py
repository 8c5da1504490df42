"""The options as a page of documentation, made from the rows."""
from __future__ import annotations

from typing import List

from npu_shim.options.option import REQUIRED, Option
from npu_shim.options.table import KEYS

_WORDS = {"b": "bool", "i": "int", "s": "str"}


def markdown() -> str:
    """One table of all options: what each is, where it is given, and what it means on the CPU."""
    lines = [
        "# NPU options",
        "",
        "Give them to `npu_shim.session_config(config, name=value)` by name, or to `NPURunConfig` and its config classes",
        "by the argument. On the CPU each is checked and carried along; `effect` says what kind it has",
        "on a card.",
        "",
        "| option | type | allowed | default in a session | argument | effect | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join(lines + [_line(KEYS[name]) for name in sorted(KEYS, key=str.lower)]) + "\n"


def _line(row: Option) -> str:
    where = "" if row.arg is None else f"`{row.holder or 'NPURunConfig'}({row.arg}={_default(row)})`"
    told = row.doc + (f" **Deprecated.** {row.deprecated}" if row.deprecated else "")
    cells: List[str] = [f"`{row.name}`", _WORDS[row.field or ""], row.allowed.text,
                        "" if row.session is None else f"`{row.session!r}`", where, row.cpu.replace("_", " "), told]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(row: Option) -> str:
    return "required" if row.estimator is REQUIRED else repr(row.estimator)
