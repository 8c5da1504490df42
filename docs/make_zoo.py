"""Verify models with convolutions that TensorFlow's CPU kernels refuse: of the vendor's collection, and a 3-D U-Net.

``python docs/make_zoo.py`` takes the models that run with the TensorFlow of this Python. ``npu-shim verify`` compares
each with its conversion; the alias serves `npu_bridge` and `npu_device` to both. The results are in zoo.tsv, and in a
table of public-models.md. ``NAME ...`` takes only these, and ``--table`` only makes the table. ``--sources`` and
``--keep`` are those of make_acceptance.py. The 3-D U-Net needs the packages nibabel 4.0.2, opencv-python-headless
4.6, tabulate, tensorpack 0.9.0.1 and tqdm.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sys
import tempfile
import time
from typing import NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from acceptance import Script  # noqa: E402
from make_acceptance import SOURCES, project, verdict, verify  # noqa: E402
from make_paths import put  # noqa: E402
from public_paths import Edit  # noqa: E402

RESULTS, PAGE = os.path.join(HERE, "zoo.tsv"), os.path.join(HERE, "public-models.md")
_BEGIN, _END = "<!-- made by docs/make_zoo.py -->\n", "<!-- end of the collection -->\n"
_COLUMNS = ("model", "convolutions", "TensorFlow", "steps", "names compared", "seconds", "original and conversion")
_TCN = "--batch_size=16 --epochs=1 --train_data_n=64 --validation_data_n=32 --seq_length=40 --tensorboard_path=tb"


class Result(NamedTuple):
    """The result of a model.

    Attributes:
        model, tensorflow: name and version, which together name the entry.
        steps, names: that were compared.
        seconds: of verify.
        verdict: of verify, with the reason if the two do not agree.
    """

    model: str
    tensorflow: str
    steps: int
    names: int
    seconds: int
    verdict: str


def _model(version: str, kind: str, folder: str, script: str, arguments: str, *edits: tuple[str, str, str]) -> Script:
    made = [Edit(*each) for each in edits]
    return Script("Ascend/ModelZoo-TensorFlow", "a2c3332", kind, version, folder, script, "", arguments, edits=made)


def _tcn(version: str, *edits: tuple[str, str, str]) -> Script:
    folder = "TensorFlow/contrib/cv/Keras-TCN_ID2665_for_TensorFlow"
    return _model(version, "dilated Conv1D", folder, "train.py", _TCN, *edits)


_AS_V1 = r"(?m)^import tensorflow as tf$", "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()"
MODELS: Sequence[Script] = (
    _tcn("1.15"),
    _tcn("2.15", ("train.py", *_AS_V1), ("tcn.py", *_AS_V1), ("train.py", r"\n    tcn_full_summary\(model\)", "")),
    _model(
        "1.15",
        "NCHW",
        "TensorFlow/contrib/cv/Deep-SLR_ID2122_for_TensorFlow",
        "trn_HDSLR_parallel_mri.py",
        "-d data -o out -s 2 --num 0",
        ("trn_HDSLR_parallel_mri.py", "256, 232", "32, 32"),
        ("trn_HDSLR_parallel_mri.py", r"from tqdm import tqdm|import auxiliaryFunctions as sf", "tqdm = iter"),
        ("trn_HDSLR_parallel_mri.py", r"from tst_HDSLR_parallel_mri import test", "test = print"),
        ("trn_HDSLR_parallel_mri.py", r"import scipy as sp", "import scipy as sp, scipy.io"),
        (
            "trn_HDSLR_parallel_mri.py",
            r"sf\.getData\(data_path, nImg=nImg\)",
            "[np.random.RandomState(seed).rand(4, size, 32, 32, 1).astype(kind) "
            "for seed, size, kind in ((0, 24, 'f'), (1, 24, 'f'), (2, 12, 'F'))]",
        ),
        ("trn_HDSLR_parallel_mri.py", r"os\.mkdir\(overflow_dir\)", "os.makedirs(overflow_dir, exist_ok=True)"),
        ("HDSLR.py", r"256\.0 \* 232\.0", "32.0 * 32.0"),
    ),
    _model(
        "1.15",
        "dilated",
        "TensorFlow/contrib/cv/TCN_ID1231_for_TensorFlow/copymem",
        "copymem_test.py",
        "--epochs=1 --blank_len=40 --levels=4 --batch_size=8",
        ("copymem_test.py", r"n_train = 10000\nn_test = 1000", "n_train = 64\nn_test = 16"),
    ),
    Script(
        "tkuanlun350/3DUnet-Tensorflow-Brats18",
        "8f9e497",
        "NCDHW",
        "1.15",
        "",
        "train.py",
        arguments="--gpu=0",
        data=("volumes", "data/training/HGG", "4", "36"),
        edits=[
            Edit("config.py", r"128, 128, 128", "32, 32, 32"),
            Edit("config.py", r"(?m)^BASEDIR = .*", "BASEDIR = 'data'"),
            Edit("config.py", r"STEP_PER_EPOCH = 500", "STEP_PER_EPOCH = 3"),
            Edit("train.py", r"(?:GPUUtilization|PeakMemory)Tracker\(\),", ""),
            Edit("train.py", r"max_epoch=80", "max_epoch=1"),
            Edit("train.py", r"mode='nccl'", "mode='cpu'"),  # of one GPU; this release looks for tf.contrib.nccl
            Edit("data_sampler.py", r"PrefetchDataZMQ\(ds, 6\)", "PrefetchDataZMQ(ds, 1)"),
            Edit("data_loader.py", r"import skimage", ""),
            Edit("utils.py", r"import SimpleITK as sitk", ""),
        ],
    ),
    _model(
        "2.6",
        "NCHW",
        "TensorFlow2/built-in/cv/image_classification/Densenet_smplified_ID3541_for_TensorFlow2.X",
        "cifar10_densenet_classification.py",
        "--train_epochs=1 --batch_size=8 --train_data_size=64 --test_data_size=16",
        (
            "cifar10_densenet_classification.py",
            r"cifar10\.load_data\(.*",
            "tf.keras.datasets.cifar10.load_data()",
        ),
        ("cifar10_densenet_classification.py", r"\[32,32,32\]", "[2,2,2]"),
        ("cifar10_densenet_classification.py", r"dropout_p=0\.2", "dropout_p=0.0"),
        ("cifar10_densenet_classification.py", r"input_shape=\(32,32,3\)", "input_shape=(3,32,32)"),
        ("cifar10_densenet_classification.py", "data_format='channels_last'", "data_format='channels_first'"),
        (
            "cifar10_densenet_classification.py",
            r"# Create the model",
            "x_train, x_test = x_train.transpose(0, 3, 1, 2), x_test.transpose(0, 3, 1, 2)\n"
            "tf.keras.backend.set_image_data_format('channels_first')",
        ),
    ),
)


def name_of(script: Script) -> str:
    """Return the folder of a model in the collection, or the repository of another one."""
    return script.folder or script.repository


def measure(script: Script, sources: str, work: str) -> Result:
    """Verify a model in an empty folder, with the clones in `sources`."""
    folder, begin = os.path.join(work, "project"), time.time()
    project(script, sources, folder)
    found = verify(script, folder, os.path.join(work, "report"))
    steps, names = found["original"]["steps"], len(found["streams"])
    return Result(name_of(script), script.tensorflow, steps, names, round(time.time() - begin), verdict(found))


def results() -> dict[tuple[str, str], Result]:
    """Return the results by model and version; those of entries that the list no longer has are left out."""
    if not os.path.exists(RESULTS):
        return {}
    with open(RESULTS, encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream, delimiter="\t")
    made = {(row[0], row[1]): Result(row[0], row[1], *map(int, row[2:5]), row[5]) for row in rows}
    keys = [(name_of(each), each.tensorflow) for each in MODELS]
    return {key: made[key] for key in keys if key in made}


def keep(made: Result) -> None:
    """Write a result; the others stay."""
    kept = {**results(), (made.model, made.tensorflow): made}
    with open(RESULTS, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(Result._fields)
        keys = [(name_of(each), each.tensorflow) for each in MODELS]
        writer.writerows(kept[key] for key in keys if key in kept)


def table() -> str:
    """Return the table of all results."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
    kinds = {(name_of(each), each.tensorflow): each.kind for each in MODELS}
    for key, (model, version, steps, names, seconds, how) in results().items():
        cells = f"`{model}`", kinds[key], version, steps, names, seconds, how.replace("|", " ")
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the models that run with this TensorFlow, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="part of the folder of a model; by default all")
    parser.add_argument("--sources", default=SOURCES, metavar="DIR", help="bare clones at OWNER/NAME (%(default)s)")
    parser.add_argument("--keep", metavar="DIR", help="keep projects and reports in DIR/NAME")
    parser.add_argument("--table", action="store_true", help="only make the table")
    options = parser.parse_args(arguments)
    if not options.table:
        import tensorflow as tf

        os.environ["NPU_SHIM_ALIAS"] = "1"
        os.environ["PYTHONPATH"] = os.pathsep.join([os.path.join(HERE, "stand_ins"), os.environ.get("PYTHONPATH", "")])
        for script in MODELS:
            is_chosen = not options.names or any(each in name_of(script) for each in options.names)
            if is_chosen and tf.__version__.startswith(script.tensorflow + "."):
                with tempfile.TemporaryDirectory() as folder:
                    work = os.path.join(options.keep or folder, os.path.basename(name_of(script)))
                    shutil.rmtree(work, ignore_errors=True)
                    os.makedirs(work)
                    keep(measure(script, options.sources, work))
    put(table(), _BEGIN, _END, [PAGE])
    return 0


if __name__ == "__main__":
    sys.exit(main())
