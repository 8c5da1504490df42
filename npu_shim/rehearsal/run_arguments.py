"""The arguments of a script in a run of its own: ``{run}`` is a folder of the run, ``{seed}`` its seed."""

from __future__ import annotations

from typing import Sequence

FIRST_SEED = 1  # unless the command line has another one


def arguments_of_run(arguments: Sequence[str], folder: str, seed: int = FIRST_SEED) -> list[str]:
    """Return the arguments with the folder of a run and its seed."""
    return [argument.replace("{run}", folder).replace("{seed}", str(seed)) for argument in arguments]
