"""Generate the modules at the vendor's paths from the table.

They are files, because zip archives and editors read files: each module asks the table for its names, and has a stub
(``.pyi``) with them for editors and type checkers::

    python docs/make_vendor_paths.py          # writes the files
    python docs/make_vendor_paths.py --check  # exits with 1 if a file is not current

Those of the vendor's packages that are rooms of npu_shim too lie in the room; all others lie in ``modules``.
A wheel has all of them at their paths.
"""

from __future__ import annotations

import os
import sys
import textwrap
from typing import Mapping, Sequence

_PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _PROJECT)

from npu_shim._vendor_paths.table import NPU_ONLY, ON_IMPORT, TABLE, names_of_row  # noqa: E402

_ROOMS = ("estimator", "npu_device")
_ROOT = os.path.join(_PROJECT, "npu_shim")
_MODULES = os.path.join(_ROOT, "_vendor_paths", "modules")
_WIDTH = 120
_LAZY = """from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

__getattr__, __dir__ = _vendor_names(__name__)
"""


def render_module_files(module: str) -> dict[str, str]:
    """Return the files of a module in the table: their paths and texts."""
    path = module_path(module)
    home = module if module.startswith("npu_device.") else f"npu_bridge.{module}"
    title = f'"""The vendor\'s {home}. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""\n'
    homes = {f"npu_shim.{source}": names_of_row(source, names) for source, names in TABLE[module].items()}
    if not homes:
        return {path: title}
    names = "\n".join([title, *_import_lines(homes), "", *_all_lines(homes), ""])
    if module in ON_IMPORT:
        return {path: f"{names}\n{ON_IMPORT[module]}\n"}
    return {path: f"{title}\n{_LAZY}", f"{path}i": names}


def _format_bracket(begin: str, items: Sequence[str], end: str) -> list[str]:
    """Return the items between two brackets, in one line or as many as they need; a longer item is not broken."""
    whole = begin + ", ".join(items) + end
    if len(whole) <= _WIDTH:
        return [whole]
    words = ", ".join(item.replace(" ", "\0") for item in items) + ","
    indent = "    "
    wrapped = textwrap.wrap(
        words, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [begin, *(line.replace("\0", " ") for line in wrapped), end]


def _import_lines(homes: Mapping[str, list[str]]) -> list[str]:
    lines = []
    for home in sorted(homes):
        module, names = home, sorted(homes[home])
        if home.startswith(f"npu_shim.{NPU_ONLY}"):
            module, names = "npu_shim._host.lazy_names", [f"missing as {name}" for name in names]
        line = f"from {module} import {', '.join(names)}"
        lines += [line] if len(line) <= _WIDTH else _format_bracket(f"from {module} import (", names, ")")
    return lines


def _all_lines(homes: Mapping[str, list[str]]) -> list[str]:
    return _format_bracket("__all__ = [", [f'"{name}"' for name in sorted(sum(homes.values(), []))], "]")


def module_path(module: str) -> str:
    """Return the path of a module. It is a package if the table has modules below it, or to be installed on its own."""
    parts = module.split(".")
    in_room = parts[0] in _ROOMS
    if _is_package(module) or not (in_room or "." in module):
        parts.append("__init__")
    return os.path.join(_ROOT if in_room else _MODULES, *parts) + ".py"


def _is_package(module: str) -> bool:
    return any(other.startswith(module + ".") for other in TABLE)


def stale_paths() -> list[str]:
    """Return the paths of files that differ from the table."""
    return [path for path, text in _rendered_files().items() if _read_text_or_none(path) != text]


def _rendered_files() -> dict[str, str]:
    return {path: text for module in TABLE for path, text in render_module_files(module).items()}


def _read_text_or_none(path: str) -> str | None:
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def main(arguments: Sequence[str]) -> int:
    """Write the files. With --check, report those that are not current."""
    paths = stale_paths()
    if "--check" in arguments:
        for path in paths:
            print(f"not current: {path}. Run python docs/make_vendor_paths.py.", file=sys.stderr)
        return 1 if paths else 0
    for path, text in _rendered_files().items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
