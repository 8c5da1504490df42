"""Write synthetic data of the shapes that the scripts of public_paths.py read.

``python docs/public_data.py records FOLDER`` writes tokens as TFRecords, ``digits FOLDER TRAIN TEST [gz]`` images in
the format of MNIST.
"""

from __future__ import annotations

import gzip
import os
import struct
import sys
from typing import Sequence

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


def main(arguments: Sequence[str]) -> int:
    """Make the folder and its data."""
    kind, folder, *rest = arguments
    os.makedirs(folder, exist_ok=True)
    {"records": records, "digits": digits}[kind](folder, *rest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
