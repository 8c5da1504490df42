"""Variables and tables that the input pipeline reads on the host are reported once, by name and line."""

from __future__ import annotations

import pathlib
from typing import Any, Callable

import pytest
import tensorflow as tf

import npu_shim
from npu_shim._tensorflow import tf_numpy_function
from npu_shim.data import watch_shapes
from npu_shim.data.pipeline_resources import pipeline_resources

v1 = tf.compat.v1


def words(path: pathlib.Path) -> Any:
    path.write_text("a\nb\n")
    initializer = tf.lookup.TextFileInitializer(
        str(path), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    return tf.lookup.StaticHashTable(initializer, -1)


def with_table(path: pathlib.Path) -> Any:
    table = words(path)
    return tf.data.Dataset.from_tensor_slices(["a", "b"]).map(lambda word: table.lookup(word))


def with_variable(_: pathlib.Path) -> Any:
    mean = v1.get_variable("mean", [], tf.float32, use_resource=True)
    return tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x - mean)


def with_size(_: pathlib.Path) -> Any:
    size = v1.get_variable("size", initializer=tf.constant(2, tf.int64), use_resource=False)
    return tf.data.Dataset.range(8).batch(size)


def plain(_: pathlib.Path) -> Any:
    v1.get_variable("model", [], tf.float32)
    return tf.data.Dataset.range(8).map(lambda x: x + 1).batch(2)


def after_a_variable(_: pathlib.Path) -> Any:
    with tf.control_dependencies([v1.get_variable("before", [], tf.float32).initializer]):
        size = tf.identity(tf.constant(2, tf.int64))
    return tf.data.Dataset.range(8).batch(size)


def with_broadcast(_: pathlib.Path) -> Any:
    """A collective is the element of a dataset on the CPU."""
    shared = v1.get_variable("shared", [], tf.float32)
    tf_numpy_function.add_background_function_op(lambda value: [value], [shared], [tf.float32])
    return tf.data.Dataset.range(8)


@pytest.mark.parametrize(
    "make, mixed, name",
    [
        (with_table, False, "table"),
        (with_table, True, ""),
        (with_variable, False, "mean"),
        (with_variable, True, "mean"),
        (with_size, False, "size"),
        (plain, False, ""),
        (after_a_variable, False, ""),
        (with_broadcast, False, ""),
    ],
)
def test_resources_that_a_pipeline_reads_and_the_npu_initializes_are_reported(
    make: Callable[[pathlib.Path], Any],
    mixed: bool,
    name: str,
    tmp_path: pathlib.Path,
    log: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with v1.Graph().as_default() as graph:
        iterator = v1.data.make_initializable_iterator(make(tmp_path / "words.txt"))
        found = {
            op.name.rpartition("/")[2]: reason
            for op, reason in pipeline_resources(graph.get_operations(), mixed).items()
        }
        assert len(found) == bool(name) and all(name in each for each in found)
        watch_shapes(summary_at_exit=False)
        config = npu_shim.session_config(mix_compile_mode=mixed)
        try:
            with v1.Session(config=config) as session:
                session.run([v1.global_variables_initializer(), v1.tables_initializer()])
                session.run(iterator.initializer)
                session.run(iterator.initializer)
                session.run(iterator.get_next())
        finally:
            npu_shim.uninstall()
    reported = [text for text in log() if "on the host" in text]
    assert len(reported) == bool(name)
    assert all("test_pipeline_resources.py:" in text and name in text for text in reported)
