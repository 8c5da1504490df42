"""What all benchmarks share: the machine they name, and their places in RESULTS.md."""
from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import platform
from typing import Sequence

RESULTS = pathlib.Path(__file__).resolve().parent / 'RESULTS.md'


def machine(packages: Sequence[str] = ('numpy', 'tensorflow')) -> str:
    """What a benchmark ran on: the processor, Python, and the packages that it uses and that are here."""
    versions = ['Python ' + platform.python_version()]
    versions += ['%s %s' % ({'numpy': 'NumPy', 'tensorflow': 'TensorFlow'}.get(name, name),
                            importlib.import_module(name).__version__)
                 for name in packages if importlib.util.find_spec(name)]
    return '%s, %d processors; %s' % (platform.machine(), os.cpu_count() or 1, ', '.join(versions))


def write(name: str, text: str) -> None:
    """Put what a benchmark measured into RESULTS.md.

    Args:
        name: of the benchmark, as the markers of its place there say it.
        text: in Markdown.
    """
    begin, end = '<!-- %s: made by benchmarks/%s.py -->\n' % (name.replace('_', ' '), name), '<!-- end of %s -->\n' % (
        name.replace('_', ' '))
    before, rest = RESULTS.read_text(encoding='utf-8').split(begin)
    RESULTS.write_text(before + begin + text + end + rest.split(end)[1], encoding='utf-8')
