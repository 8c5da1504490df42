"""Models with convolutions that TensorFlow's CPU kernels refuse, which docs/make_acceptance.py verifies.

They are models of the vendor's collection, of NVIDIA and of tf_cnn_benchmarks, and a 3-D U-Net. With TensorFlow 1.15
they need the packages chess 1.9.4, munch, nibabel 4.0.2, opencv-python-headless 4.6, pyperclip, tabulate, tensorpack
0.9.0.1 and tqdm.
"""

from __future__ import annotations

from typing import Any, Sequence, Tuple

from verified import Edit, Script

Edits = Sequence[Tuple[str, str, str]]

# Why a script departs from itself, by its name.
CAUSES = {
    "train_npu.py": "computes gradients with GATE_NONE: an update may write a variable while another gradient reads it",
}
_TCN = "--batch_size=16 --epochs=1 --train_data_n=64 --validation_data_n=32 --seq_length=40 --tensorboard_path=tb"


def _model(version: str, kind: str, folder: str, script: str, arguments: str, *edits: tuple[str, str, str]) -> Script:
    made = [Edit(*each) for each in edits]
    return Script("Ascend/ModelZoo-TensorFlow", "a2c3332", kind, version, folder, script, "", arguments, edits=made)


def _tcn(version: str, *edits: tuple[str, str, str]) -> Script:
    folder = "TensorFlow/contrib/cv/Keras-TCN_ID2665_for_TensorFlow"
    return _model(version, "dilated Conv1D", folder, "train.py", _TCN, *edits)


def _port(
    version: str,
    kind: str,
    path: str,
    arguments: str,
    edits: Edits,
    plain: Edits,
    data: Sequence[str] = (),
    **more: Any,
) -> Script:
    """Return a script of the vendor that is compared with its form without NPU code.

    Args:
        version, kind, arguments, data, more: as of `Script`.
        path: of the script in the collection, with a colon behind the folder of its project, and where it starts.
        edits, plain: files, patterns and replacements.
    """
    folder, *start, script = path.split(":")
    made = [Edit("**/*.py", *_IMPORTS), *(Edit(*each) for each in plain)]
    return Script(
        "Ascend/ModelZoo-TensorFlow",
        "a2c3332",
        kind,
        version,
        folder,
        script,
        "".join(start),
        arguments,
        data,
        edits=[Edit(*each) for each in edits],
        plain=made,
        **more,
    )


def _nvidia(version: str, kind: str, folder: str, arguments: str, edits: Edits, data: Sequence[str] = ()) -> Script:
    made = [Edit(*each) for each in edits]
    about = "NVIDIA/DeepLearningExamples", "729963d", kind, version, folder, "main.py", "", arguments, data
    return Script(*about, edits=made, steps=3, options="-d horovod")


_IMPORTS = (
    r"(?m)^(?:from|import) (?:npu_bridge|npu_device|hccl)\b.*",
    "import tensorflow as tf; from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig",
)
_OPTIONS = r"(?m)^[ \t]*custom_op\b.*\n", ""
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
    _port(
        "1.15",
        "NCDHW: Conv3D 3",
        "TensorFlow/contrib/cv/MGCNN_ID1039_for_TensorFlow:mgcnn_npu.py",
        "-n 0 -i 1 -e 2 -datapath data -f maps.npy",
        [],
        [("mgcnn_npu.py", r"(?s)# \*+ npu modify begin.*npu modify end \*+", "")],
        ("arrays", "data/clean", "maps:1024,4,5,100"),
    ),
    _port(
        "1.15",
        "Conv3D, none in another form",
        "TensorFlow/built-in/cv/image_classification/3D_ResNet_ID0486_for_TensorFlow:train.py",
        "--X_train_file=data/x.npy --labels_file=data/labels.npy --y_train_file=data/y.npy --train_epochs=1 "
        "--batch_size=2",
        [
            ("train.py", r"64, 64, 32, 1\), 2", "32, 32, 16, 1), 2"),
            ("train.py", r"(?m)^import keras", "from tensorflow import keras"),
            ("resnet3d/resnet3d.py", r"from keras\.layers\.\w+", "from tensorflow.keras.layers"),
            ("resnet3d/resnet3d.py", r"from keras\b", "from tensorflow.keras"),
            ("resnet3d/resnet3d.py", r"(\w+)\._keras_shape", r"K.int_shape(\1)"),
        ],
        [
            ("train.py", r"(?s)#+npu modify start.*npu modify end#+", ""),
            ("train.py", r"(?m)^(callbacks = .*NPUBroadcast.*|close_session.*)", ""),
        ],
        ("arrays", "data", "x:8,32,32,16,1", "labels:8,2:classes", "y:8,2:classes"),
        steps=3,
    ),
    _port(
        "1.15",
        "NCHW: Conv2D 6",
        "TensorFlow/contrib/reinforcement-learning/iqn/IQN_ID1995_for_TensorFlow:IQN_tf.py",
        "--batch_size=8 --envs_num=8 --quant_num=8 --step_num=160 --train_url={run}",
        [
            (
                "IQN_tf.py",
                r"(?m)^env = SubprocVecEnv.*",
                "class Games:\n"
                "    action_space = gym.spaces.Discrete(6)\n"
                "    def reset(self): return np.random.randint(0, 256, (N_ENVS, 4, 84, 84)).astype('uint8')\n"
                "    def step(self, _): return self.reset(), np.random.rand(N_ENVS), np.zeros(N_ENVS), [{}] * N_ENVS\n"
                "env = Games()",
            ),
            ("IQN_tf.py", r"LEARN_START = .*", "LEARN_START = 64"),
        ],
        [("IQN_tf.py", *_OPTIONS)],
        steps=8,
    ),
    _port(
        "1.15",
        "NCHW: Conv2D 17, batch normalization 34",
        "TensorFlow/contrib/reinforcement-learning/Chess-Alpha-Zero_ID2100_for_TensorFlow:src:chess_zero/run.py",
        "--cmd opt --epochs 1 --npu",
        [
            ("src/chess_zero/configs/mini.py", r"batch_size = 384", "batch_size = 8"),
            ("src/chess_zero/configs/mini.py", r"cnn_filter_num = 256", "cnn_filter_num = 32"),
            (
                "src/chess_zero/worker/optimize.py",
                r"futures = deque\(\)",
                "games = np.random.RandomState(0)\n"
                "        for kept, shape in zip(self.dataset, ((64, 18, 8, 8), (64, self.config.n_labels), (64,))):\n"
                "            kept.extend(games.rand(*shape))\n"
                "        return",
            ),
            ("src/chess_zero/worker/optimize.py", r"raise RuntimeError\(.Best model.*", "model.build()"),
        ],
        [
            ("src/chess_zero/worker/optimize.py", *_OPTIONS),
            ("src/chess_zero/worker/optimize.py", r"set_keras_session_npu_config\(", "tf.Session("),
            ("src/chess_zero/worker/optimize.py", r"(?m)^ +loss_scale_manager = .*\n", ""),
            ("src/chess_zero/worker/optimize.py", r"NPULossScaleOptimizer\(adam, loss_scale_manager\)", "adam"),
        ],
    ),
    _port(
        "1.15",
        "NCHW: batch normalization 4",
        "TensorFlow/built-in/nlp/Bert-base_ID0060_for_TensorFlow:src/pretrain:run_pretraining.py",
        "--bert_config_file=data/config.json --max_seq_length=32 --max_predictions_per_seq=5 "
        "--train_batch_size=4 --num_warmup_steps=2 --num_train_steps=4 --iterations_per_loop=1 "
        "--input_files_dir=data --eval_files_dir=data --output_dir={run} --npu_bert_job_start_file= "
        "--distributed=False --npu_bert_loss_scale=1024 --do_train",
        [
            ("src/pretrain/run_pretraining.py", r"int\(os.getenv\('RANK_SIZE'\)\)", "1"),
            ("src/pretrain/run_pretraining.py", r'input_file_dir, "\*"', 'input_file_dir, "*.tfrecord"'),
        ],
        [
            (
                "src/pretrain/run_pretraining.py",
                r"NPURunConfig\(\s*dump_config=dump_config,",
                "tf.estimator.RunConfig(",
            ),
            ("src/pretrain/run_pretraining.py", r"(?s)enable_data_pre_proc=.*?hcom_parallel\)", ")"),
            ("src/pretrain/run_pretraining.py", r"dump_config = .*", "pass"),
            ("src/pretrain/run_pretraining.py", r"NPUEstimator\(", "tf.estimator.Estimator("),
            ("src/pretrain/run_pretraining.py", r",\s+job_start_file=.*\)", ")"),
            (
                "src/pretrain/run_pretraining.py",
                r"'(npu_bert_npu_dropout|npu_gather)', True",
                r"'\1', False",
            ),
            (
                "src/pretrain/modeling.py",
                r"(?s)  if tf\.flags\.FLAGS\.npu_bert_fused_gelu:.*?  else:\n  (  cdf = .*?)\n    return x",
                r"\1\n  return x",
            ),
            ("src/pretrain/optimization.py", r"optimizer = NPUDistributedOptimizer\(optimizer\)", ""),
            ("src/pretrain/optimization.py", r"loss_scale_manager = lsm_lib\..*", "pass"),
            (
                "src/pretrain/optimization.py",
                r"lso\.NPULossScaleOptimizer\(.*",
                "tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt_tmp, tf.flags.FLAGS.npu_bert_loss_scale)",
            ),
        ],
        ("masked", "src/pretrain/data"),
    ),
    _port(
        "1.15",
        "NCHW: Conv2D 36, MaxPool 10",
        "TensorFlow/contrib/cv/NOISE2NOISE_ID0800_for_TensorFlow:config.py",
        "--graph-run-mode=1 train --train-tfrecords=data/train.tfrecords",
        [
            ("config.py", r"iteration_count=1000", "iteration_count=4"),
            ("dataset.py", r"\b256([,\]])", r"64\1"),
            ("dataset.py", r"features\['shape'\]\)", "[3, 80, 80])"),
            ("network.py", r"=256", "=64"),
            (
                "validation.py",
                r"(?s)fnames = .*self.images = images",
                "self.images = [np.random.rand(3, 64, 64) - 0.5]",
            ),
            ("dnnlib/submission/submit.py", r"import typeguard", ""),
        ],
        [
            ("dnnlib/tflib/tfutil.py", *_OPTIONS),
            ("train.py", r"(?s)loss_scale_manager = .*?opt = NPULossScaleOptimizer\(.*?\)", "pass"),
            ("train.py", r"tf\.get_default_graph\(\)\.get_tensor_by_name\(.*?\)", "tf.constant(2.0**32)"),
            ("*.py", r"with npu_scope\..*", "if True:"),
        ],
        ("examples", "data", "train.tfrecords", "24", "shape=int:1:3", "data=uint8:256:19200"),
    ),
    _port(
        "1.15",
        "NCHW: Conv2D 23, MaxPool 4",
        "TensorFlow/built-in/cv/image_segmentation/UNet_Industrial_ID0007_for_TensorFlow:main.py",
        "--exec_mode=train --iter_unit=batch --num_iter=4 --batch_size=2 --warmup_step=1 --results_dir={run} "
        "--data_dir=data --dataset_name=DAGM2007 --dataset_classID=1 --data_format=NCHW --display_every=1",
        [
            ("main.py", r"512, 512", "64, 64"),
            ("model/unet.py", r"=512", "=64"),
            ("runtime/runner.py", r"iterations_per_loop=10", "iterations_per_loop=1"),
            (
                "datasets/dagm2007.py",
                r"tf\.data\.TextLineDataset\(csv_file\)",
                "tf.data.Dataset.from_tensor_slices(['', '0_0.PNG,1_1.PNG,1', '2_2.PNG,3_3.PNG,1'])",
            ),
            ("datasets/dagm2007.py", r"os\.path\.join\(image_dir, .Label.\)", "image_dir"),
        ],
        [
            ("model/unet.py", r"NPUEstimatorSpec\(", "tf.estimator.EstimatorSpec("),
            ("model/unet.py", r"opt = NPUDistributedOptimizer\(opt\)", ""),
            ("runtime/runner.py", r"NPURunConfig\(", "tf.estimator.RunConfig("),
            ("runtime/runner.py", r"precision_mode=.*|iterations_per_loop=.*", ""),
            ("runtime/runner.py", r"NPUEstimator\(", "tf.estimator.Estimator("),
        ],
        ("pictures", "data/raw_images/private/Class1/Train", "6", "64", "64", "PNG"),
        steps=4,
    ),
    _port(
        "1.15",
        "NCHW: Conv2D, batch normalization; a trunk of two blocks",
        "TensorFlow/built-in/cv/image_classification/MiniGo_ID0629_for_TensorFlow:train.py",
        "--training_data_path=data --steps_to_train=4 --train_batch_size=8 --work_dir={run} --input_layout=nchw "
        "--trunk_layers=2",
        [("go.py", r"N = int\(.*", "N = 9")],
        [
            ("dual_net.py", r"custom_op\.parameter_map.*", "pass"),
            ("dual_net.py", *_OPTIONS),
            ("dual_net.py", r"npu_run_config_init\(run_config=run_config\)", "run_config"),
            ("dual_net.py", r"optimizer = NPUDistributedOptimizer", "optimizer = "),
            ("dual_net.py", r"NPUEstimatorSpec\(", "tf.estimator.EstimatorSpec("),
            ("dual_net.py", r"host_call=\(host_call_fn, metric_args\)", ""),
            ("train.py", r"npu_hooks_append\(hooks_list=hooks\)", "hooks"),
        ],
        ("examples", "data", "games.zz", "64", "x=uint8:2:1377", "pi=float32:2:82", "outcome=float:1"),
    ),
    _port(
        "1.15",
        "NCHW: Conv2D 90, batch normalization 4, with second gradients",
        "TensorFlow/contrib/cv/Class-Splitting-GAN_ID1276_for_TensorFlow:gan_cifar_resnet_kmeans.py",
        "--data_path=data",
        [
            ("gan_cifar_resnet_kmeans.py", r"softmax = None", "softmax = 'of Inception, for scores'"),
            ("gan_cifar_resnet_kmeans.py", r"import psutil|mem = psutil.*", ""),
            ("gan_cifar_resnet_kmeans.py", r"BATCH_SIZE = 64", "BATCH_SIZE = 8"),
            ("gan_cifar_resnet_kmeans.py", r"(DIM_[GD]) = 128", r"\1 = 16"),
            ("gan_cifar_resnet_kmeans.py", r"(?m)^ITERS = 100000", "ITERS = 3"),
            (
                "tflib/cifar10.py",
                r"fo = open\(file, 'rb'\)",
                "return np.random.randint(0, 256, (100, 3072)).astype('uint8'), list(range(10)) * 10",
            ),
        ],
        [("gan_cifar_resnet_kmeans.py", *_OPTIONS)],
    ),
    _port(
        "1.15",
        "dilated Conv2D, none in another form",
        "TensorFlow/built-in/cv/image_segmentation/DeeplabV3_ID0047_for_TensorFlow:train_npu.py",
        "--model_variant=resnet_v1_50_beta --train_split=trainaug --atrous_rates=6 --atrous_rates=12 "
        "--atrous_rates=18 --train_batch_size=2 --training_number_of_steps=3 --train_crop_size=33,33 "
        "--multi_grid=1 --multi_grid=2 --multi_grid=4 --iterations_per_loop=1 --display_every=1 "
        "--aspp_with_separable_conv=False --dataset_dir=data --train_logdir={run}",
        [
            ("host_model.py", r"(?m)^        init_fn = .*", ""),
            ("host_model.py", r"training_hooks=\[RestoreHook\(init_fn\)\]", ""),
        ],
        [
            ("trainer.py", r"(?s)NPURunConfig\(.*?(?=save_checkpoints_steps)", "tf.estimator.RunConfig("),
            ("trainer.py", r"iterations_per_loop=FLAGS\.iterations_per_loop,|enable_small_channel=1", ""),
            ("trainer.py", r"NPUEstimator\(", "tf.estimator.Estimator("),
            ("host_model.py", r"NPUDistributedOptimizer\(optimizer\)", "optimizer"),
            ("model.py", r"npu_ops\.dropout", "tf.nn.dropout"),
        ],
        (
            "examples",
            "data",
            "trainaug-0",
            "8",
            "image/encoded=png:256:80,80,3",
            "image/format=text:png",
            "image/segmentation/class/encoded=png:21:80,80,1",
        ),
    ),
    _port(
        "2.6",
        "NCHW: Conv2D 159, batch normalization 159, MaxPool 3",
        "TensorFlow2/built-in/cv/image_classification/ResNet50_ID0360_for_TensorFlow2.X:tensorflow:"
        "resnet_ctl_imagenet_main.py",
        "--use_synthetic_data --data_format=channels_first --batch_size=2 --train_steps=3 --train_epochs=1 "
        "--steps_per_loop=1 --skip_eval --model_dir={run} --distribution_strategy=off",
        [
            ("tensorflow/imagenet_preprocessing.py", r"DEFAULT_IMAGE_SIZE = 224", "DEFAULT_IMAGE_SIZE = 64"),
            ("tensorflow/resnet_model.py", r"224, 224, 3", "64, 64, 3"),
        ],
        [
            ("tensorflow/resnet_ctl_imagenet_main.py", r"(?m)^  npu_config\(\)", ""),
            ("tensorflow/resnet_runnable.py", r"(?m)^.*npu\.distribute\.(broadcast|all_reduce)\(\w.*", ""),
        ],
    ),
    _port(
        "2.6",
        "Conv2D with 32 groups; a block a stage",
        "TensorFlow2/built-in/cv/image_classification/ResNext50_ID0362_for_TensorFlow2.X:train.py",
        "",
        [
            ("configuration.py", r"BATCH_SIZE = 8", "BATCH_SIZE = 2"),
            ("configuration.py", r"(IMAGE_\w+) = 224", r"\1 = 64"),
            ("configuration.py", r"(?m)^model_index = 1$", "model_index = 12"),
            ("models/resnext.py", r"\[3, 4, 6, 3\]", "[1, 1, 1, 1]"),
        ],
        [("train.py", r"(?m)^    npu_config\(\)", "")],
        (
            "examples",
            "dataset",
            "train.tfrecord,valid.tfrecord,test.tfrecord",
            "6",
            "image_raw=png:256:80,80,3",
            "label=int:6:1",
        ),
        steps=3,
    ),
    _port(
        "2.6",
        "dilated Conv2D 3",
        "TensorFlow2/built-in/keras_sample/cv/deeplabv3_plus_ID2503_for_TensorFlow2.X:train.py",
        "--data_dir=data --batch_size=2 --epochs=1",
        [
            ("train.py", r"import cv2", ""),
            ("train.py", r"IMAGE_SIZE = 512", "IMAGE_SIZE = 64"),
            ("train.py", r"NUM_TRAIN_IMAGES = 1000", "NUM_TRAIN_IMAGES = 6"),
            ("train.py", r'weights="imagenet"', "weights=None"),
            ("train.py", r"image_path, channels=1\)|\(image, channels=1\)", "(image, channels=1) // 13"),
        ],
        [
            ("train.py", r"(?m)^npu_config\(\)", ""),
            ("train.py", r"(?m)^optimizer = npu_device.*", ""),
        ],
        (
            "folders",
            "data/instance-level_human_parsing/instance-level_human_parsing/Training",
            "10",
            "64",
            "Images",
            "Category_ids",
        ),
        steps=3,
    ),
    Script(
        "tensorflow/benchmarks",
        "aef6daa",
        "NCHW: Conv2D 57, pools 14",
        "1.15",
        "scripts/tf_cnn_benchmarks",
        "tf_cnn_benchmarks.py",
        arguments="--model=googlenet --optimizer=adam --data_format=NCHW --device=gpu --batch_size=2 --num_batches=3 "
        "--num_warmup_batches=0 --display_every=1 --use_resource_vars=true",
    ),
    _nvidia(
        "1.15",
        "NCHW: Conv2D, some with 32 groups, batch normalization; five blocks",
        "TensorFlow/Classification/ConvNets",
        "--arch=resnext101-32x4d --mode=training_benchmark --iter_unit=batch --num_iter=3 --batch_size=2 "
        "--synthetic_data_size=64 --data_format=NCHW --results_dir={run} --model_dir={run} --warmup_steps=1 "
        "--display_every=1",
        [("model/resnet.py", r"\[3, 4, 23, 3\]", "[1, 1, 2, 1]")],
    ),
    _nvidia(
        "1.15",
        "channels last",
        "TensorFlow/Segmentation/UNet_Medical",
        "--exec_mode=train --model_dir={run} --data_dir=. --batch_size=1 --max_steps=3 --log_every=1 --augment",
        [
            ("utils/data_loader.py", r"572", "252"),
            ("utils/data_loader.py", r"388", "68"),
            (
                "utils/data_loader.py",
                r"np\.array\(\[np\.array\(p\).*",
                "np.random.RandomState(0).randint(0, 256, (5, 64, 64))",
            ),
        ],
    ),
    _nvidia(
        "2.15",
        "NCHW: Conv2D, batch normalization; two blocks a stage",
        "TensorFlow2/Classification/ConvNets",
        "--cfg=config/efficientnet_v2/s_cfg.py --mode=train --model_dir={run} --data_dir=data --train_batch_size=2 "
        "--train_img_size=64 --max_epochs=1 --steps_per_epoch=3 --train_num_examples=8 --log_steps=1 "
        "--data_format=channels_first",
        [("config/efficientnet_v2/s_cfg.py", r"num_repeat=\d+", "num_repeat=2")],
        ("examples", "data", "train-0", "8", "image/encoded=jpeg:256:80,80,3", "image/class/label=int:1000:1"),
    ),
)
