"""Make images of classes that differ."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np


def images(shape: Sequence[int], classes: int, number: int, seed: int) -> tuple[Any, Any]:
    """Return images with noise around a centre for each class, and their labels."""
    centres = np.random.RandomState(5).randint(100, 130, (classes, *shape))
    random = np.random.RandomState(seed)
    labels = random.randint(0, classes, number)
    noise = random.randint(-100, 100, (number, *shape))
    return np.clip(centres[labels] + noise, 0, 255).astype(np.uint8), labels
