"""Write synthetic data of the shapes that the programs of the record read.

``python docs/public_data.py records FOLDER`` writes tokens as TFRecords, ``digits FOLDER TRAIN TEST [gz]`` images in
the format of MNIST, ``libsvm FOLDER``, ``pictures FOLDER NUMBER HEIGHT WIDTH END``, ``waves FOLDER NUMBER SECONDS``,
``news FOLDER LABELS``, ``census FOLDER``, ``translation FOLDER``, ``encoded FOLDER NAMES``, ``masked FOLDER``,
``folders FOLDER NUMBER SIZE NAME ...`` (pictures in each of the named folders), ``volumes FOLDER NUMBER SIZE`` and
``cells FOLDER NOTEBOOK`` (its code as a script) what their names say. ``arrays``, ``packed``, ``hdf5``,
``protos``, ``examples``, ``boxes``, ``graph`` and ``lines`` write what their arguments describe.
"""

from __future__ import annotations

import collections
import glob
import gzip
import json
import os
import pickle
import re
import struct
import sys
import wave
import zlib
from typing import Any, Callable, Sequence

import numpy as np


def records(folder: str) -> None:
    """Write 8 files of 8 sequences of tokens, of 6 to 15 tokens each."""
    import tensorflow as tf

    random = np.random.RandomState(0)
    for number in range(8):
        with tf.io.TFRecordWriter(os.path.join(folder, f"{number}.tfrecord")) as writer:
            for _ in range(8):
                tokens = list(np.cumsum(random.randint(1, 4, random.randint(6, 16))) % 90 + 5)
                lists = {"inputs": [3] + tokens, "targets": tokens + [4]}
                features = {
                    name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                    for name, values in lists.items()
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())


def digits(folder: str, train: str, test: str, end: str = "") -> None:
    """Write images of 28 x 28 with noise around a centre for each of 10 labels."""
    centres = np.random.RandomState(5).randint(100, 130, (10, 28, 28))
    for kind, number, seed in (("train", int(train), 0), ("t10k", int(test), 1)):
        random = np.random.RandomState(seed)
        labels = random.randint(0, 10, number).astype(np.uint8)
        noise = random.randint(-100, 100, (number, 28, 28))
        images = np.clip(centres[labels] + noise, 0, 255).astype(np.uint8)
        for name, header, values in (
            ("images-idx3-ubyte", struct.pack(">IIII", 2051, number, 28, 28), images),
            ("labels-idx1-ubyte", struct.pack(">II", 2049, number), labels),
        ):
            path = os.path.join(folder, f"{kind}-{name}" + (f".{end}" if end else ""))
            with gzip.open(path, "wb") if end else open(path, "wb") as stream:
                stream.write(header + values.tobytes())


def libsvm(folder: str) -> None:
    """Write 4000 and 200 lines of a label and 10 features of 100, as ``tr.libsvm``, ``va.libsvm`` and ``te.libsvm``."""
    random = np.random.RandomState(0)
    for name, number in (("tr", 4000), ("va", 200), ("te", 200)):
        with open(os.path.join(folder, f"{name}.libsvm"), "w", encoding="utf-8") as stream:
            for _ in range(number):
                features = " ".join(f"{10 * field + random.randint(10)}:{random.rand():.4f}" for field in range(10))
                stream.write(f"{random.randint(2)} {features}\n")


def pictures(folder: str, number: str, height: str, width: str, end: str) -> None:
    """Write noise as PNG files ``LABEL_NUMBER.END``, with 6 labels. TensorFlow decodes them as JPEG, too."""
    random = np.random.RandomState(0)
    for each in range(int(number)):
        pixels = random.randint(0, 256, (int(height), int(width), 3))
        with open(os.path.join(folder, f"{each % 6}_{each}.{end}"), "wb") as stream:
            stream.write(_png(pixels))


def _png(pixels: Any) -> bytes:
    """Return pixels with one or three channels as PNG."""
    height, width, channels = pixels.shape
    lines = np.zeros((height, channels * width + 1), np.uint8)  # begin with their filter, 0
    lines[:, 1:] = pixels.reshape(height, -1)
    made = b"\x89PNG\r\n\x1a\n"
    for kind, data in (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    ):
        made += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return made


def waves(folder: str, number: str, seconds: str) -> None:
    """Write tones with noise as 16 kHz sound."""
    random = np.random.RandomState(0)
    for each in range(int(number)):
        time = np.arange(int(16000 * float(seconds))) / 16000
        sound = 8000 * np.sin(2 * np.pi * (200 + 50 * each) * time) + random.randint(-500, 500, len(time))
        with wave.open(os.path.join(folder, f"p{225 + each}_001.wav"), "wb") as stream:
            stream.setparams((1, 2, 16000, 0, "NONE", ""))
            stream.writeframes(sound.astype("<i2").tobytes())


def news(folder: str, labels: str) -> None:
    """Write labelled texts as ``cnews.train.txt`` and for validation and test; the labels are separated by commas."""
    random = np.random.RandomState(0)
    for name, number in (("train", 2000), ("val", 200), ("test", 200)):
        with open(os.path.join(folder, f"cnews.{name}.txt"), "w", encoding="utf-8") as stream:
            for each in range(number):
                text = "".join(chr(97 + letter) for letter in random.randint(0, 26, random.randint(20, 200)))
                stream.write(f"{labels.split(',')[each % len(labels.split(','))]}\t{text}\n")


def census(folder: str) -> None:
    """Write people and their income as ``train.csv`` and ``test.csv``."""
    random = np.random.RandomState(0)
    for name, number in (("train", 4000), ("test", 200)):
        with open(os.path.join(folder, f"{name}.csv"), "w", encoding="utf-8") as stream:
            for age, low, high, hours in random.randint(17, 90, (number, 4)):
                work, school, state, job = (f" {kind}{low % 7}" for kind in ("work", "school", "state", "job"))
                person = f"{work}, {low * 1000},{school}, {low % 16},{state},{job}, Wife, White,"
                person += f"{' Male' if high % 2 else ' Female'}, {high}, {low}, {hours}, Cuba"
                stream.write(f"{age},{person},{' >50K' if low > high else ' <=50K'}\n")


def translation(folder: str) -> None:
    """Write 3000 pairs of sentences of 3 to 9 words, and vocabularies with counts."""
    random = np.random.RandomState(0)
    for name in ("corpora", "preprocessed"):
        os.mkdir(os.path.join(folder, name))
    pairs = [random.randint(0, 50, random.randint(3, 10)) for _ in range(3000)]
    for language, end in (("de", "en"), ("en", "er")):
        with open(os.path.join(folder, "corpora", f"train.tags.de-en.{language}"), "w", encoding="utf-8") as stream:
            stream.writelines(" ".join(_word(each, end) for each in pair) + "\n" for pair in pairs)
        words = ["<PAD>", "<UNK>", "<S>", "</S>", *(_word(each, end) for each in range(50))]
        with open(os.path.join(folder, "preprocessed", f"{language}.vocab.tsv"), "w", encoding="utf-8") as stream:
            stream.writelines(f"{each}\t1000\n" for each in words)


def _word(number: int, end: str) -> str:
    return chr(97 + number // 26) + chr(97 + number % 26) + end


def encoded(folder: str, names: str) -> None:
    """Write 200 pictures of 32 x 32 with labels as TFRecords, in a file for each of the names."""
    import tensorflow as tf

    pictures(folder, "200", "32", "32", "png")
    for name in names.split(","):
        with tf.io.TFRecordWriter(os.path.join(folder, name)) as writer:
            for each in range(200):
                with open(os.path.join(folder, f"{each % 6}_{each}.png"), "rb") as stream:
                    picture = stream.read()
                texts = {"encoded": picture, "encoded_image": picture, "format": b"png", "file_name": b"%d.png" % each}
                features = {
                    f"image/{key}": tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
                    for key, value in texts.items()
                }
                features["image/class/label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[each % 6]))
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())


def masked(folder: str) -> None:
    """Write 4 files of 60 sequences of 32 tokens, 5 of them masked, as TFRecords, and the model's ``config.json``."""
    import tensorflow as tf

    config = (
        '{"vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, '
        '"intermediate_size": 64, "max_position_embeddings": 32, "hidden_act": "gelu", "type_vocab_size": 2, '
        '"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "initializer_range": 0.02}'
    )
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as stream:
        stream.write(config)
    random = np.random.RandomState(0)
    for number in range(4):
        with tf.io.TFRecordWriter(os.path.join(folder, f"{number}.tfrecord")) as writer:
            for _ in range(60):
                lists = {
                    "input_ids": random.randint(0, 200, 32),
                    "input_mask": [1] * 32,
                    "segment_ids": [0] * 16 + [1] * 16,
                    "masked_lm_positions": random.choice(32, 5, replace=False),
                    "masked_lm_ids": random.randint(0, 200, 5),
                    "next_sentence_labels": random.randint(0, 2, 1),
                }
                features = {
                    key: tf.train.Feature(int64_list=tf.train.Int64List(value=value)) for key, value in lists.items()
                }
                features["masked_lm_weights"] = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0] * 5))
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())


def folders(folder: str, number: str, size: str, *names: str) -> None:
    """Write pictures with noise around a colour for each folder."""
    for seed, name in enumerate(names):
        random = np.random.RandomState(seed)
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for each in range(int(number)):
            colour = random.randint(60, 190, 3)
            _write(
                os.path.join(folder, name, f"{each:04}.jpg"),
                colour + random.randint(-60, 60, (int(size), int(size), 3)),
            )


def _write(path: str, image: Any) -> None:
    with open(path, "wb") as stream:
        stream.write(_jpeg(image))


def _jpeg(image: Any) -> bytes:
    """Return pixels as JPEG."""
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:  # TensorFlow 1 has no eager mode by default
        data: bytes = session.run(tf.io.encode_jpeg(np.clip(image, 0, 255).astype(np.uint8)))
    return data


def volumes(folder: str, number: str, size: str) -> None:
    """Write four scans of each patient, and their segmentation, as NIfTI files ``p0/p0_t1.nii``."""
    edge = int(size)
    header = struct.pack(
        "<i36x8h14xhh2x8f3f224x4s4x", 348, 3, *[edge] * 3, *[1] * 4, 16, 32, *[1] * 8, 352, 1, 0, b"n+1"
    )
    for patient in range(int(number)):
        random = np.random.RandomState(patient)
        os.makedirs(os.path.join(folder, f"p{patient}"))
        for name in ("flair", "t1", "t1ce", "t2", "seg"):
            values = random.choice([0, 1, 2, 4], (edge,) * 3) if name == "seg" else random.rand(edge, edge, edge)
            with open(os.path.join(folder, f"p{patient}", f"p{patient}_{name}.nii"), "wb") as stream:
                stream.write(header + values.astype("<f4").tobytes())


def cells(folder: str, notebook: str) -> None:
    """Write the code cells of a notebook as a script beside it, without commands of the shell and of IPython."""
    path = os.path.join(folder, notebook)
    with open(path, encoding="utf-8") as stream:
        read = json.load(stream)["cells"]
    code = ["".join(each["source"]) for each in read if each["cell_type"] == "code"]
    with open(re.sub(r"\.ipynb$", ".py", path), "w", encoding="utf-8") as stream:
        stream.write(re.sub(r"(?m)^([!%].*|\s*[!%]\w.*)$", "", "\n\n".join(code)) + "\n")


def arrays(folder: str, *specifications: str) -> None:
    """Write arrays of `NAME:SHAPE[:KIND]`, as ``x:8,2``, of random numbers, or of KIND ``classes`` one-hot rows."""
    for seed, specification in enumerate(specifications):
        name, shape, *kind = specification.split(":")
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        np.save(os.path.join(folder, name + ".npy"), _array(seed, shape, *kind))


def _array(seed: int, shape: str, kind: str = "") -> Any:
    """Return random numbers, integers below a limit, or of the kind ``classes`` one-hot rows."""
    random = np.random.RandomState(seed)
    sizes = [int(size) for size in shape.split(",")]
    if kind.isdigit():
        return random.randint(0, int(kind), sizes)
    return np.eye(sizes[-1])[random.randint(0, sizes[-1], sizes[0])] if kind else random.rand(*sizes)


def examples(folder: str, names: str, number: str, *features: str) -> None:
    """Write examples as TFRecords, in a file for each of the names, compressed in one that ends in .zz.

    A feature is ``KEY=text:VALUE``, ``KEY=float:COUNT``, or has random integers below a limit: ``KEY=int:LIMIT:COUNT``,
    ``KEY=png:LIMIT:HEIGHT,WIDTH,CHANNELS``, the same with ``jpeg``, ``KEY=TYPE:LIMIT:COUNT`` for the bytes of a type of
    NumPy. ``KEY=integers:3,4,4`` and ``KEY=numbers:0.1,0.5`` are the same in each example.
    """
    import tensorflow as tf

    random = np.random.RandomState(0)

    def made(kind: str, *rest: str) -> Any:
        if kind == "text":
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[rest[0].encode()]))
        if kind == "float":
            return tf.train.Feature(float_list=tf.train.FloatList(value=random.rand(int(rest[0]))))
        if kind == "integers":
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(each) for each in rest[0].split(",")]))
        if kind == "numbers":
            return tf.train.Feature(float_list=tf.train.FloatList(value=[float(each) for each in rest[0].split(",")]))
        values = random.randint(0, int(rest[0]), [int(size) for size in rest[1].split(",")])
        if kind == "int":
            return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        if kind == "jpeg":
            data = _jpeg(values)
        else:
            data = _png(values) if kind == "png" else values.astype(kind).tobytes()
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))

    for name in names.split(","):
        path = os.path.join(folder, name)
        with tf.io.TFRecordWriter(path, "ZLIB" if name.endswith(".zz") else "") as writer:
            for _ in range(int(number)):
                parts = (feature.split("=", 1) for feature in features)
                each = {key: made(*specification.split(":")) for key, specification in parts}
                writer.write(tf.train.Example(features=tf.train.Features(feature=each)).SerializeToString())


def packed(folder: str, name: str, *specifications: str) -> None:
    """Write arrays as ``NAME.npz``, each of `KEY:SHAPE[:KIND]` as of ``arrays``."""
    np.savez(os.path.join(folder, name), **_arrays(specifications))


def hdf5(folder: str, name: str, *specifications: str) -> None:
    """Write arrays into a file of HDF5, each of `KEY:SHAPE[:KIND]` as of ``arrays``."""
    import h5py

    with h5py.File(os.path.join(folder, name), "w") as file:
        for key, value in _arrays(specifications).items():
            file[key] = value


def _arrays(specifications: Sequence[str]) -> dict[str, Any]:
    parts = [specification.split(":") for specification in specifications]
    return {key: _array(seed, shape, *kind) for seed, (key, shape, *kind) in enumerate(parts)}


def protos(folder: str, pattern: str) -> None:
    """Compile protocol buffers, files of a folder that match a pattern, into modules of Python beside them."""
    from grpc_tools import protoc

    paths = sorted(glob.glob(os.path.join(folder, pattern)))
    known = os.path.join(os.path.dirname(protoc.__file__), "_proto")
    if protoc.main(["protoc", f"-I{folder}", f"-I{known}", f"--python_out={folder}", *paths]):
        raise RuntimeError(f"{pattern}: protoc failed")


def boxes(folder: str, number: str, size: str, *names: str) -> None:
    """Write pictures, their objects of the named classes and their segmentation in the folders of Pascal VOC."""
    folders(folder, number, size, "JPEGImages")
    random = np.random.RandomState(0)
    edge = int(size)
    for part in ("Annotations", "SegmentationClass", "ImageSets/Main", "ImageSets/Segmentation"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    for each in range(int(number)):
        pixels = np.zeros((edge, edge, 1), np.uint8)
        objects = ""
        for label in random.randint(0, len(names), 2):
            left, top = random.randint(0, edge // 2, 2)
            right, bottom = left + edge // 3, top + edge // 3
            pixels[top:bottom, left:right] = label + 1
            corners = f"<xmin>{left + 1}</xmin><ymin>{top + 1}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax>"
            objects += f"<object><name>{names[label]}</name><pose>Left</pose><truncated>0</truncated>"
            objects += f"<difficult>0</difficult><bndbox>{corners}</bndbox></object>"
        text = f"<annotation><filename>{each:04}.jpg</filename><size><width>{edge}</width><height>{edge}</height>"
        text += f"<depth>3</depth></size>{objects}</annotation>"
        with open(os.path.join(folder, "Annotations", f"{each:04}.xml"), "w", encoding="utf-8") as stream:
            stream.write(text)
        with open(os.path.join(folder, "SegmentationClass", f"{each:04}.png"), "wb") as image:
            image.write(_png(pixels))
    sets = [f"{kind}/{part}" for kind in ("Main", "Segmentation") for part in ("train", "val", "trainval", "test")]
    for name in sets + [f"Main/{label}_{part}" for label in names for part in ("train", "val", "trainval", "test")]:
        with open(os.path.join(folder, "ImageSets", f"{name}.txt"), "w", encoding="utf-8") as stream:
            stream.writelines(f"{each:04}{'  1' if '_' in name else ''}\n" for each in range(int(number)))


def graph(folder: str, name: str, nodes: str, features: str, classes: str) -> None:
    """Write a graph, its words and labels as pickles of Planetoid, ``ind.NAME.x`` and others; 100 are for tests."""
    import scipy.sparse

    random = np.random.RandomState(0)
    number, known, labelled = int(nodes), int(nodes) - 100, 20 * int(classes)
    words = scipy.sparse.csr_matrix((random.rand(number, int(features)) < 0.1).astype(np.float32))
    labels = np.eye(int(classes), dtype=np.int32)[np.arange(number) % int(classes)]
    parts = {"x": words[:labelled], "y": labels[:labelled], "allx": words[:known], "ally": labels[:known]}
    parts.update(tx=words[known:], ty=labels[known:], graph=collections.defaultdict(list))
    for node in range(number):
        for other in random.randint(0, number, 3):
            parts["graph"][node].append(int(other))
    for key, value in parts.items():
        with open(os.path.join(folder, f"ind.{name}.{key}"), "wb") as stream:
            pickle.dump(value, stream, 2)
    with open(os.path.join(folder, f"ind.{name}.test.index"), "w", encoding="utf-8") as text:
        text.writelines(f"{node}\n" for node in range(known, number))


def lines(folder: str, name: str, number: str, form: str, *head: str) -> None:
    """Write lines of a form like ``{int:4},{float},"{words:3:9}"`` behind some first lines.

    Its fields are ``{number}`` of the line or ``{number:DIGITS:FIRST}``, ``{int:LIMIT}``, ``{float}``,
    ``{of:ONE|OTHER}``, ``{words:LEAST:MOST}`` of 200 words, and ``{word}``, the word of the number of the line.
    """
    random = np.random.RandomState(0)

    def field(match: Any, line: int) -> str:
        kind, *rest = match[1].split(":")
        if kind == "number":
            digits, first = (int(word) for word in (*rest, "0", "0")[:2])
            return str(first + line).zfill(digits)
        if kind == "word":
            return _word(line, "")
        if kind == "float":
            return f"{random.rand():.4f}"
        if kind == "int":
            return str(random.randint(int(rest[0])))
        if kind == "of":
            return str(random.choice(rest[0].split("|")))
        return " ".join(
            _word(word, "") for word in random.randint(0, 200, random.randint(int(rest[0]), int(rest[1]) + 1))
        )

    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
        stream.writelines(line + "\n" for line in head)
        for line in range(int(number)):
            text = re.sub(r"\{([a-z]+(?::[^{}]*)?)\}", lambda match: field(match, line), form)
            stream.write(text.replace("\\t", "\t") + "\n")


_ALL: Sequence[Callable[..., None]] = (
    records,
    digits,
    libsvm,
    pictures,
    waves,
    news,
    census,
    translation,
    encoded,
    masked,
    folders,
    volumes,
    cells,
    arrays,
    examples,
    packed,
    hdf5,
    protos,
    boxes,
    graph,
    lines,
)
KINDS = {each.__name__: each for each in _ALL}


def main(arguments: Sequence[str]) -> int:
    """Make the folder and its data."""
    kind, folder, *rest = arguments
    os.makedirs(folder, exist_ok=True)
    KINDS[kind](folder, *rest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
