"""Migrate scripts to the NPU: the command convert_tf2npu by another name."""

from __future__ import annotations

from npu_shim.cli import MIGRATE
from npu_shim.import_hook import tool

GROUP = MIGRATE
EXAMPLE = "npu-shim convert -i src -o migrated"


def main(arguments: list[str]) -> int:
    """Run the migration tool.

    Args:
        arguments: those of convert_tf2npu.
    Returns:
        The exit code of convert_tf2npu.
    """
    tool.make_importable()
    from convert_tf2npu.api import main as convert

    return convert(arguments)
