"""Horovod scripts of TensorFlow 2, converted by the tool with no change by hand: ranks train as one process."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.main import main

from tests.distributed.test_training import SCRIPTS, forked

if tf.__version__ >= "2":

    @pytest.mark.smoke
    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_keras_fit_with_horovod(optimizer: str, tmp_path: pathlib.Path) -> None:
        out = tmp_path / "out"
        assert main(["-i", str(SCRIPTS / "horovod_fit.py"), "-o", str(out), "-d", "horovod", "--no-cache"]) == 0
        text = (out / "horovod_fit.py").read_text()
        assert "npu.open().as_default()" in text and "import npu_shim.horovod.tensorflow.keras as hvd" in text
        for ranks in (1, 2):
            forked(ranks, str(out / "horovod_fit.py"), str(tmp_path / f"{ranks}.npz"), optimizer, folder=tmp_path)
        with np.load(tmp_path / "1.npz") as one, np.load(tmp_path / "2.npz") as two:
            assert len(one.files) == 4
            for name in one.files:
                np.testing.assert_allclose(two[name], one[name], rtol=1e-5, atol=1e-5)
