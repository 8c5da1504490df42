"""Code that is spelled as hardly anybody spells it becomes right all the same, or stays with a reason."""

from __future__ import annotations

import pathlib
import sys

import pytest
from convert_tf2npu.analysis.evidence_words import evidence_kinds_of_bytes
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project

TF = "import tensorflow as tf\n"
STAR = "from npu_shim.npu_init import *\n"
SINCE_3_8 = [
    (
        "a walrus in an argument",
        "tf.Session(config=(c := make()))",
        "tf.Session(config=(npu_config_proto(config_proto=(c := make()))))",
    ),
    (
        "a walrus as drop rate",
        "tf.compat.v1.nn.dropout(x, rate=(r := 0.1))",
        "npu_ops.dropout(x, keep_prob=(1 - (r := 0.1)))",
    ),
]
CASES = [
    (
        "a config that is yielded",
        "def f():\n    tf.Session(config=(yield))",
        "def f():\n    tf.Session(config=(npu_config_proto(config_proto=(yield))))",
    ),
    (
        "no space behind a keyword",
        "def f():\n    return(tf).Session()",
        "def f():\n    return(tf).Session(config=npu_config_proto())",
    ),
    (
        "no space before a name that is replaced",
        "def f():\n    return(tf).estimator.Estimator(g)",
        "def f():\n    return NPUEstimator(g, config=NPURunConfig())",
    ),
    (
        "positional arguments in parentheses",
        "tf.estimator.RunConfig(('a'), ((2)))",
        "NPURunConfig(model_dir=('a'), tf_random_seed=((2)))",
    ),
    ("a rate of low precedence", "tf.compat.v1.nn.dropout(x, rate=a | b)", "npu_ops.dropout(x, keep_prob=1 - (a | b))"),
    ("a rate that is 1 - keep", "tf.compat.v1.nn.dropout(x, rate=1.0 - keep)", "npu_ops.dropout(x, keep_prob=keep)"),
    ("a rate that is 2 - x", "tf.compat.v1.nn.dropout(x, rate=2 - x)", "npu_ops.dropout(x, keep_prob=1 - (2 - x))"),
    ("a rate that is a product", "tf.compat.v1.nn.dropout(x, rate=a * b)", "npu_ops.dropout(x, keep_prob=1 - a * b)"),
] + (SINCE_3_8 if sys.version_info >= (3, 8) else [])


@pytest.mark.parametrize("before,after", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_an_odd_spelling_is_converted(before: str, after: str) -> None:
    result = Converter().convert((TF + before + "\n").encode())
    assert result.new is not None, result.diagnostics
    assert result.new.decode() == TF + STAR + after + "\n"


LATER = [
    (
        "a module spread over blanks and lines",
        "from  tensorflow .keras \\\n.optimizers import Adam , AdamW\nopt = AdamW(1e-3)",
        "from  tensorflow .keras \\\n.optimizers import Adam\nfrom npu_shim.backports import AdamW\nopt = AdamW(1e-3)",
    ),
    (
        "a method in parentheses",
        "ds = tf.data.Dataset.range(8)\nds = ((ds).ragged_batch)((2))",
        "ds = tf.data.Dataset.range(8)\nds = ((ds).apply)(tf.data.experimental.dense_to_ragged_batch((2)))",
    ),
    (
        "a dot in a comment before the method",
        "ds = tf.data.Dataset.range(8)\nds = (ds  # v1.0\n .rebatch(2))",
        "ds = tf.data.Dataset.range(8)\nds = (ds  # v1.0\n .unbatch().batch(2))",
    ),
]


@pytest.mark.parametrize("before,after", [c[1:] for c in LATER], ids=[c[0] for c in LATER])
@pytest.mark.parametrize("two", ["print(ds.numpy())", "print(ds . numpy ( ))", "print(ds. # x.y\n numpy())"])
def test_an_odd_spelling_of_tensorflow_2_is_converted(before: str, after: str, two: str) -> None:
    head = f"{TF}x = tf.constant(1)\n{two.replace('ds', 'x')}\n"
    result = Converter(Settings(select=("NPU124",))).convert(f"{head}{before}\n".encode())
    assert result.new is not None, result.diagnostics
    assert result.new.decode() == f"{head}{after}\n"


@pytest.mark.parametrize(
    "head",
    [
        "import tensorflow as tf ; x = (1,\n 2)\n",
        "import tensorflow as tf \\\n\n",
        "import tensorflow as tf \\\n; x = 1\n",
    ],
    ids=["blank before a semicolon", "continued by an empty line", "continued by a semicolon"],
)
def test_the_import_stands_behind_that_of_tensorflow(head: str) -> None:
    result = Converter().convert((head + "tf.Session()\n").encode())
    assert result.new is not None
    names: list[str] = []
    exec(
        compile(
            result.new.decode()
            .replace("tf.Session", "names.append")
            .replace("import tensorflow as tf", "import sys as tf")
            .replace(STAR.strip(), 'npu_config_proto = lambda: "made"')
            .replace("config=", ""),
            "script",
            "exec",
        ),
        {"names": names},
    )
    assert names == ["made"]


REPORTED: list[tuple[str, str, str]] = [
    ("a comment inside a name", "x = (tf.estimator. # here\n     Estimator(f))", "a comment stands inside"),
    ("a generator for an argument", "tf.Session(x for x in y)", "npu_config_proto"),
]


@pytest.mark.parametrize("text,words", [t[1:] for t in REPORTED], ids=[t[0] for t in REPORTED])
def test_an_odd_spelling_is_unchanged_and_reported(text: str, words: str) -> None:
    result = Converter().convert((TF + text + "\n").encode())
    assert result.new is None and [words in d.message for d in result.diagnostics] == [True]


@pytest.mark.parametrize("text", ["x = backend.y\ntf.Session()", "def f():\n    util.x()\ntf.Session()"])
def test_the_star_gives_no_meaning_to_what_has_none(text: str) -> None:
    new = Converter().convert((TF + text + "\n").encode()).new
    assert new is not None and b"from npu_shim.npu_init import npu_config_proto\n" in new


def test_a_local_name_is_not_one_of_the_stars() -> None:
    new = Converter().convert((TF + "def f():\n    local = 1\n    return local\ntf.Session()\n").encode()).new
    assert new is not None and STAR.encode() in new


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import tensorflow as tf\n    s = tf.Session()\nfinally:\n    pass\n",
        "try:\n    import tensorflow as tf\n    s = tf.Session()\nexcept E:\n    import tensorflow.compat.v1 as tf\n    s = tf.Session()\n",
        "def f():\n    if x:\n        import tensorflow as tf\n        return tf.Session()\n    else:\n        import tensorflow as tf\n    return tf.Session()\n",
        "try:\n    def f():\n        import tensorflow as tf\n        return tf.Session()\nfinally:\n    f()\n",
        "if x: import tensorflow as tf; s = tf.Session()\n",
    ],
    ids=["try and finally", "both ways", "both branches in a function", "a function in a try", "one line"],
)
def test_the_import_comes_before_what_needs_it(text: str) -> None:
    new = Converter().convert(text.encode()).new
    assert new is not None
    at = new.decode().index("from npu_shim.npu_init import")
    assert 0 <= at < new.decode().index("npu_config_proto()")
    assert Converter().convert(new).new is None


def test_definitions_in_another_file_are_found_however_they_are_spelled(tmp_path: pathlib.Path) -> None:
    defined = "class \\\n Own (tf.Session): pass\ndef\\\n get (): return tf\n"
    used = "import a\na.Own()\na.get().Session()\n"
    (tmp_path / "a.py").write_text(TF + defined)
    (tmp_path / "b.py").write_text(used)
    project = Project([str(tmp_path / name) for name in ("a.py", "b.py")])
    new = Converter(Settings(), project).convert(used.encode(), str(tmp_path / "b.py")).new
    assert new is not None and new.decode().count("(config=npu_config_proto())") == 2


@pytest.mark.parametrize("call,trains", [("model . fit ", True), ("model.fit\\\n", True), ("model.fitted", False)])
def test_a_call_of_fit_is_found_however_it_is_spelled(call: str, trains: bool) -> None:
    assert ("trains" in evidence_kinds_of_bytes(f"import keras\n{call}(x)\n".encode())) is trains
