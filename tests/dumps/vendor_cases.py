"""Pairs of tensors for which the vendor's comparison and ours give figures; they need NumPy alone."""

from __future__ import annotations

import numpy as np


def pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return (device, reference) by name."""
    chance = np.random.RandomState(46)
    plain = chance.normal(size=(4, 9, 5)).astype(np.float32)
    sparse = plain * (chance.uniform(size=plain.shape) < 0.2)
    large = (chance.normal(size=5000) * 1e4).astype(np.float32)
    whole = chance.randint(-50, 50, (7, 11)).astype(np.int32)
    return {
        "rounded to float16": (plain.astype(np.float16), plain),
        "noise": (plain + chance.normal(size=plain.shape).astype(np.float32) * np.float32(0.1), plain),
        "factor": (plain * np.float32(1.5), plain),
        "sign": (-plain, plain),
        "zeros here and there": (sparse.astype(np.float16), sparse.astype(np.float32)),
        "zeros on the device": (np.zeros_like(plain), plain),
        "zeros in the reference": (plain, np.zeros_like(plain)),
        "zeros on both sides": (np.zeros_like(plain), np.zeros_like(plain)),
        "constant": (np.full((3, 3), 2.5, np.float32), np.full((3, 3), 2.0, np.float32)),
        "one element": (np.array([1.25], np.float32), np.array([1.0], np.float32)),
        "large": (large.astype(np.float16), large),
        "tiny": (plain * np.float32(1e-15), plain * np.float32(1.01e-15)),
        "whole numbers": (whole, whole + (chance.uniform(size=whole.shape) < 0.1).astype(np.int32)),
        "float64": (plain.astype(np.float64), plain.astype(np.float64) + 1e-3),
        "outlier": (np.where(np.arange(180).reshape(plain.shape) == 7, np.float32(40), plain), plain),
    }
