"""Make convert_tf2npu/tf_api/keras_names.py: the names that a star import of each module of Keras brings.

Each version of TensorFlow dumps its names with tools/make_names_after_26.py. The names of all versions are joined::

    for version in 115 26 215 221; do PYTHON$version tools/make_names_after_26.py dump > $version.json; done
    python tools/make_keras_names.py 115.json 26.json 215.json 221.json > tools/convert_tf2npu/tf_api/keras_names.py
"""

from __future__ import annotations

import json
import sys
import textwrap
from typing import Iterator

# The modules from which scripts import everything.
MODULES = """activations applications backend callbacks constraints datasets initializers layers losses metrics models
optimizers preprocessing preprocessing.image preprocessing.sequence preprocessing.text regularizers utils""".split()


def lines(names: set[str], versions: list[str]) -> Iterator[str]:
    """Yield the lines of the module."""
    yield f'"""The public names of modules of tf.keras in TensorFlow {", ".join(versions)}.'
    yield ""
    yield "Made by tools/make_keras_names.py; do not edit."
    yield '"""'
    yield "from __future__ import annotations"
    yield ""
    yield "from typing import Dict, FrozenSet"
    yield ""
    yield "NAMES: Dict[str, FrozenSet[str]] = {"
    for module in ["", *MODULES]:
        prefix = f"keras.{module}." if module else "keras."
        own = sorted(
            name[len(prefix) :] for name in names if name.startswith(prefix) and "." not in name[len(prefix) :]
        )
        yield f"    {module!r}: frozenset('''"
        yield from textwrap.wrap(" ".join(own), 118)
        yield "'''.split()),"
    yield "}"


def main() -> int:
    if not sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    names: set[str] = set()
    versions = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as stream:
            dump = json.load(stream)
        names.update(dump["names"])
        versions.append(dump["version"])
    print("\n".join(lines(names, versions)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
