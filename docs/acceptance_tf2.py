"""Public scripts of TensorFlow 2 that docs/make_acceptance.py verifies.

They need these packages besides: tqdm, pillow, gym 0.25, opencv-python-headless and tensorflow_addons (TensorFlow 2.6,
2.15), dm-tree and tabulate (2.6), pandas, optuna, scikit-image, oyaml and click (2.15), jaxtyping and einops (2.21).
"""

from __future__ import annotations

from verified import Defect, Edit, Script

_WANDB = Edit("train.py", "import wandb\n", "from types import SimpleNamespace\n")

SCRIPTS: tuple[Script, ...] = (
    Script(
        "yusugomori/deeplearning-keras-tf2-torch",
        "08e7b1f",
        "loop, evaluation, early stopping",
        "2.15",
        "4",
        "26_mnist_early_stopping_tf.py",
    ),
    Script(
        "wandb/examples",
        "5cab887",
        "loop, evaluation, summaries",
        "2.15",
        "examples/tensorboard/tensorboard-tf2-gradienttape",
        "train.py",
        edits=[
            _WANDB,
            Edit("train.py", r"wandb\.init\(.*", "wandb = SimpleNamespace(config=SimpleNamespace(**config_defaults))"),
        ],
        defect=Defect("rate 2 % higher", [Edit("train.py", r"learning_rate=0\.001", "learning_rate=0.00102")]),
    ),
    Script(
        "wangz10/contrastive_loss",
        "97b6166",
        "contrastive loss in two stages, tf.function",
        "2.15",
        "",
        "main.py",
        arguments="--batch_size_1 128 --epoch 1",
        edits=[Edit("main.py", "import seaborn as sns\n", "")],
        defect=Defect(
            "an example lost",
            [
                Edit(
                    "main.py",
                    r"\(x_train, y_train\)\)\.shuffle\(5000\)\.batch\(args\.batch_size_2\)",
                    "(x_train[1:], y_train[1:])).shuffle(5000).batch(args.batch_size_2)",
                )
            ],
        ),
    ),
    Script(
        "marload/GANs-TensorFlow2",
        "77d8518",
        "WGAN-GP, tf.function",
        "2.15",
        "WGAN-GP",
        "WGAN-GP.py",
        edits=[Edit("WGAN-GP.py", "BATCH_SIZE = 512", "BATCH_SIZE = 32")],
        defect=Defect("wrong scale of the penalty", [Edit("WGAN-GP.py", r"gp \* GP_WEIGHT", "gp * GP_WEIGHT / 2")]),
    ),
    Script(
        "okada39/pinn_burgers",
        "e9f6310",
        "physics-informed network, L-BFGS of SciPy",
        "2.15",
        "",
        "main.py",
        edits=[Edit("main.py", "num_train_samples = 10000", "num_train_samples = 1000")],
        defect=Defect(
            "cast to float16",
            [
                Edit(
                    "lib/optimizer.py",
                    r"self\.model\(x\), y\)",
                    "tf.cast(tf.cast(self.model(x), tf.float16), tf.float32), y)",
                )
            ],
        ),
    ),
    Script(
        "abhisheksuran/Reinforcement_Learning",
        "12c9544",
        "TD3, loop",
        "2.15",
        "",
        "Td3.py",
        edits=[
            Edit("Td3.py", "LunarLanderContinuous-v2", "Pendulum-v1"),
            Edit("Td3.py", r"Agent\(2\)", "Agent(1)"),
            Edit("Td3.py", r"np\.bool\b", "bool"),
            Edit("Td3.py", r"env\.render\(\)", "pass"),
        ],
        defect=Defect(
            "gradient dropped",
            [
                Edit(
                    "Td3.py",
                    r"zip\(grads2, self\.critic_main2\.trainable_variables\)",
                    "zip(grads2[1:], self.critic_main2.trainable_variables[1:])",
                )
            ],
        ),
    ),
    Script(
        "philtabor/Youtube-Code-Repository",
        "eb3aa97",
        "DDPG, loop",
        "2.6",
        "ReinforcementLearning/PolicyGradient/DDPG/tensorflow2/pendulum",
        "main_ddpg.py",
        edits=[Edit("main_ddpg.py", "Pendulum-v0", "Pendulum-v1")],
        defect=Defect("rate 2 % higher", [Edit("ddpg_tf2.py", r"beta=0\.002", "beta=0.00204")]),
    ),
    Script(
        "optuna/optuna-examples",
        "2e0b10b",
        "search of several models, loop",
        "2.15",
        "tensorflow",
        "tensorflow_eager_simple.py",
        edits=[Edit("tensorflow_eager_simple.py", "n_trials=100", "n_trials=3")],
    ),
    Script(
        "TheUnsolvedDev/TensorflowAI",
        "7b2dec1",
        "distillation, train_step of its own, callbacks",
        "2.15",
        "ComputerVision/ImageClassification/SmallNetwork/7_KnowledgeDistillation",
        "know_distill.py",
        edits=[
            Edit("know_distill.py", r"from silence_tensorflow.*\n\nsilence_tensorflow\(\)\n", ""),
            Edit("know_distill.py", r"tf\.config\.experimental\.set_visible_devices\(.*", ""),
            Edit("know_distill.py", r"tf\.keras\.utils\.plot_model\([^)]*\)", ""),
        ],
    ),
    Script(
        "deepmind/sonnet",
        "5a46569",
        "library with optimizers of its own, an epoch in a tf.function",
        "2.6",
        "",
        "examples/simple_mnist.py",
        edits=[Edit("examples/simple_mnist.py", "import sonnet", "import sys; sys.path.append('.')\nimport sonnet")],
        defect=Defect("rate 2 % higher", [Edit("examples/simple_mnist.py", r"SGD\(0\.1\)", "SGD(0.102)")]),
    ),
    Script(
        "cryu854/FastStyle",
        "46464cc",
        "style transfer, tf.function",
        "2.15",
        "",
        "main.py",
        arguments="train --dataset pictures --style pictures/0000.jpg",
        data=["folders", ".", "24", "64", "pictures"],
        edits=[
            Edit("train.py", "weights = 'imagenet'", "weights = None"),
            Edit("train.py", "256, 256, 3", "64, 64, 3"),
            Edit("modules/utils.py", r"\b256\b", "64"),
        ],
    ),
    Script(
        "nikhilroxtomar/Unet-for-Person-Segmentation",
        "1ea4041",
        "segmentation, fit, callbacks, numpy_function",
        "2.15",
        "",
        "train.py",
        data=["folders", "people_segmentation", "50", "64", "images", "masks"],
        edits=[
            Edit("data.py", "256", "32"),
            Edit("train.py", r"input_shape = \(256, 256, 3\)", "input_shape = (32, 32, 3)"),
            Edit("train.py", "batch_size = 12", "batch_size = 4"),
        ],
    ),
    Script(
        "calmisential/TensorFlow2.0_Image_Classification",
        "8da544b",
        "fit_generator, ImageDataGenerator",
        "2.6",
        "",
        "train.py",
        data=[
            "folders",
            "dataset",
            "9",
            "40",
            *(f"{part}/{kind}" for part in ("train", "valid", "test") for kind in "abcde"),
        ],
        edits=[Edit("config.py", "= 224", "= 32"), Edit("models/vgg16.py", "4096", "64")],
    ),
    Script(
        "microsoft/nni",
        "767ed7f",
        "fit, subclass, callback",
        "2.15",
        "examples/trials/mnist-tfv2",
        "mnist.py",
        edits=[
            Edit("mnist.py", "import nni\n", "from unittest.mock import Mock\n"),
            Edit("mnist.py", "_logger = ", "nni = Mock(get_next_parameter=dict)\n_logger = "),
        ],
    ),
    Script(
        "inoryy/tensorflow2-deep-reinforcement-learning",
        "964fa7d",
        "A2C, train_on_batch",
        "2.6",
        "",
        "a2c.py",
        arguments="--num_updates 40",
    ),
    Script(
        "emla2805/vision-transformer",
        "9e6e782",
        "transformer, fit, MirroredStrategy",
        "2.6",
        "",
        "train.py",
        arguments="--batch-size 32 --epochs 2 --num-layers 2",
    ),
    Script(
        "akanyaani/gpt-2-tensorflow2.0",
        "ab93122",
        "GPT, tf.function",
        "2.15",
        "",
        "train_gpt2.py",
        arguments="--num-layers=2 --embedding-size=32 --num-heads=4 --dff=64 --max-seq-len=32 --vocab-size=100 "
        "--batch-size=8 --graph-mode=True",
        data=["records", "data/tf_records"],
    ),
    Script(
        "thisisiron/TF2-GAN",
        "4833412",
        "GAN, loop",
        "2.15",
        "dcgan",
        "train.py",
        edits=[Edit("train.py", "batch_size = 200", "batch_size = 24")],
    ),
    Script(
        "MorvanZhou/NLP-Tutorials",
        "3aa02a1",
        "transformer, eager loop",
        "2.6",
        "",
        "transformer.py",
    ),
    Script(
        "dragen1860/TensorFlow-2.x-Tutorials",
        "9861a30",
        "VAE, loop",
        "2.15",
        "12-VAE",
        "main.py",
    ),
    Script(
        "YunYang1994/TensorFlow2.0-Examples",
        "299fd66",
        "DCGAN, tf.function, checkpoints",
        "2.6",
        "6-Generative_Adversarial_Networks",
        "dcgan.py",
        edits=[
            Edit("dcgan.py", r"get_ipython\(\)\.run_cell_magic\(.*'(train\(.*\))'\)", r"\1"),
            Edit(
                "dcgan.py", r"(?m)^import imageio$|^from IPython import display$|^ *(display\.clear|get_ipython).*", ""
            ),
        ],
    ),
    Script(
        "tensorflow/docs",
        "7c36502",
        "strategy, tf.function, checkpoint restored, notebook",
        "2.15",
        "site/en/tutorials/distribute",
        "custom_training.py",
        data=["cells", ".", "custom_training.ipynb"],
        defect=Defect(
            "wrong loss scale",
            [Edit("custom_training.py", r"tf\.nn\.compute_average_loss\(per", "2 * tf.nn.compute_average_loss(per")],
        ),
    ),
    Script(
        "keras-team/keras",
        "3422977",
        "Keras 3, fit, subclass",
        "2.21",
        "examples",
        "demo_subclass.py",
        defect=Defect("rate 2 % higher", [Edit("demo_subclass.py", r"learning_rate=0\.001", "learning_rate=0.00102")]),
    ),
    Script(
        "danielegrattarola/spektral",
        "a5fa5e3",
        "graph network, tf.function",
        "2.15",
        "",
        "examples/graph_prediction/custom_dataset.py",
        edits=[
            Edit(
                "examples/graph_prediction/custom_dataset.py",
                "from spektral.data",
                "import sys; sys.path.append('.')\nfrom spektral.data",
            )
        ],
        defect=Defect(
            "cast to float16",
            [
                Edit(
                    "examples/graph_prediction/custom_dataset.py",
                    r"x = self\.conv3\(\[x, a\]\)",
                    "x = tf.cast(tf.cast(self.conv3([x, a]), tf.float16), tf.float32)",
                )
            ],
        ),
    ),
    Script(
        "LynnHo/DCGAN-LSGAN-WGAN-GP-DRAGAN-Tensorflow-2",
        "2bf0c8b",
        "GAN, project, checkpoints",
        "2.15",
        "",
        "train.py",
        arguments="--batch_size 16 --epochs 1 --adversarial_loss_mode wgan --gradient_penalty_mode wgan-gp",
        defect=Defect(
            "wrong scale of the penalty",
            [Edit("train.py", r"gp \* args\.gradient_penalty_weight", "gp * args.gradient_penalty_weight / 2")],
        ),
    ),
    Script(
        "beresandras/gan-flavours-keras",
        "b4bc42e",
        "GAN, train_step of its own, averaged generator, fit",
        "2.15",
        "",
        "train.py",
        edits=[
            Edit("train.py", r'dataset_name = "caltech_birds2011"', 'dataset_name = "cifar10"'),
            Edit("train.py", "image_size = 64 ", "image_size = 32 "),
            Edit("train.py", "batch_size = 128", "batch_size = 16"),
            Edit("train.py", "width = 128", "width = 16"),
            Edit("train.py", "depth = 4 ", "depth = 3 "),
            Edit("train.py", "num_epochs = 400", "num_epochs = 2"),
            Edit("metrics.py", 'weights="imagenet"', "weights=None"),
        ],
        defect=Defect("another decay of the average", [Edit("train.py", r"ema = 0\.99", "ema = 0.98")]),
    ),
    Script(
        "fchollet/deep-learning-with-python-notebooks",
        "dea84a4",
        "VAE, train_step of its own, eager fit, notebook",
        "2.15",
        "second_edition",
        "chapter12_part04_variational-autoencoders.py",
        data=["cells", ".", "chapter12_part04_variational-autoencoders.ipynb"],
        edits=[Edit("chapter12_part04_variational-autoencoders.py", r"\bn = 30", "n = 3")],
        defect=Defect(
            "an example lost",
            [
                Edit(
                    "chapter12_part04_variational-autoencoders.py",
                    r"mnist_digits = np\.concatenate\(\[x_train,",
                    "mnist_digits = np.concatenate([x_train[1:],",
                )
            ],
        ),
    ),
    Script(
        "anita-hu/TF2-RL",
        "a02c9c0",
        "DDPG in float64, prioritized replay",
        "2.6",
        "DDPG",
        "TF2_DDPG_Basic.py",
        edits=[Edit("TF2_DDPG_Basic.py", "import imageio\n", "")],
    ),
    Script(
        "zorgness/greenia",
        "d6ee256",
        "mixed precision, fit",
        "2.15",
        "",
        "main.py",
        edits=[Edit("main.py", "epochs=10", "epochs=1")],
    ),
    Script(
        "PhotonicGluon/Keras-MatMulLess",
        "6c1ae06",
        "Keras 3, transformer of layers of its own, fit",
        "2.21",
        "",
        ".github/workflows/training_scripts/transformers.py",
        edits=[
            Edit(
                ".github/workflows/training_scripts/transformers.py",
                "import keras_mml",
                "import sys; sys.path.append('.')\nimport keras_mml",
            )
        ],
    ),
)
