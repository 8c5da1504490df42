"""Delete graphs that the NPU dumped more than once: python -m npu_shim.npu_device.utils.file_deduplication -d DIR."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from typing import Iterable

PATTERN_0 = r"^ge.*\.txt$"
PATTERN_1 = r"^ge.*\.pbtxt$"


def get_file_hash(filename: str) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with open(filename, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def remove_duplicate_files(files_to_remove: Iterable[str]) -> None:
    """Delete each file with the bytes of an earlier one, and print its path."""
    first: dict[str, str] = {}
    for path in files_to_remove:
        if first.setdefault(get_file_hash(path), path) != path:
            print(f"delete {path}: the same bytes as {first[get_file_hash(path)]}")
            os.remove(path)


def is_dump_graph(filename: str) -> bool:
    """Return True for the name of a dumped graph: ge*.txt or ge*.pbtxt."""
    return bool(re.match(PATTERN_0, filename) or re.match(PATTERN_1, filename))


def main() -> None:
    """Delete the duplicates below the folder of the option --dir."""
    parser = argparse.ArgumentParser(description="Delete graphs that the NPU dumped more than once.")
    parser.add_argument("-d", "--dir", required=True, help="folder with the dumped graphs; its subfolders are included")
    folder = parser.parse_args().dir
    paths = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if is_dump_graph(name)]
    remove_duplicate_files(sorted(paths))


if __name__ == "__main__":
    main()
