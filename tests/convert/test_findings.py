"""The findings of the rules: the support table, the messages, and code on the host, which is not reported."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import textwrap
from typing import Any

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.rewrite.npu_imports import DEVICE_IMPORTS
from convert_tf2npu.rules.registry import Registry
from convert_tf2npu.tf_api import npu_init_exports
from convert_tf2npu.tf_api.name_tables import AVOID_IN_2, EXCLUDED_IN_2, SUPPORT, calls_of_kind

RULE_OF_KIND = {
    "eager": "NPU210",
    "tpu": "NPU211",
    "gpu": "NPU212",
    "lite": "NPU213",
    "unclear": "NPU214",
    "unverified": "NPU215",
    "finite": "NPU222",
    "queue": "NPU223",
    "table": "NPU240",
}
REPORTING = [rule for rule in Registry().rules if "Reported::" in rule.doc]


def reported(text: str, select: str = "NPU2", path: str = "", **settings: Any) -> list[str]:
    """The codes of the findings on a script."""
    result = Converter(Settings(select=(select,), **settings)).convert(textwrap.dedent(text).encode("utf-8"), path)
    assert result.new is None
    return [d.code for d in result.diagnostics if d.kind == FINDING]


@pytest.fixture(scope="module")
def maker() -> Any:
    path = pathlib.Path(__file__).resolve().parents[2] / "tools" / "make_api_support.py"
    spec = importlib.util.spec_from_file_location("make_api_support", str(path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(status: str, note_code: str = "") -> dict[str, str]:
    return {"status": status, "note_code": note_code}


# --- the support table ---------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(RULE_OF_KIND))
def test_each_name_of_a_kind_is_reported_by_its_rule(kind: str) -> None:
    code = RULE_OF_KIND[kind]
    wrong = []
    for name in sorted(calls_of_kind(kind)):
        root, _, rest = name.partition(".")
        if reported(f"import tensorflow\nimport {root} as t\n\nx = t.{rest}(a, b)\n", code) != [code]:
            wrong.append(name)
    assert wrong == []


@pytest.mark.parametrize("name", sorted(AVOID_IN_2))
def test_names_unsupported_on_tensorflow_2_are_reported_once_in_lifted_scripts_only(name: str) -> None:
    call = name.replace("tensorflow.", "t.")
    text = f"import tensorflow.compat.v1 as t\n\nx = {call}(a)\ny = {call}(b)\n"
    result = Converter(Settings(select=("NPU217",), compat_v1=True)).convert(text.encode("utf-8"))
    assert [(d.code, d.line) for d in result.diagnostics] == [("NPU217", 3)] and result.new is None
    assert reported(text, "NPU217") == []


@pytest.mark.parametrize("name", sorted(EXCLUDED_IN_2))
def test_names_excluded_for_eager_code_are_reported_once(name: str) -> None:
    call = name.replace("tensorflow.", "t.")
    text = f"import tensorflow as t\n\n@t.function\ndef step(a):\n    return {call}(a)(a) + {call}(a)(a)\n"
    result = Converter(Settings(select=("NPU282",))).convert(text.encode("utf-8"))
    assert [(d.code, d.line, d.col) for d in result.diagnostics] == [("NPU282", 5, 12)]
    keras = text.replace("@t.function\n", "") + "model = t.keras.Sequential()\nmodel.fit(x, y)\n"
    assert [d.line for d in Converter(Settings(select=("NPU282",))).convert(keras.encode("utf-8")).diagnostics] == [4]
    graph = text.replace("@t.function\n", "").replace("return", "t.Session()\n    return")
    assert Converter(Settings(select=("NPU282",))).convert(graph.encode("utf-8")).diagnostics == ()


def test_each_kind_has_names_and_a_rule() -> None:
    assert set(SUPPORT.values()) == set(RULE_OF_KIND)
    assert set(RULE_OF_KIND.values()) <= {rule.code for rule in REPORTING}


def test_the_table_warns_of_few_names() -> None:
    assert 100 < len(SUPPORT) < 300  # of 8,351: nobody reads findings on what works


@pytest.mark.parametrize(
    "name, status, note_code, kind",
    [
        ("tf.tpu.rewrite", "unsupported_avoid", "tpu_only", "tpu"),
        ("tf.WholeFileReader", "unsupported_avoid", "use_tf_data", "queue"),
        ("tf.compat.v1.tpu.rewrite", "compatible", "compat_namespace", None),
        ("tf.add", "supported_no_change", "", None),
        ("tf.contrib.layers.flatten", "deprecated", "deprecated_replace", None),
        ("tf.config.optimizer.set_jit", "unsupported_no_impact", "no_effect", None),
        ("tf.nn.ctc_loss", "supported_no_change", "avoid", "unclear"),
        ("tf.nn.separable_conv2d", "supported_no_change", "avoid", None),
        ("tf.math.is_nan", "supported_no_change", "", "finite"),
        ("tf.is_nan", "unsupported_avoid", "", "finite"),
        ("tf.executing_eagerly", "unsupported_avoid", "eager", None),
        ("hvd.elastic.run(func)", "under_analysis", "under_analysis", None),
        ("hvd.rank", "training_works_after_tool_migration", "hvd_rank", None),
        ("tf.contrib.cudnn_rnn.CudnnLSTM", "deprecated", "deprecated_replace", "gpu"),
        ("tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell", "deprecated", "deprecated_replace", None),
    ],
)
def test_the_kind_of_a_row(maker: Any, name: str, status: str, note_code: str, kind: Any) -> None:
    table = maker.support_table({name: row(status, note_code)})
    assert table.get(maker.canonical_name(name)) == kind


@pytest.mark.parametrize(
    "name,note_code,advised_against",
    [
        ("tf.compat.v1.nn.depthwise_conv2d", "avoid", True),
        ("tf.nn.depthwise_conv2d", "avoid", False),
        ("tf.compat.v1.nn.conv2d", "", False),
        ("tf.compat.v1.nn.ctc_loss", "avoid", False),
        ("tf.compat.v1.distribute.cluster_resolver.TPUClusterResolver", "avoid", False),
    ],
    ids=["excluded", "by the interface of version 2", "supported", "reported already", "asked for under a condition"],
)
def test_names_that_the_list_for_tensorflow_2_excludes(
    maker: Any, name: str, note_code: str, advised_against: bool
) -> None:
    table = maker.support_table({"tf.nn.ctc_loss": row("supported_no_change", "avoid")})
    assert bool(maker.advised_against({name: row("", note_code)}, table)) is advised_against


def test_the_tables_have_the_parts_that_the_tool_reads(maker: Any) -> None:
    lists = {"tf.is_nan": row("unsupported_avoid")}, {"tf.scan": row("", "avoid"), "tf.compat.v1.div": row("", "avoid")}
    made = maker.support_tables(*lists)
    assert made == {**made, "avoid_in_2": ["tensorflow.div"], "excluded_in_2": ["tensorflow.scan"]}
    assert made["kinds"]["tensorflow.is_nan"] == SUPPORT["tensorflow.is_nan"] == "finite"
    text = pathlib.Path(npu_init_exports.__file__).with_name("support.json").read_text(encoding="utf-8")
    assert set(made) == set(json.loads(text))


# --- the words -------------------------------------------------------------------


@pytest.mark.parametrize("rule", REPORTING, ids=[r.code for r in REPORTING])
def test_a_finding_names_only_what_npu_shim_has(rule: Any) -> None:
    text = pathlib.Path(rule.module.__file__).read_text(encoding="utf-8")
    ours = set(
        re.findall(r"(?<!\.)\b(npu_[a-z_]+|NPU[A-Z][A-Za-z]+|hccl_ops|get_(?:npu_)?(?:local_)?rank_\w+)\b", text)
    )
    assert ours - {"npu_shim", "npu_init"} <= npu_init_exports.STAR.union(DEVICE_IMPORTS)


@pytest.mark.parametrize("rule", Registry().rules, ids=lambda rule: rule.code)
def test_every_message_of_the_examples_fits_on_two_lines(rule: Any) -> None:
    examples = re.split(r"\n(?:Before|After|Reported|Untouched)::\n", rule.doc)[1:]
    for text in [textwrap.dedent(re.split(r"\n(?=\S)", example.strip("\n"))[0]) for example in examples]:
        result = Converter(Settings(**rule.needed_settings)).convert(text.encode("utf-8"))
        for diagnostic in result.diagnostics:
            assert len(diagnostic.message) < 175, diagnostic.message
            if diagnostic.kind == FINDING:
                assert re.fullmatch(r".+\. [A-Z].+[^.]", diagnostic.message), diagnostic.message
                assert len(diagnostic.message) > 35, diagnostic.message


# --- where code runs -------------------------------------------------------------

ON_THE_HOST = {
    "a lambda of map": "d = tf.data.Dataset.range(9).map(lambda x: tf.where(x > 0))",
    "a function of map": """
        def f(x):
            return tf.where(x > 0)
        d = tf.data.Dataset.range(9).map(f)""",
    "a function that a function of map calls": """
        def g(x):
            return tf.where(x > 0)
        def f(x):
            return g(x)
        d = tf.data.Dataset.range(9).map(f)""",
    "a partial function of map": """
        import functools
        def f(size, x):
            return tf.where(x > size)
        d = tf.data.Dataset.range(9).map(functools.partial(f, 3))""",
    "a method of map": """
        class Data:
            def f(self, x):
                return tf.where(x > 0)
            def make(self, files):
                return tf.data.TFRecordDataset(files).map(self.f)""",
    "a function of map_and_batch": """
        def f(x):
            return tf.where(x > 0)
        d = d.apply(tf.data.experimental.map_and_batch(f, 8))""",
    "a function inside one of map": """
        def f(x):
            def g():
                return tf.where(x > 0)
            return g()
        d = tf.data.Dataset.range(9).map(f)""",
    "a function called parse_example": """
        def parse_example(x):
            return tf.where(x > 0)""",
    "a serving function": """
        def serving_input_receiver_fn():
            return tf.where(x > 0)""",
    "a test": """
        class LayerTest(tf.test.TestCase):
            def check(self):
                return tf.where(x > 0)""",
}


@pytest.mark.parametrize("text", ON_THE_HOST.values(), ids=list(ON_THE_HOST))
def test_code_on_the_host_is_not_reported(text: str) -> None:
    assert reported("import tensorflow as tf\n" + textwrap.dedent(text) + "\n", "NPU230") == []


@pytest.mark.parametrize("path", ["layers_test.py", "data/dataset.py", "datasets/coco.py"])
def test_files_for_input_and_tests_are_not_reported(path: str, tmp_path: pathlib.Path) -> None:
    text = "import tensorflow as tf\n\nx = tf.where(x > 0)\n"
    assert reported(text, "NPU230", str(tmp_path / path)) == []
    assert reported(text, "NPU230", str(tmp_path / "model.py")) == ["NPU230"]


@pytest.mark.parametrize(
    "text",
    [
        "def model_fn(x):\n    return tf.where(x > 0)",
        "y = tf.compat.v1.where(x)",
        "def f(x):\n    return tf.where(x > 0)\ndef g(x):\n    return f(x)",
        "y = tf.where(x, None, None)",
        "from tensorflow import where\ny = where(x)",
    ],
    ids=["a model function", "compat.v1", "a helper of a model", "None twice", "from import"],
)
def test_code_on_the_npu_is_reported(text: str) -> None:
    assert reported("import tensorflow as tf\n" + text + "\n", "NPU230") == ["NPU230"]


# --- reported once -------------------------------------------------------------------


def test_a_call_on_the_host_does_not_hide_one_on_the_card() -> None:
    assert reported(
        """
        import tensorflow as tf
        def parse(x):
            return tf.as_string(x)
        def model_fn(features):
            a = tf.as_string(features)
            return tf.as_string(a)
        """,
        "NPU236",
    ) == ["NPU236"]


def test_a_place_that_several_calls_see_is_reported_once() -> None:
    text = """
    import tensorflow as tf
    logits = network(tf.placeholder(tf.float32, [1, 4], "x"), is_training=True)
    with tf.Session() as sess:
        tf.train.Saver().restore(sess, "model.ckpt")
        tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ["logits"])
        tf.saved_model.simple_save(sess, "saved", {"x": x}, {"logits": logits})
    """
    assert len(reported(textwrap.dedent(text), "NPU284")) == 1


def test_placeholders_are_reported_once_with_their_number() -> None:
    text = (
        "import tensorflow as tf\n\na = tf.placeholder(tf.int32, [None])\n"
        'b = tf.placeholder(tf.int32, (2, None))\nrate = tf.placeholder(tf.float32, name="lr")\n'
    )
    result = Converter(Settings(select=("NPU234",))).convert(text.encode("utf-8"))
    assert [(d.line, d.message.partition(":")[0]) for d in result.diagnostics] == [
        (3, "2 placeholders with a dynamic shape")
    ]


def test_each_batch_queue_with_threads_is_reported_and_other_queues_once() -> None:
    assert (
        reported(
            """
        import tensorflow as tf
        names = tf.train.string_input_producer(files)
        _, record = tf.TFRecordReader().read(names)
        a = tf.train.batch([record], 8, num_threads=4)
        b = tf.train.batch([record], 8, 2)
        c = tf.train.batch([record], 8, num_threads=1)
        """,
            "NPU223",
        )
        == ["NPU223"] * 3
    )


def test_queues_in_a_file_of_input_code_are_reported_once(tmp_path: pathlib.Path) -> None:
    text = """
        import tensorflow as tf
        names = tf.train.string_input_producer(files)
        _, record = tf.TFRecordReader().read(names)
        """
    assert reported(text, "NPU223", str(tmp_path / "dataset.py")) == ["NPU223"]


def test_masks_in_one_statement_are_reported_once() -> None:
    assert (
        reported(
            """
        import tensorflow as tf
        loss = tf.reduce_sum(tf.boolean_mask(a, m) - tf.boolean_mask(b, m))
        other = tf.boolean_mask(c, m)
        """,
            "NPU231",
        )
        == ["NPU231"] * 2
    )


@pytest.mark.parametrize(
    "reduction, instead",
    [
        ("reduce_sum", "tf.reduce_sum(x * weights)"),
        ("reduce_mean", "/ tf.reduce_sum(weights)"),
        ("reduce_max", "x.dtype.min"),
        ("reduce_min", "x.dtype.max"),
        ("identity", "npu_shim.data.masked_select(x, mask, MOST)"),
    ],
)
def test_the_mask_fits_the_reduction(reduction: str, instead: str) -> None:
    text = f"import tensorflow as tf\n\ny = tf.{reduction}(tf.boolean_mask(x, m))\n"
    (diagnostic,) = Converter(Settings(select=("NPU231",))).convert(text.encode("utf-8")).diagnostics
    assert instead in diagnostic.message


# --- single decisions --------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("tf.nn.top_k(x, tf.reduce_sum(n))", ["NPU235"]),
        ("tf.nn.top_k(x, tf.minimum(5, tf.shape(x)[1]))", []),  # folds to a constant
        ("tf.nn.top_k(x, tf.minimum(5, tf.cast(tf.count_nonzero(n), tf.int32)))", ["NPU235"]),
        ("tf.nn.top_k(x, int(n))", []),
        ("tf.cast(x, np.float64)", ["NPU221"]),
        ("tf.cast(x, float)", []),
        ('tf.placeholder("float64", [3])', ["NPU221"]),
        ('tf.constant("float64")', []),
        ('tf.keras.backend.set_floatx("float64")', ["NPU221"]),
        ('tf.keras.backend.set_floatx("float32")', []),
        ('tf.placeholder(tf.float32, None, name="keep_prob")', []),
        ("tf.image.non_max_suppression_padded(b, s, 9)", ["NPU233"]),
        ("tf.image.non_max_suppression_padded(b, s, 9, pad_to_max_output_size=flag)", []),
        ("tf.sequence_mask(n, None, tf.float32)", ["NPU239"]),
        ("tf.sequence_mask(*args)", []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_call(text: str, expected: list[str]) -> None:
    assert reported(f"import numpy as np\nimport tensorflow as tf\n\ny = {text}\n") == expected


def test_a_constant_that_is_a_denormal_number_of_float16_is_not_reported() -> None:
    text = "import tensorflow as tf\n\nx = tf.cast(x, tf.float16)\ny = tf.log(x + %s)\n"
    assert reported(text % "3e-8", "NPU227") == []
    assert reported(text % "2.9e-8", "NPU227") == ["NPU227"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import keras", ["NPU228"]),
        ("def f():\n    from keras.layers import Dense", ["NPU228"]),
        ("from tensorflow.keras import layers", []),
        ("from .keras import layers", []),
        ("import keras_tuner", []),
        ("# keras", []),
    ],
)
def test_native_keras(text: str, expected: list[str]) -> None:
    assert reported("import tensorflow as tf\n" + text + "\nx = tf.placeholder(tf.int32)\n", "NPU228") == expected


def test_the_keras_package_is_that_of_tensorflow_unless_the_program_builds_graphs() -> None:
    text = "import keras\nmodel = keras.Sequential([keras.layers.Dense(1)])\nmodel.fit(x, y)\n"
    assert reported(text, "NPU228") == []
    assert reported(text, "NPU228", tf="1") == reported(text, "NPU228", compat_v1=True) == ["NPU228"]
    assert reported("from keras import backend as K\n" + text + "K.set_session(s)\n", "NPU228") == ["NPU228"]


def test_an_iterator_is_reported_once_for_all_loops_on_the_device() -> None:
    loop = "train_op = util.set_iteration_per_loop(sess, train_op, 10)\n"
    text = "from npu_shim.npu_init import *\nbatch = dataset.make_one_shot_iterator().get_next()\n" + 2 * loop
    found = Converter(Settings(select=("NPU244",))).convert(text.encode()).diagnostics
    assert [each.line for each in found] == [2]
