"""Public models that docs/make_exports.py trains for a few steps and exports.

``python docs/exported_models.py NAME FOLDER`` runs in the model's project. It trains the model on random data and
writes it to FOLDER, with ``data.npz``, ``expected.npz`` (what the model itself predicts) and ``ports.json``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
from typing import Any, Callable, Mapping, NamedTuple, Sequence
from unittest import mock

import numpy as np
from record_list import Edit

ZOO = "Ascend/ModelZoo-TensorFlow", "a2c3332"
_SLIM = "rwightman/tensorflow-models-slim", "c4e4729"
_CTR = "lambdaji/tf_repos", "b531ff1"
_PYTHON2 = r"= map\((.*)\)", r"= list(map(\1))"


class Network(NamedTuple):
    """A model in the graph of a session.

    Attributes:
        inputs: placeholders, and the values they are fed.
        outputs: what it predicts.
        head: the numbers that are trained.
        modes: placeholders, and their values in training and in prediction.
    """

    inputs: Mapping[Any, np.ndarray]
    outputs: Sequence[Any]
    head: Any
    modes: Mapping[Any, Sequence[Any]] = {}


class Model(NamedTuple):
    """A public model.

    Attributes:
        kind: of source that is exported.
        repository, commit: on GitHub.
        folder: of the project in the repository.
        tensorflow: the version it runs with.
        make: trains the model and writes it to a folder.
        readme: the vendor's page with a line of atc, "" without one.
        edits: for today's Python.
    """

    kind: str
    repository: str
    commit: str
    folder: str
    tensorflow: str
    make: Callable[[str], None]
    readme: str = ""
    edits: Sequence[Edit] = ()


def images(*shape: int) -> np.ndarray:
    """Return random numbers from 0 to 1."""
    return np.random.RandomState(3).rand(*shape).astype(np.float32)


def indices(most: int, *shape: int) -> np.ndarray:
    """Return random integers from 0 to below `most`."""
    return np.random.RandomState(3).randint(0, most, shape).astype(np.int32)


def keep(
    folder: str,
    inputs: Mapping[str, tuple[str, np.ndarray]],
    outputs: Mapping[str, tuple[str, np.ndarray]],
    source: str,
    constants: Mapping[str, Any] | None = None,
) -> None:
    """Write inputs and outputs by key: the tensor, "" for that of the signature, and the value.

    The source is a path in the folder.
    """
    np.savez(os.path.join(folder, "data.npz"), **{key: value for key, (_, value) in inputs.items()})
    np.savez(os.path.join(folder, "expected.npz"), **{key: value for key, (_, value) in outputs.items()})
    ports = {
        "source": source,
        "inputs": [
            f"{key}{name and '=' + name}:{','.join(map(str, value.shape))}" for key, (name, value) in inputs.items()
        ],
        "outputs": [f"{key}={name}" for key, (name, _) in outputs.items() if name],
        "set": [f"{name}={value}" for name, value in (constants or {}).items()],
    }
    with open(os.path.join(folder, "ports.json"), "w", encoding="utf-8") as stream:
        json.dump(ports, stream)


def stand_in(*names: str) -> None:
    """Make modules of nothing for packages that the model's graph does not need."""
    sys.modules.update({name: mock.MagicMock(name=name) for name in names})


def session(build: Callable[[bool], Network], of_training: bool = False) -> Callable[[str], None]:
    """Return a maker of a checkpoint.

    Args:
        build: makes the graph for training or for prediction.
        of_training: True if the graph of training is exported, False for that of prediction.
    """

    def make(folder: str) -> None:
        import tensorflow.compat.v1 as tf

        trained = os.path.join(folder, "trained")
        with tf.Graph().as_default(), tf.Session() as running:
            tf.set_random_seed(5)
            made = build(True)
            loss = tf.reduce_mean(tf.square(made.head - 0.1))
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
                step = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
            saver = tf.train.Saver(tf.global_variables())
            running.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            for _ in range(3):
                running.run(step, {**made.inputs, **{each: value[0] for each, value in made.modes.items()}})
            saver.save(running, trained)
        with tf.Graph().as_default(), tf.Session() as running:
            made = build(False)
            saver = tf.train.Saver(tf.global_variables())
            saver.restore(running, trained)
            feeds = {**made.inputs, **{each: value[1] for each, value in made.modes.items()}}
            values = running.run(made.outputs, feeds)
            saver.save(running, os.path.join(folder, "model"))
            keep(
                folder,
                {f"in{at}": (each.name, value) for at, (each, value) in enumerate(made.inputs.items())},
                {f"out{at}": (each.name, value) for at, (each, value) in enumerate(zip(made.outputs, values))},
                "trained" if of_training else "model",
                {each.op.name: value[1] for each, value in made.modes.items()},
            )

    return make


def keras(build: Callable[[], tuple[Any, np.ndarray]], file: str) -> Callable[[str], None]:
    """Return a maker of a Keras file or SavedModel.

    Args:
        build: makes the model and its input.
        file: its name.
    """

    def make(folder: str) -> None:
        import tensorflow as tf

        tf.random.set_seed(5)
        model, value = build()
        model.compile("sgd", "mse")
        target = tf.nest.map_structure(lambda each: np.zeros_like(each) + 0.1, model.predict(value, verbose=0))
        model.fit(value, target, epochs=3, batch_size=len(value), verbose=0)
        expected = tf.nest.flatten(model.predict(value, verbose=0))
        model.save(os.path.join(folder, file))
        key = (model.input_names or ["input_1"])[0]  # a subclassed model has none
        keep(folder, {key: ("", value)}, {f"out{at}": ("", each) for at, each in enumerate(expected)}, file)

    return make


def edsr(training: bool) -> Network:
    """Super resolution of the vendor's offline models."""
    import tensorflow as tf

    stand_in("cv2")
    network = importlib.import_module("edsr").Edsr(B=4, F=32, scale=2)
    low = tf.placeholder(tf.float32, [None, 48, 48, 3], name="LR")
    made = network.model_pb(low)
    return Network({low: images(1, 48, 48, 3)}, [made], made)


def adda(training: bool) -> Network:
    """LeNet of domain adaptation."""
    import tensorflow as tf

    stand_in("click", "tqdm", "tflearn", "yaml")
    network = importlib.import_module("adda").models.get_model_fn("lenet")
    image = tf.placeholder(tf.float32, [1, 28, 28, 1], name="input_image")
    made, _ = network(image, is_training=training)
    return Network({image: images(1, 28, 28, 1)}, [tf.argmax(made, -1, name="output")], made)


def har(training: bool) -> Network:
    """Stacked LSTM over sensors."""
    import tensorflow as tf

    config = types.SimpleNamespace(
        n_steps=128,
        n_classes=6,
        n_inputs=9,
        n_hidden=28,
        bias_mean=0.3,
        weights_stddev=0.2,
        use_bidirectionnal_cells=False,
        also_add_dropout_between_stacked_cells=False,
        n_layers_in_highway=0,
        n_stacked_layers=3,
    )
    series = tf.placeholder(tf.float32, [None, 128, 9], name="X")
    made = importlib.import_module("lstm_architecture").LSTM_network(series, config)
    return Network({series: images(1, 128, 9)}, [tf.argmax(made, -1, output_type=tf.int32, name="output")], made)


def cartoon(training: bool) -> Network:
    """Generator of cartoons with its guided filter."""
    import tensorflow as tf

    stand_in("cv2", "tqdm")
    image = tf.placeholder(tf.float32, [None, 256, 256, 3], name="input")
    made = importlib.import_module("network").unet_generator(image)
    made = importlib.import_module("guided_filter").guided_filter(image, made, r=1, eps=5e-3)
    return Network({image: images(1, 256, 256, 3)}, [made], made)


def pose(training: bool) -> Network:
    """3D pose from 2D, with the model's own placeholders for dropout and batch normalization."""

    made = importlib.import_module("linear_model").LinearModel(128, 2, True, True, True, 128, 1e-3, "log")
    modes = {made.isTraining: (True, False), made.dropout_keep_prob: (0.5, 1.0)}
    return Network({made.encoder_inputs: images(128, 32)}, [made.outputs], made.outputs, modes)


def pridnet(training: bool) -> Network:
    """Denoising of images."""
    import tensorflow as tf

    image = tf.placeholder(tf.float32, [None, 256, 256, 1], name="input")
    made = importlib.import_module("network").network(image)
    return Network({image: images(1, 256, 256, 1)}, [tf.minimum(tf.maximum(made, 0), 1, name="output")], made)


def slim(file: str, name: str, scope: str, size: int) -> Callable[[bool], Network]:
    """Return the builder of a network of TF-Slim, of which the vendor converts the published weights."""

    def build(training: bool) -> Network:
        import tensorflow as tf

        nets = importlib.import_module(f"nets.{file}")
        image = tf.placeholder(tf.float32, [None, size, size, 3], name="input")
        with tf.contrib.slim.arg_scope(getattr(nets, scope)()):
            made, points = getattr(nets, name)(image, num_classes=1001, is_training=training)
        made = tf.reshape(made, [-1, 1001])
        prediction = points.get("Predictions", points.get("predictions"))
        return Network({image: images(1, size, size, 3)}, [prediction, made], made)  # the softmax may be saturated

    return build


def text_cnn(training: bool) -> Network:
    """Convolutions over words."""
    network = importlib.import_module("text_cnn").TextCNN(20, 2, 100, 16, [3, 4, 5], 8)
    modes = {network.dropout_keep_prob: (0.5, 1.0)}
    return Network({network.input_x: indices(100, 4, 20)}, [network.scores, network.predictions], network.scores, modes)


def text_rnn(training: bool) -> Network:
    """GRU over characters."""
    module = importlib.import_module("rnn_model")
    config = module.TRNNConfig()
    config.seq_length, config.vocab_size, config.hidden_dim, config.embedding_dim = 20, 100, 16, 16
    network = module.TextRNN(config)
    modes = {network.keep_prob: (0.8, 1.0)}
    return Network({network.input_x: indices(100, 4, 20)}, [network.logits, network.y_pred_cls], network.logits, modes)


def char_rnn(training: bool) -> Network:
    """LSTM that writes text."""
    args = types.SimpleNamespace(
        model="lstm",
        rnn_size=32,
        num_layers=2,
        batch_size=1,
        seq_length=1,
        vocab_size=50,
        grad_clip=5.0,
        input_keep_prob=1.0,
        output_keep_prob=1.0,
    )
    network = importlib.import_module("model").Model(args, training)
    return Network({network.input_data: indices(50, 1, 1)}, [network.probs], network.logits)


def vae(training: bool) -> Network:
    """Decoder of a variational autoencoder."""
    import tensorflow as tf

    module = importlib.import_module("vae")
    image, keep_prob = tf.placeholder(tf.float32, [4, 784]), tf.placeholder(tf.float32)
    made = module.autoencoder(image, image, 784, 20, 64, keep_prob)[0]
    if training:
        return Network({image: images(4, 784)}, [], made, {keep_prob: (0.9, 1.0)})
    code = tf.placeholder(tf.float32, [4, 20], name="latent_variable")
    made = module.decoder(code, 784, 64)
    return Network({code: images(4, 20)}, [made], made)


def east(training: bool) -> Network:
    """Text detection, ResNet-50 with batch normalization."""
    import tensorflow as tf

    image = tf.placeholder(tf.float32, [1, 64, 64, 3], name="input_images")
    score, geometry = importlib.import_module("model").model(image, is_training=training)
    # Of little contrast: averages of three steps do not scale, and sigmoids of logits in the thousands are rounding.
    value = np.float32([123.68, 116.78, 103.94]) + images(1, 64, 64, 3) / 10
    return Network({image: value}, [score, geometry], score)


def estimated(estimator: Any, key: str, values: Any, labels: Any = None) -> np.ndarray:
    """Train an Estimator for three steps, and return what it predicts then.

    Args:
        estimator: of TensorFlow or for TPUs.
        key: of the prediction.
        values, labels: of a batch; None if the values have the labels.
    """
    import tensorflow as tf

    batch = values if labels is None else (values, labels)
    estimator.train(lambda params=None: tf.data.Dataset.from_tensors(batch).repeat(3), steps=3)
    found = estimator.predict(lambda params=None: tf.data.Dataset.from_tensors(values))
    return np.float32([each[key] for each in found])


def ctr(name: str) -> Callable[[str], None]:
    """Return a maker of the SavedModel of an Estimator for click rates, exported as its script does."""

    def make(folder: str) -> None:
        import tensorflow as tf

        module = importlib.import_module(name)
        tf.flags.FLAGS(["script"])
        params = {
            "field_size": 6,
            "feature_size": 40,
            "embedding_size": 8,
            "learning_rate": 1e-3,
            "batch_norm_decay": 0.9,
            "l2_reg": 1e-3,
            "deep_layers": "16,8",
            "cross_layers": 2,
            "attention_layers": "8",
            "dropout": "0.5,0.5",
            "batch_size": 4,
        }
        if "batch_norm" in tf.flags.FLAGS:
            tf.flags.FLAGS.batch_norm = True
        values = {"feat_ids": indices(40, 4, 6), "feat_vals": images(4, 6)}
        estimator = tf.estimator.Estimator(module.model_fn, os.path.join(folder, "steps"), params=params)
        expected = estimated(estimator, "prob", values, np.float32([0, 1, 0, 1]))
        placeholders = {
            "feat_ids": tf.placeholder(tf.int64, [None, 6], name="feat_ids"),
            "feat_vals": tf.placeholder(tf.float32, [None, 6], name="feat_vals"),
        }
        receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(placeholders)
        saved = estimator.export_savedmodel(os.path.join(folder, "saved"), receiver)
        inputs = {
            "feat_ids": ("feat_ids:0", values["feat_ids"].astype(np.int64)),
            "feat_vals": ("feat_vals:0", values["feat_vals"]),
        }
        keep(folder, inputs, {"prob": ("", expected)}, os.path.relpath(saved.decode(), folder))

    return make


def triplets(folder: str) -> None:
    """Train embeddings of digits with an Estimator; its checkpoint has the graph of training."""
    import tensorflow as tf

    module = importlib.import_module("model.model_fn")
    params = types.SimpleNamespace(
        image_size=28,
        num_channels=8,
        use_batch_norm=True,
        bn_momentum=0.9,
        margin=0.5,
        embedding_size=16,
        triplet_strategy="batch_all",
        squared=False,
        learning_rate=1e-3,
    )
    values = images(4, 784)
    estimator = tf.estimator.Estimator(module.model_fn, os.path.join(folder, "steps"), params=params)
    expected = estimated(estimator, "embeddings", values, np.int64([0, 0, 1, 1]))
    inputs = {"images": ("IteratorGetNext:0", values)}
    keep(folder, inputs, {"embeddings": ("model/fc_1/dense/BiasAdd", expected)}, "steps")


def bert(folder: str) -> None:
    """Train a classifier of sentences with the TPUEstimator of BERT; its checkpoint has the graph of training."""
    import tensorflow as tf

    modeling, script = importlib.import_module("modeling"), importlib.import_module("run_classifier")
    config = modeling.BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    function = script.model_fn_builder(config, 2, None, 1e-3, 3, 0, False, False)
    values = {
        "input_ids": indices(100, 4, 16),
        "input_mask": indices(2, 4, 16),
        "segment_ids": indices(2, 4, 16),
        "label_ids": indices(2, 4),
        "is_real_example": np.ones(4, np.int32),
    }

    estimator = tf.contrib.tpu.TPUEstimator(
        function,
        config=tf.contrib.tpu.RunConfig(model_dir=os.path.join(folder, "steps")),
        use_tpu=False,
        train_batch_size=4,
        predict_batch_size=4,
    )
    expected = estimated(estimator, "probabilities", values)
    order, fed = sorted(values), ("input_ids", "input_mask", "segment_ids")
    inputs = {key: (f"IteratorGetNext:{order.index(key)}", values[key]) for key in fed}
    keep(folder, inputs, {"probabilities": ("loss/Softmax", expected)}, "steps")


def unet() -> tuple[Any, np.ndarray]:
    """U-Net of keras_unet_collection."""
    stand_in("PIL")
    models = importlib.import_module("keras_unet_collection.models")
    made = models.unet_2d((64, 64, 3), [8, 16, 32], 2, output_activation="Softmax", batch_norm=True)
    return made, images(2, 64, 64, 3)


def resnet() -> tuple[Any, np.ndarray]:
    """ResNet-18 of classification_models."""
    made, _ = importlib.import_module("classification_models.tfkeras").Classifiers.get("resnet18")
    return made((64, 64, 3), weights=None, classes=10), images(2, 64, 64, 3)


def vit() -> tuple[Any, np.ndarray]:
    """Vision transformer; gelu was in tensorflow_addons."""
    import tensorflow as tf

    stand_in("tensorflow_addons")
    sys.modules["tensorflow_addons"].activations.gelu = tf.nn.gelu
    made = importlib.import_module("model").VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_classes=10, d_model=32, num_heads=4, mlp_dim=64, channels=3
    )
    return made, images(2, 32, 32, 3)


def super_resolution() -> tuple[Any, np.ndarray]:
    """EDSR with Lambda layers."""
    return importlib.import_module("model.edsr").edsr(2, num_filters=16, num_res_blocks=2), images(2, 24, 24, 3)


def tcn() -> tuple[Any, np.ndarray]:
    """Temporal convolutions with the compiled network of keras-tcn."""
    made = importlib.import_module("tcn").compiled_tcn(
        3, 5, nb_filters=8, kernel_size=3, dilations=[1, 2, 4], nb_stacks=1, max_len=20, use_batch_norm=True
    )
    return made, images(2, 20, 3)


def facenet(training: bool) -> Network:
    """Inception-ResNet for faces, whose graph has the mode as a placeholder."""
    import tensorflow as tf

    image, phase = (
        tf.placeholder(tf.float32, [None, 96, 96, 3], name="input"),
        tf.placeholder(tf.bool, name="phase_train"),
    )
    made, _ = importlib.import_module("inception_resnet_v1").inference(image, 0.8, phase, weight_decay=5e-4)
    embeddings = tf.nn.l2_normalize(made, 1, 1e-10, name="embeddings")
    return Network({image: images(2, 96, 96, 3)}, [embeddings], made, {phase: (True, False)})


def wavenet(training: bool) -> Network:
    """Dilated causal convolutions over a waveform."""
    import tensorflow as tf

    stand_in("librosa")
    network = importlib.import_module("wavenet").WaveNetModel(1, [1, 2, 4, 8], 2, 16, 16, 32)
    wave = tf.placeholder(tf.int32, [200], name="samples")
    made = network.predict_proba(wave)
    return Network({wave: indices(256, 200)}, [made], made)


def ugatit(training: bool) -> Network:
    """Generator with attention and adaptive instance normalization."""
    import tensorflow as tf

    stand_in("cv2", "scipy.misc")
    with mock.patch.object(sys, "argv", ["main.py", "--ch=8", "--light=true"]):
        network = importlib.import_module("UGATIT").UGATIT(None, importlib.import_module("main").parse_args())
    image = tf.placeholder(tf.float32, [1, 64, 64, 3], name="test_domain_A")
    made, _, heatmap = network.generator(image)
    return Network({image: images(1, 64, 64, 3)}, [made, heatmap], made)


def mtcnn() -> tuple[Any, np.ndarray]:
    """The last network of MTCNN, a subclass with three outputs."""
    return importlib.import_module("mtcnn").ONet(), images(4, 48, 48, 3)


def zoo(folder: str, make: Callable[[str], None], acl: str, page: str = "README.md") -> Model:
    """Return a model whose project is in the vendor's collection; `page` has the line of atc."""
    return Model("ACL", *ZOO, folder, "1.15", make, f"{_ACL}{acl}/{page}")


def click_rate(name: str, *edits: Edit) -> Model:
    """Return a model of lambdaji/tf_repos."""
    return Model("Estimator", *_CTR, "deep_ctr/Model_pipeline", "1.15", ctr(name), edits=edits)


def networks(file: str, name: str, scope: str, acl: str) -> Model:
    """Return a model of TF-Slim; the graph of training is exported."""
    make = session(slim(file, name, scope, 224), of_training=True)
    return Model("ACL", *_SLIM, "", "1.15", make, f"ACL_TensorFlow/built-in/cv/{acl}/README.md")


_ACL = "ACL_TensorFlow/contrib/cv/"
MODELS: Mapping[str, Model] = {
    "EDSR": zoo(_ACL + "EDSR_ID1263_for_ACL", session(edsr), "EDSR_ID1263_for_ACL"),
    "ADDA": zoo(_ACL + "ADDA_ID1026_for_ACL", session(adda), "ADDA_ID1026_for_ACL"),
    "LSTM-HAR": zoo(_ACL + "LSTM-HAR_ID2084_for_ACL", session(har), "LSTM-HAR_ID2084_for_ACL"),
    "Cartoonization": zoo(
        "TensorFlow/contrib/cv/White_Box_Cartoonization_ID2089_for_TensorFlow/test_code",
        session(cartoon),
        "White-Box-Cartoonization_ID2089_for_ACL",
    ),
    "3D pose": zoo(_ACL + "3D-POSE-BASELINE_ID0795_for_ACL/src", session(pose), "3D-POSE-BASELINE_ID0795_for_ACL"),
    "PRIDNet": zoo(
        "TensorFlow/contrib/cv/PRIDNET_ID1275_for_TensorFlow", session(pridnet), "PRIDNET_ID1275_for_ACL", "run_atc.sh"
    ),
    "MobileNetV1": networks("mobilenet_v1", "mobilenet_v1", "mobilenet_v1_arg_scope", "MobileNetv1_for_ACL"),
    "GoogleNet": networks("inception_v1", "inception_v1", "inception_v1_arg_scope", "GoogleNet_for_ACL"),
    "InceptionV2": networks("inception_v2", "inception_v2", "inception_v2_arg_scope", "Inceptionv2_for_ACL"),
    "ResNet50V1": networks("resnet_v1", "resnet_v1_50", "resnet_arg_scope", "Resnet50v1_for_ACL"),
    "DeepFM": click_rate("DeepFM", Edit("DeepFM.py", *_PYTHON2)),
    "NFM": click_rate("NFM", Edit("NFM.py", *_PYTHON2)),
    "DCN": click_rate("DCN"),
    "triplets": Model("Estimator", "omoindrot/tensorflow-triplet-loss", "fc69836", "", "1.15", triplets),
    "BERT": Model("Estimator", "google-research/bert", "eedf571", "", "1.15", bert),
    "U-Net": Model("Keras", "yingkaisha/keras-unet-collection", "13e0e7e", "", "2.15", keras(unet, "model.h5")),
    "ResNet18": Model("Keras", "qubvel/classification_models", "a0f006e", "", "2.15", keras(resnet, "model.h5")),
    "ViT": Model("Keras", "emla2805/vision-transformer", "9e6e782", "", "2.15", keras(vit, "saved")),
    "EDSR, Lambda": Model("Keras", "krasserm/super-resolution", "179320c", "", "2.6", keras(super_resolution, "saved")),
    "TCN": Model("Keras", "philipperemy/keras-tcn", "7576256", "tcn", "2.15", keras(tcn, "saved")),
    "TextCNN": Model(
        "session", "dennybritz/cnn-text-classification-tf", "18762b4", "", "1.15", session(text_cnn, of_training=True)
    ),
    "TextRNN": Model(
        "session", "gaussic/text-classification-cnn-rnn", "90dd55c", "", "1.15", session(text_rnn, of_training=True)
    ),
    "char-rnn": Model("session", "sherjilozair/char-rnn-tensorflow", "4bff62d", "", "1.15", session(char_rnn)),
    "VAE": Model("session", "hwalsuklee/tensorflow-mnist-VAE", "e7903ac", "", "1.15", session(vae)),
    "EAST": Model("session", "argman/EAST", "dca414d", "", "1.15", session(east, of_training=True)),
    "FaceNet": Model(
        "session, held out",
        "davidsandberg/facenet",
        "096ed77",
        "src/models",
        "1.15",
        session(facenet, of_training=True),
    ),
    "WaveNet": Model("session, held out", "ibab/tensorflow-wavenet", "3c973c0", "", "1.15", session(wavenet)),
    "UGATIT": Model("session, held out", "taki0112/UGATIT", "d508e8f", "", "1.15", session(ugatit)),
    "AFM": click_rate("AFM", Edit("AFM.py", *_PYTHON2), Edit("AFM.py", r"\)/2", ")//2"))._replace(
        kind="Estimator, held out"
    ),
    "MTCNN": Model(
        "Keras, held out",
        "YunYang1994/TensorFlow2.0-Examples",
        "299fd66",
        "4-Object_Detection/MTCNN",
        "2.15",
        keras(mtcnn, "saved"),
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Train a model and write it."""
    name, folder = arguments
    sys.path.insert(0, os.getcwd())
    import npu_shim.alias  # noqa: F401

    os.makedirs(folder, exist_ok=True)
    MODELS[name].make(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
