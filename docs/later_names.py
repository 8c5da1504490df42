"""Public scripts with names of later versions, which docs/make_later_names.py compares across versions.

The examples of Keras that import `keras` need Keras 3, so that the original runs with TensorFlow 2.21.
"""

from __future__ import annotations

from record_list import Edit, Program

# Versions draw other random numbers in training, so dropout and random changes of images are switched off.
QUIET = (
    (r"\bDropout\((?:rate=)?[\w.]+", "Dropout(0.0"),
    (r"\b(\w*dropout)=0\.\d+", r"\1=0.0"),
    (r"(?m)^(\w*dropout(?:_rate)?|stochastic_depth_rate) = 0\.\d+", r"\1 = 0.0"),
    (r'"(\w*_drop)": 0\.\d+', r'"\1": 0.0'),
    (r"RandomCrop\(", "CenterCrop("),
    (r"Random(?:Flip|Rotation|Zoom|Contrast|Translation)\((?:[^()]|\([^()]*\))*\)", "Rescaling(1.0)"),
)
_PART = (r"\b40_?000\b", "800")  # of the examples are for training
_EPOCH = (r"(?m)^EPOCHS = \d+", "EPOCHS = 1")  # they compute the rates of all steps before training
_BAR = (r"from tqdm import tqdm", "tqdm = iter")


def _script(path: str, names: str, version: str, *edits: tuple[str, str]) -> Program:
    folder, _, name = path.rpartition("/")
    made = [Edit(name, pattern, replacement) for pattern, replacement in edits]
    return Program("awsaf49/keras-io", "7b3243a7", names, version, folder, name, edits=made)


def _batch(name: str = "batch_size") -> tuple[str, str]:
    return rf"(?m)^{name} = \d+", f"{name} = 16"


SCRIPTS: tuple[Program, ...] = (
    _script(
        "examples/generative/pixelcnn.py",
        "ops, random",
        "2.21",
        _BAR,
        (r"batch_size=128", "batch_size=8"),
        (r"(?s)\nfrom IPython.*", "\n"),
    ),
    _script("examples/keras_recipes/antirectifier.py", "ops", "2.21", _batch()),
    _script(
        "examples/keras_recipes/debugging_tips.py",
        "ops, random, compute_loss",
        "2.21",
        (r"keras\.utils\.plot_model\(.*", ""),
    ),
    _script("examples/keras_recipes/reproducibility_recipes.py", "set_random_seed", "2.15"),
    _script("examples/nlp/bidirectional_lstm_imdb.py", "utils.pad_sequences", "2.15"),
    _script(
        "examples/nlp/text_classification_with_switch_transformer.py",
        "ops, utils.pad_sequences",
        "2.21",
        (r"keras\.random\.uniform\(\s+shape=(router_logits\.shape), minval=0\.9, maxval=1\.1", r"ops.ones(\1"),
    ),
    _script("examples/nlp/text_classification_with_transformer.py", "utils.pad_sequences", "2.15"),
    _script("examples/vision/attention_mil_classification.py", "ops", "2.21", _BAR),
    _script("examples/vision/cct.py", "AdamW, ops, random", "2.21", _batch()),
    _script("examples/vision/convmixer.py", "AdamW", "2.15", _batch()),
    _script(
        "examples/vision/cutmix.py",
        "ops, random, set_random_seed",
        "2.21",
        (r"keras\.random\.uniform\(\(1,\), minval=0, maxval=IMG_SIZE\)", "9.0 * keras.ops.ones((1,))"),
        # In 2.6 a shuffle below another one draws twice in each pass. So training is the first pass.
        (r"next\(iter\(train_ds_cmu\)\)", "next(iter(test_ds))"),
    ),
    _script("examples/vision/eanet.py", "AdamW, ops", "2.21", _batch()),
    _script(
        "examples/vision/focal_modulation_network.py",
        "optimizers.experimental, set_random_seed",
        "2.15",
        _batch("BATCH_SIZE"),
        _PART,
        _EPOCH,
        (r"\[2, 3, 2\]", "[1, 1, 1]"),  # blocks
    ),
    _script("examples/vision/forwardforward.py", "optimizers.legacy", "2.15", (r"batch\(\d+\)", "batch(50)")),
    _script("examples/vision/knowledge_distillation.py", "ops, compute_loss", "2.21"),
    _script(
        "examples/vision/masked_image_modeling.py",
        "AdamW, set_random_seed",
        "2.15",
        _batch("BATCH_SIZE"),
        _PART,
        _EPOCH,
        (r"(?m)^ENC_LAYERS = 6", "ENC_LAYERS = 2"),
        (r"keras\.utils\.array_to_img", "np.asarray"),
        (r"(?s)\n# Measure its performance\..*", "\n"),  # takes two results of 2.15, which has one
    ),
    _script("examples/vision/mixup.py", "ops", "2.21", (r"val_samples = 2000", "val_samples = 200")),
    _script("examples/vision/mlp_image_classification.py", "AdamW, ops", "2.21", _batch()),
    _script(
        "examples/vision/patch_convnet.py",
        "AdamW, ops, set_random_seed",
        "2.21",
        _batch("BATCH_SIZE"),
        _PART,
        _EPOCH,
        (r"(?m)^DIMENSIONS = 256", "DIMENSIONS = 32"),
        (r"(?s)\nurl = .*", "\n"),
    ),
    _script(
        "examples/vision/semantic_image_clustering.py",
        "AdamW, ops",
        "2.21",
        _BAR,
        (r"batch_size=512", "batch_size=16"),
        (r"(?m)^batch_size = 500", "batch_size = 650"),  # divides the images of the stand-in
        (r"(?s)\nnum_images = 8\n.*", "\n"),
    ),
    _script("examples/vision/siamese_contrastive.py", "ops", "2.21", ("30000", "500")),
    _script("examples/vision/swin_transformers.py", "AdamW, ops", "2.21", _batch()),
    _script(
        "examples/vision/temporal_latent_bottleneck.py",
        "AdamW, set_random_seed",
        "2.15",
        (r'"batch_size": 2048', '"batch_size": 16'),
        (r'"mixed_precision": True', '"mixed_precision": False'),  # half precision is slow on a CPU
        (r'"image_size": 48', '"image_size": 32'),
        (r'"num_layers": 4', '"num_layers": 1'),
        _PART,
    ),
    _script("examples/vision/token_learner.py", "AdamW, ops", "2.21", _batch("BATCH_SIZE"), _PART),
    _script("guides/custom_train_step_in_tensorflow.py", "compute_loss, random", "2.21"),
)

_RMSPROP = "RMSprop of Keras 2.11 and later adds epsilon inside the root; gradients are equal"
_ADAM = "Adam of Keras 3 squares equal rows of a sparse gradient one by one; 2.15 adds them first"
_VARIANCE = "Keras 3 averages variances divided by N, the fused op of 2.6 those divided by N - 1; gradients are equal"
_LOGGED = "`compiled_metrics` of Keras 3 averages predictions into the logged loss; the loss and variables are equal"
# Of differences.
CAUSES = {
    "antirectifier.py": _RMSPROP,
    "patch_convnet.py": _LOGGED,
    "pixelcnn.py": "Keras of 2.6 divides the loss of the last batch, 2 images, by the 8 of `Input(batch_size=8)`",
    "semantic_image_clustering.py": _VARIANCE,
    "siamese_contrastive.py": _RMSPROP,
    "swin_transformers.py": _ADAM,
    "text_classification_with_switch_transformer.py": _ADAM,
}
