"""Examples that drop_remainder leaves out are reported once for each call that reads the dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim.data import watch_shapes

v1 = tf.compat.v1
ROWS = np.zeros((20, 3), np.float32), np.zeros((20, 1), np.float32)
SHUFFLE = "Call shuffle() before batch(). Reported once."


@pytest.fixture
def watch() -> Any:
    yield watch_shapes(summary_at_exit=False)
    npu_shim.uninstall()


def rows(count: int = 20) -> Any:
    return tf.data.Dataset.from_tensor_slices(tuple(part[:count] for part in ROWS))


def some() -> Any:
    """Return a dataset whose number of elements TensorFlow does not know."""
    return rows().filter(lambda x, y: tf.reduce_sum(x) == 0)


if tf.__version__ >= "2":

    @pytest.fixture
    def model() -> Any:
        made = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        made.compile("sgd", "mse")
        return made

    FIXED = {
        "nothing shuffles": (
            lambda: rows().batch(8, drop_remainder=True),
            "4 of 20",
            f"nothing shuffles them. {SHUFFLE}",
        ),
        "the batches are shuffled": (
            lambda: rows().batch(8, drop_remainder=True).shuffle(9),
            "4 of 20",
            "nothing shuffles them",
        ),
        "one order": (
            lambda: rows().shuffle(9, reshuffle_each_iteration=False).map(lambda x, y: (x, y)).batch(8, True),
            "4 of 20",
            "nothing shuffles them",
        ),
        "a cached order": (lambda: rows().shuffle(9).cache().batch(8, True).prefetch(1), "4 of 20", "nothing shuffles"),
        "cached batches": (
            lambda: rows().shuffle(9).batch(8, True).cache(),
            "4 of 20",
            "cache() keeps the batches. Call cache() before shuffle() and batch()",
        ),
        "an unknown number": (lambda: some().batch(8, True).map(lambda x, y: (x, y)), "4", "nothing shuffles them"),
    }

    @pytest.mark.parametrize("make, number, words", FIXED.values(), ids=list(FIXED))
    def test_examples_that_no_epoch_trains_on(
        make: Any, number: str, words: str, model: Any, watch: Any, log: Any
    ) -> None:
        model.fit(make(), epochs=3, verbose=0)
        (said,) = log()
        assert said.startswith("npu_shim: fit (" + __file__) and f"always leaves out the same {number} examples" in said
        assert words in said

    OTHERS = {
        "a size that divides": lambda: rows().batch(5, drop_remainder=True),
        "a shuffle": lambda: rows().shuffle(20).batch(8, drop_remainder=True),
        "a shuffle of an unknown number": lambda: some().shuffle(20).batch(8, drop_remainder=True),
        "several epochs": lambda: rows().repeat(2).batch(8, drop_remainder=True),
        "without end": lambda: rows().repeat().batch(8, drop_remainder=True).take(3),
        "a generator, which may shuffle": lambda: tf.data.Dataset.from_generator(
            lambda: iter(zip(*ROWS)), (tf.float32, tf.float32), (tf.TensorShape([3]), tf.TensorShape([1]))
        ).batch(8, drop_remainder=True),
    }

    @pytest.mark.parametrize("make", OTHERS.values(), ids=list(OTHERS))
    def test_training_on_other_datasets_is_not_reported(make: Any, model: Any, watch: Any, log: Any) -> None:
        model.fit(make(), epochs=2, verbose=0)
        assert log() == []

    @pytest.mark.parametrize("make", [rows, some])
    def test_prediction_reports_all_examples_that_it_leaves_out(make: Any, model: Any, watch: Any, log: Any) -> None:
        data = make().shuffle(20).batch(8, drop_remainder=True)
        assert len(model.predict(data, verbose=0)) == 16
        model.evaluate(data, verbose=0)
        model.fit(data, validation_data=data, verbose=0)
        number = "4 of 20" if make is rows else "4"
        assert [text.partition(" (")[0].rpartition(" ")[2] for text in log()] == ["predict", "evaluate", "evaluate"]
        for said in log():
            assert f") leaves out {number} examples: batch(8, drop_remainder=True) drops them" in said
            assert "npu_shim.data.enforce_static_batch(dataset.batch(n))" in said

    def test_the_form_that_drops_in_training_only_is_not_reported(model: Any, watch: Any, log: Any) -> None:
        data = rows().shuffle(20).batch(8)
        model.fit(npu_shim.data.enforce_static_batch(data), epochs=2, verbose=0)
        del log
        assert len(model.predict(data, verbose=0)) == 20

    def test_loops_report_the_same_examples_once(watch: Any, log: Any) -> None:
        data = rows().batch(8, drop_remainder=True)
        for _ in range(2):
            assert sum(len(x) for x, _ in data) == 16
        (said,) = log()
        assert "npu_shim: the loop (" + __file__ in said and "always leaves out the same 4 of 20 examples" in said

    def test_a_dataset_without_a_batch_is_an_error_of_fit(model: Any, watch: Any, log: Any) -> None:
        data = rows().batch(1024, drop_remainder=True)
        with pytest.raises(ValueError):
            model.fit(data, verbose=0)
        assert (
            "this dataset has no batch, because it has 20 examples, fewer than batch(1024, drop_remainder=True)"
            in log()[0]
        )
        assert "Use a batch size of at most 20, or repeat() before batch()." in log()[0]

    def test_a_loop_over_a_dataset_without_a_batch(watch: Any, log: Any) -> None:
        assert list(some().batch(1024, drop_remainder=True)) == []
        (said,) = log()
        assert "the loop (" in said and "has no batch, because it has 20 examples" in said

    def test_counted_batches_have_the_same_elements_and_shapes(watch: Any) -> None:
        made = {"a": ROWS[0], "b": (np.arange(20), np.arange(20.0))}
        data = tf.data.Dataset.from_tensor_slices(made).filter(lambda each: True)
        counted = data.batch(8, drop_remainder=True)
        npu_shim.uninstall()
        plain = data.batch(8, drop_remainder=True)
        assert counted.element_spec == plain.element_spec
        for found, wanted in zip(counted, plain):
            tf.nest.map_structure(lambda a, b: np.testing.assert_array_equal(a, b), found, wanted)
        assert len(list(counted)) == len(list(plain)) == 2

    def test_sparse_batches_are_not_counted(watch: Any, log: Any) -> None:
        data = rows().filter(lambda x, y: True).map(lambda x, y: tf.sparse.from_dense(x))
        assert len(list(data.batch(8, drop_remainder=True))) == 2
        assert log() == []


ITERATORS = {
    "one order": (lambda: rows().map(lambda x, y: x).batch(8, drop_remainder=True), "the same 4 of 20 examples"),
    "no batch": (lambda: rows().batch(64, drop_remainder=True), "has no batch, because it has 20 examples"),
    "a shuffle": (lambda: rows().shuffle(9).batch(8, drop_remainder=True), None),
    "all examples": (lambda: rows().batch(8), None),
}


@pytest.mark.parametrize("make, words", ITERATORS.values(), ids=list(ITERATORS))
@pytest.mark.parametrize("kind", ["make_one_shot_iterator", "make_initializable_iterator"])
def test_iterators_of_graphs_get_no_operation(make: Any, words: str | None, kind: str, watch: Any, log: Any) -> None:
    counts = []
    for is_watched in (True, False):
        with tf.Graph().as_default() as graph:
            if not is_watched:
                npu_shim.uninstall()
            getattr(v1.data, kind)(make()).get_next()
            counts.append(len(graph.get_operations()))
    assert counts[0] == counts[1]
    assert len(log()) == (words is not None) and all(f"the iterator ({__file__}" in text for text in log())
    assert words is None or words in log()[0]
