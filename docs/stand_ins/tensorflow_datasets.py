"""Take the place of tensorflow_datasets: random images of the shapes of some data sets."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tensorflow as tf

_SHAPES = {"mnist": (28, 28, 1), "imagenet_resized/32x32": (32, 32, 3), "cifar10": (32, 32, 3)}
_CLASSES = {"mnist": 10, "imagenet_resized/32x32": 1000, "cifar10": 10}
_EXAMPLES = {"train": 256, "validation": 128, "test": 128}


class Info:
    """The shapes and sizes of a data set."""

    def __init__(self, name: str) -> None:
        label = type("Label", (), {"num_classes": _CLASSES[name]})
        image = type("Image", (), {"shape": _SHAPES[name]})
        self.features = {"label": label, "image": image}
        self.splits = {each: type("Split", (), {"num_examples": number}) for each, number in _EXAMPLES.items()}


class ReadConfig:
    """Settings of reading, of which none matters here."""

    def __init__(self, **_: Any) -> None:
        pass


class _Builder:
    def __init__(self, name: str) -> None:
        self._name = name
        self.info = Info(name)

    def download_and_prepare(self, **_: Any) -> None:
        """Do nothing."""

    def as_dataset(self, split: str, as_supervised: bool = False, **_: Any) -> tf.data.Dataset:
        """Return a split."""
        return load(self._name, split, as_supervised=as_supervised)


def builder(name: str, **_: Any) -> _Builder:
    """Return the builder of a data set."""
    return _Builder(name)


def disable_progress_bar() -> None:
    """Do nothing."""


def load(name: str, split: Any = None, with_info: bool = False, as_supervised: bool = False, **_: Any) -> Any:
    """Return the split, several in a list, or all in a dictionary. A part of a split is the whole one."""
    name = re.sub(r":.*", "", name)

    def examples(seed: int, number: int) -> tf.data.Dataset:
        random = np.random.RandomState(seed)
        image = random.randint(0, 256, (number, *_SHAPES[name])).astype(np.uint8)
        label = random.randint(0, _CLASSES[name], number).astype(np.int64)
        return tf.data.Dataset.from_tensor_slices((image, label) if as_supervised else {"image": image, "label": label})

    data: Any = {each: examples(int(each != "train"), number) for each, number in _EXAMPLES.items()}
    if isinstance(split, (list, tuple)):
        data = [data[each.split("[")[0]] for each in split]
    elif split:
        data = data[split.split("[")[0]]
    return (data, Info(name)) if with_info else data
