"""The results of scripts/data_parallel.py."""

from __future__ import annotations

import json
import pathlib

import numpy as np


def check_training(folder: pathlib.Path, ways: list[str]) -> None:
    """Check that four ranks have the losses and weights of one process, and the same ones."""
    one, *four = [
        json.loads((folder / f"rank_{rank}_of_{size}.json").read_text())
        for rank, size in [(0, 1), (0, 4), (1, 4), (2, 4), (3, 4)]
    ]
    for way in ways:
        for rank in four:
            assert rank[way] == four[0][way]
            np.testing.assert_allclose(rank[way]["losses"], one[way]["losses"], rtol=2e-5)
            for name, value in one[way]["values"].items():
                np.testing.assert_allclose(rank[way]["values"][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
