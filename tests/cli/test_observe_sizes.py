"""Sizes that a run saw become masks of static shape, and the converted script computes the same."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Callable

import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.facts.seen import Seen

from npu_shim.rehearsal.observing.sizes import note_type_and_place

Python = Callable[..., "subprocess.CompletedProcess[str]"]

LOSSES = """
import sys
import numpy as np
import tensorflow as tf

if hasattr(tf.compat.v1, "disable_eager_execution") and "graph" in sys.argv:
    tf.compat.v1.disable_eager_execution()


def positive(x):
    return tf.boolean_mask(x, x > 0.0)


def losses(x, y, state):
    mask = tf.equal(state, 1)
    error = tf.abs(tf.boolean_mask(x, mask) - tf.boolean_mask(y, mask))
    places = tf.where(tf.not_equal(state, -1))
    chosen = tf.sqrt(tf.abs(tf.gather_nd(x, places)))
    count = tf.cast(tf.shape(places)[0], tf.float32)
    known = tf.squeeze(tf.where(tf.greater(state, -1)), 1)
    labels, logits = tf.gather(state, known), tf.gather(x, known)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    scores = tf.reduce_sum(x, 1)
    worst, _ = tf.nn.top_k(-scores, k=tf.reduce_sum(tf.cast(mask, tf.int32)))
    return [tf.reduce_mean(worst), tf.reduce_mean(error), tf.reduce_max(error, axis=0), tf.reduce_sum(chosen) / count, tf.reduce_mean(loss)]


data = tf.data.Dataset.from_tensor_slices(np.array([[-1.0, 2.0]], np.float32)).map(positive)
print([shape for shape in tf.compat.v1.data.get_output_shapes(data)])
RNG = np.random.RandomState(0)
BATCHES = [(RNG.randn(8, 3), RNG.randn(8, 3), RNG.randint(-1, 2, 8)) for _ in range(4)]
if tf.__version__.startswith("1.") or "graph" in sys.argv:
    given = [tf.compat.v1.placeholder(tf.float32, [8, 3]) for _ in range(2)] + [tf.compat.v1.placeholder(tf.int32, [8])]
    results = losses(*given)
    element = tf.compat.v1.data.make_one_shot_iterator(data).get_next()
    with tf.compat.v1.Session() as session:
        session.run(element)
        printed = [session.run(results, dict(zip(given, batch))) for batch in BATCHES]
else:
    list(data)
    compiled = tf.function(losses)
    printed = [compiled(*(tf.constant(part, kind) for part, kind in zip(batch, [tf.float32, tf.float32, tf.int32]))) for batch in BATCHES]
print("losses", *(float(number) for step in printed for part in step for number in np.ravel(part)))
"""
NEW = """
    error = tf.abs(npu_data.masked_rows(x, mask) - npu_data.masked_rows(y, mask))
    places = tf.not_equal(state, -1)
    chosen = tf.sqrt(tf.abs(npu_data.masked_rows(x, places)))
    count = tf.cast(npu_data.masked_count(places), tf.float32)
    known = tf.greater(state, -1)
    labels, logits = npu_data.masked_rows(state, known), npu_data.masked_rows(x, known)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    scores = tf.reduce_sum(x, 1)
    worst, worst_mask = -scores, npu_data.top_k_mask(-scores, tf.reduce_sum(tf.cast(mask, tf.int32)))
    return [npu_data.masked_mean(worst, worst_mask), npu_data.masked_mean(error, mask), npu_data.masked_max(error, mask, axis=0), \
npu_data.masked_sum(chosen, places) / count, npu_data.masked_mean(loss, known)]
"""


def numbers(run: subprocess.CompletedProcess[str]) -> list[float]:
    assert run.returncode == 0, run.stdout[-3000:]
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("losses ")]
    return [float(word) for word in line.split()[1:]]


@pytest.mark.once
def test_rows_that_end_in_reductions_take_the_mask(
    python: Python, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "losses.py").write_text(LOSSES)
    expected = numbers(python(tmp_path, "-m", "npu_shim", "observe", "losses.py"))
    python(tmp_path, "-m", "npu_shim", "observe", "losses.py", "graph")
    tool = str(repo_root / "tools" / "convert_tf2npu" / "main.py")
    run = python(tmp_path, tool, "-i", "losses.py", "--facts", "facts.json", "-o", "out")
    assert NEW in (tmp_path / "out" / "losses.py").read_text() and "NPU231" not in run.stdout, run.stdout
    np.testing.assert_allclose(numbers(python(tmp_path / "out", "losses.py")), expected, rtol=1e-5)
    np.testing.assert_allclose(numbers(python(tmp_path / "out", "losses.py", "graph")), expected, rtol=1e-5)


EAGER = """
import tensorflow as tf

for step in range(3):
    x = tf.constant([1.0, -1.0, 2.0 - 4.0 * (step == 2)])
    always = tf.boolean_mask(x, tf.constant([True, False, True]))
    both = tf.sets.intersection(tf.constant([[1, 2, 3]]), tf.constant([[3, 2, 5 + step]]))
    some = tf.where(x > 0.0)
"""


@pytest.mark.once
def test_sizes_of_eager_code_that_never_change_need_nothing(
    python: Python, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "steps.py").write_text(EAGER)
    assert python(tmp_path, "-m", "npu_shim", "observe", "steps.py").returncode == 0
    tool = str(repo_root / "tools" / "convert_tf2npu" / "main.py")
    run = python(tmp_path, tool, "-i", "steps.py", "--facts", "facts.json", "-o", "out", "--select", "NPU23")
    assert "steps.py:8:12: NPU230" in run.stdout and "(seen: 1 to 2)" in run.stdout, run.stdout
    assert "NPU231" not in run.stdout and "NPU232" not in run.stdout, run.stdout


def test_a_ragged_tensor_has_the_place_where_it_was_made() -> None:
    seen = Seen()
    tf.data.Dataset.from_tensors(["ab", "c"]).map(
        lambda texts: note_type_and_place(seen, tf.strings.bytes_split(texts)).flat_values
    )
    assert (seen.all("place"), seen.all("dtype")) == (("data",), ("string",))
