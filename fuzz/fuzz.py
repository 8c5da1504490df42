#!/usr/bin/env python3
"""Coverage-guided fuzzing of the migration tool with atheris (``pip install atheris``; Python 3.11 or later).

    python fuzz/fuzz.py TARGET [SECONDS]     TARGET: script, notebook, project, cell, table or places

It begins with the files of ``corpus/TARGET`` and the examples of all rules. What it finds is written to the
current folder as ``crash-...``; once mended, the file goes to ``corpus/TARGET``, which every test run replays.
"""

from __future__ import annotations

import pathlib
import random
import shutil
import sys
import tempfile

import atheris

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "tools")]
_MOST_BYTES = 4096

with atheris.instrument_imports(include=["convert_tf2npu"]):  # of the tool alone, not of what checks it
    import seeds
    import targets
from mutations import mutate  # noqa: E402


def _mutated(raw: bytes, most_bytes: int, seed: int) -> bytes:
    chance = random.Random(seed)
    if chance.random() < 0.25:
        return atheris.Mutate(raw, most_bytes)
    return mutate(raw.decode("utf-8", "surrogateescape"), chance).encode("utf-8", "surrogateescape")[:most_bytes]


def main() -> None:
    """Fuzz one target for some seconds, sixty by default."""
    if len(sys.argv) < 2 or sys.argv[1] not in targets.TARGETS:
        sys.exit("fuzz.py: give a target: {}".format(", ".join(targets.TARGETS)))
    name, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60"
    folder = tempfile.mkdtemp(prefix="fuzz_corpus_")
    try:
        for number, raw in enumerate(seeds.seeds(name)):
            (pathlib.Path(folder) / (f"{number:04d}")).write_bytes(raw)
        atheris.Setup(
            [
                sys.argv[0],
                folder,
                f"-max_total_time={seconds}",
                f"-max_len={_MOST_BYTES}",
                "-timeout=20",
                "-print_final_stats=1",
            ]
            + sys.argv[3:],
            targets.TARGETS[name],
            custom_mutator=_mutated,
        )
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
