"""Models with convolutions that TensorFlow's CPU kernels refuse, which docs/make_acceptance.py verifies.

They are models of the vendor's collection, and a 3-D U-Net, which needs the packages nibabel 4.0.2,
opencv-python-headless 4.6, tabulate, tensorpack 0.9.0.1 and tqdm.
"""

from __future__ import annotations

from verified import Edit, Script

_TCN = "--batch_size=16 --epochs=1 --train_data_n=64 --validation_data_n=32 --seq_length=40 --tensorboard_path=tb"


def _model(version: str, kind: str, folder: str, script: str, arguments: str, *edits: tuple[str, str, str]) -> Script:
    made = [Edit(*each) for each in edits]
    return Script("Ascend/ModelZoo-TensorFlow", "a2c3332", kind, version, folder, script, "", arguments, edits=made)


def _tcn(version: str, *edits: tuple[str, str, str]) -> Script:
    folder = "TensorFlow/contrib/cv/Keras-TCN_ID2665_for_TensorFlow"
    return _model(version, "dilated Conv1D", folder, "train.py", _TCN, *edits)


_AS_V1 = r"(?m)^import tensorflow as tf$", "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()"
SCRIPTS: tuple[Script, ...] = (
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
