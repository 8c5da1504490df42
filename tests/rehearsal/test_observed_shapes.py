"""Shapes that an observed run notes of arrays and of lists of them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.facts.seen import Seen

from npu_shim.rehearsal.observing.shapes import note_shape


@pytest.mark.parametrize(
    "value, shape, arrays",
    [
        (np.zeros([70, 3]), (70, 3), None),
        ([1, 2, 3], (3,), False),
        ([[1], [2]], (2,), False),
        ([np.float32(1.0)], (1,), False),
        ([], (0,), False),
        ([np.zeros([70, 3]), np.zeros([70])], (2,), True),
        ((tf.constant([1.0, 2.0]),), (1,), True),
    ],
)
def test_a_list_of_arrays_differs_from_one_of_numbers(value: object, shape: tuple[int, ...], arrays: object) -> None:
    seen = Seen()
    assert note_shape(seen, value) is value
    assert (seen.only("shape"), seen.only("arrays")) == (shape, arrays)


def test_a_dictionary_of_arrays_has_no_shape() -> None:
    seen = Seen()
    note_shape(seen, {"a": np.zeros([70, 3])})
    assert seen.values == {}
