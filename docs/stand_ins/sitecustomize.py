"""Give Keras small synthetic data sets, SciPy two functions for images that it has no longer, and NVIDIA's packages."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from typing import Any

_IMAGES = {
    "mnist": ((28, 28), 10),
    "fashion_mnist": ((28, 28), 10),
    "cifar10": ((32, 32, 3), 10),
    "cifar100": ((32, 32, 3), 100),
}
_TRAIN, _TEST = 1000, 300


def _images(name: str) -> Any:
    from synthetic import images

    shape, classes = _IMAGES[name]
    pairs = [images(shape, classes, number, seed) for number, seed in ((_TRAIN, 0), (_TEST, 1))]
    if name.startswith("cifar"):
        return tuple((values, labels.astype("uint8")[:, None]) for values, labels in pairs)
    return tuple((values, labels.astype("uint8")) for values, labels in pairs)


def _sentences(num_words: int | None = None, maxlen: int | None = None) -> Any:
    """Return sequences of words, odd for one label and even for the other. Words beyond num_words are 2."""
    import numpy as np

    def make(number: int, seed: int) -> Any:
        random = np.random.RandomState(seed)
        labels = random.randint(0, 2, number)
        lists = np.empty(number, object)
        for each in range(number):
            words = 4 + 2 * random.geometric(0.01, random.randint(10, maxlen or 300)) + labels[each]
            lists[each] = [1] + [int(word) if num_words is None or word < num_words else 2 for word in words]
        return lists, labels

    return make(_TRAIN, 0), make(_TEST, 1)


def _houses() -> Any:
    import numpy as np

    random = np.random.RandomState(0)
    values = random.standard_normal((506, 13))
    prices = values @ random.standard_normal(13) + 20
    return (values[:404], prices[:404]), (values[404:], prices[404:])


class _Loader(importlib.abc.Loader):
    """Load a module with another one, and replace its functions."""

    def __init__(self, loader: Any, name: str) -> None:
        self._loader = loader
        self._name = name

    def create_module(self, spec: Any) -> Any:
        """Create the module as the other one does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Run it, and replace `load_data`."""
        self._loader.exec_module(module)
        if self._name == "imdb":
            module.load_data = lambda path=None, num_words=None, maxlen=None, **_: _sentences(num_words, maxlen)
            module.get_word_index = lambda path=None: {f"word{each}": each for each in range(1, 1000)}
        elif self._name == "boston_housing":
            module.load_data = lambda *_, **__: _houses()
        else:
            module.load_data = lambda *_, **__: _images(self._name)


class _Finder(importlib.abc.MetaPathFinder):
    """Find the modules of Keras' data sets."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return the spec of a data set of Keras, None for other modules."""
        package, _, name = fullname.rpartition(".")
        if not package.endswith("keras.datasets") and not package.endswith("keras.src.datasets"):
            return None
        if name not in (*_IMAGES, "imdb", "boston_housing"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None:
            spec.loader = _Loader(spec.loader, name)
        return spec


class _Silent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find packages of NVIDIA, which log and read data, and give them names that do nothing."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return the spec of such a package, None for others."""
        if fullname.split(".")[0] not in ("dllogger", "nvidia"):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        """Return a module that has any name."""
        from unittest.mock import MagicMock

        return MagicMock(name=spec.name)

    def exec_module(self, module: Any) -> None:
        """Leave it as it is."""


sys.meta_path[:] = [_Finder(), *sys.meta_path, _Silent()]

if sys.version_info < (3, 8):
    import scipy.misc

    scipy.misc.imsave = lambda path, image: open(path, "wb").close()
    scipy.misc.imresize = lambda image, size, interp=None: image
