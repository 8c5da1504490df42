"""Scripts that train independent copies on several ranks, and those that know their rank."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Sequence

import pytest

import npu_shim
from npu_shim.cli._independent import independence_warning

pytestmark = pytest.mark.once

FIT = "import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit(x, y)\n"
LOOP = "import tensorflow as tf\noptimizer = tf.compat.v1.train.AdamOptimizer()\nop = optimizer.minimize(loss)\n"


def warned(folder: pathlib.Path, *arguments: str, ranks: int = 8, **files: str) -> str | None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return independence_warning(arguments or [str(folder / "train.py")], ranks)


@pytest.mark.parametrize(
    "text",
    [
        FIT,
        LOOP,
        FIT.replace("import tensorflow as tf", "import npu_shim.npu_device as npu\nnpu.open().as_default()"),
        "from npu_shim.npu_init import *\nNPUEstimator(model_fn).train(input_fn)\n",
        "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n" + FIT,
        FIT + "print(tf.rank(x), 'the rank of x')  # RANK_ID\n",
    ],
)
def test_a_script_of_one_device(text: str, tmp_path: pathlib.Path) -> None:
    made = warned(tmp_path, train=text)
    assert made is not None and "8 ranks train independent copies" in made
    assert warned(tmp_path, ranks=1, train=text) is None


@pytest.mark.parametrize(
    "text",
    [
        "import horovod.tensorflow as hvd\n" + FIT,
        "from npu_shim.npu_init import *\nNPUDistributedOptimizer(optimizer).minimize(loss)\n",
        "import npu_shim.npu_device as npu\nnpu.distribute.data_parallel(model).fit(x, y)\n",
        "from npu_shim.npu_device.distribute import all_reduce\n" + LOOP,
        "import os\nfiles = files[int(os.environ['RANK_ID']) :: 8]\n" + FIT,
        "import os\ndevice = os.getenv('ASCEND_DEVICE_ID')\n" + FIT,
        "from hccl.manage.api import get_rank_id\n" + FIT,
        "from npu_shim.npu_init import *\nparts = get_npu_rank_size()\n" + FIT,
        "from mpi4py import MPI\n" + LOOP,
        "import tensorflow as tf\nprint(tf.keras.models.load_model('m').predict(x))\n",  # trains nothing
        "from sklearn.svm import SVC\nSVC().fit(x, y)\n",
        "import tensorflow as tf\ndef broken(:\n",
    ],
)
def test_a_script_that_knows_ranks_or_trains_nothing(text: str, tmp_path: pathlib.Path) -> None:
    assert warned(tmp_path, train=text) is None


def test_the_command_converts_what_the_script_is_made_of(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alone = warned(tmp_path, "train.py", train=FIT)
    assert alone is not None and alone.endswith(": convert_tf2npu -i train.py -o train_8p -d tf_strategy")
    below = warned(tmp_path, "migrated/train.py", migrated__train=FIT)
    assert below is not None and below.endswith(": convert_tf2npu -i migrated/train.py -o train_8p -d tf_strategy")
    folder = warned(tmp_path, "a/train.py", ranks=2, a__train="import data\n" + FIT, a__data="")
    assert folder is not None and folder.endswith(": convert_tf2npu -i a -o a_2p -d tf_strategy")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "__init__.py").touch()
    module = warned(tmp_path, "-m", "b.train", ranks=2, b__train=FIT)
    assert module is not None and f"-i . -o ../{tmp_path.name}_2p -d" in module


def test_a_name_in_another_file_counts(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert warned(tmp_path, train="import data\n" + FIT, data="shard = rank_id\n") is None
    library = tmp_path / "site-packages"  # of the Python that runs the ranks
    (library / "library").mkdir(parents=True)
    (library / "library" / "__init__.py").touch()
    (library / "library" / "optimizers.py").write_text("from mpi4py import MPI\n")
    monkeypatch.syspath_prepend(str(library))
    assert warned(tmp_path, train="from library.optimizers import Adam\n" + FIT) is None
    assert warned(tmp_path, train="from library import other\n" + FIT)


def launched(folder: pathlib.Path, script: str, *options: str) -> str:
    command: Sequence[str] = [sys.executable, "-m", "npu_shim", "launch", "--ranks", "2", "--log-dir", str(folder)]
    root = pathlib.Path(npu_shim.__file__).parent.parent
    library = folder / "library"
    library.mkdir(exist_ok=True)
    (library / "tensorflow.py").write_text("")  # only its name counts, and the launcher imports it
    # The launcher finds the tool by itself.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(library)])}
    done = subprocess.run([*command, *options, script], cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_the_launcher_says_it_once_before_the_ranks_start(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text("def main():\n    import tensorflow\n    model.fit(x)\n")
    shown = launched(tmp_path, "train.py")
    assert shown.startswith("npu-shim launch: warning: the 2 ranks train independent copies")
    assert shown.count("independent copies") == 1
    assert "warning" not in launched(tmp_path, "train.py", "--dry-run")


def test_a_converted_script_gets_no_warning(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    from convert_tf2npu.main import main

    for name in ("digits_estimator", "digits_session", "text_keras", "digits_fit", "digits_loop"):
        source = repo_root / "samples" / name / "original.py"
        assert "independent copies" in (independence_warning([str(source)], 2) or "")
        assert main(["-i", str(source), "-o", str(tmp_path / name), "-d", "tf_strategy"]) == 0
        assert independence_warning([str(tmp_path / name / "original.py")], 2) is None
