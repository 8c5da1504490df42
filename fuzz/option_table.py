"""The combinations of the options that decide what the rules do, for tests over much code."""

from __future__ import annotations

import functools
import itertools
import zlib

from convert_tf2npu.cli.arguments import make_parser, rule_settings
from convert_tf2npu.cli.config import Config
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings

_COLUMNS = (
    ("", "-d auto", "-d horovod", "-d tf_strategy"),
    ("", "--compat-v1"),
    ("", "--tf 1", "--tf 2"),
)
ROWS: tuple[str, ...] = tuple(" ".join(filter(None, row)) for row in itertools.product(*_COLUMNS))
_BESIDE_DEFAULT = 2


def some_rows(raw: bytes) -> tuple[str, ...]:
    """Return the default and a few other rows, the same for the same bytes: many inputs have all."""
    first = zlib.crc32(raw) % (len(ROWS) - 1)
    others = (ROWS[1 + (first + step * 7) % (len(ROWS) - 1)] for step in range(_BESIDE_DEFAULT))
    return ("", *others)


@functools.lru_cache(maxsize=None)
def settings(row: str) -> Settings:
    """Return the settings of a row."""
    return rule_settings(make_parser().parse_args(["-i", "a.py", *row.split()]), Config())


@functools.lru_cache(maxsize=None)
def converter(row: str) -> Converter:
    """Return a converter with the options of a row."""
    return Converter(settings(row))
