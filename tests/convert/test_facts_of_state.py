"""Rewrites that rest on facts of conditions, functions, sessions, models and steps, and findings that stay."""

from __future__ import annotations

import os
from typing import Any

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.results import FINDING, UNREACHED
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts.facts import Facts, digest
from convert_tf2npu.facts.seen import Block, FileFacts

from tests.convert.observed import converted_with_facts

PYTHON, NONE = {"is": "python"}, {"is": "none"}
BOOL = {"is": "tensor", "dtype": "bool"}
TF1 = "import tensorflow.compat.v1 as tf\n\n\n"
LAYER = TF1 + "def f(net, training):\n    return tf.layers.dropout(net, 0.25, training=training)\n"
SLIM = (
    "import tensorflow as tf\nfrom tensorflow.contrib import slim\n\n\n"
    "def f(net, training):\n    return slim.dropout(net, 0.75, is_training=training)\n"
)


def last_line(text: str, *notes: Any, **settings: Any) -> str:
    """Return the last line of a script converted with facts, without spaces around it."""
    result = converted_with_facts(text, *notes, **settings)
    assert [d.runs for d in result.diagnostics if d.kind == "change"] == ([2] if result.new else [])
    return (result.new or text.encode()).decode().splitlines()[-1].strip()


SWITCH = "from npu_shim.estimator.npu import npu_convert_dropout\n"
IN_SCOPE = SLIM.replace("    return", "    with slim.arg_scope(scope()):\n        return").replace(
    ", is_training=training", ""
)


@pytest.mark.parametrize("text", [LAYER, SLIM])
@pytest.mark.parametrize("called", [{"in": "graph"}, {"in": "eager"}, {}])
def test_a_condition_of_python_chooses_the_operator(text: str, called: Any) -> None:
    assert last_line(text, called, PYTHON) == "return npu_ops.dropout(net, 0.75) if training else net"


@pytest.mark.parametrize("text", [LAYER, SLIM])
@pytest.mark.parametrize("seen", [{}, NONE, BOOL, {"is": ["python", "tensor"], "dtype": "bool"}])
def test_other_conditions_in_graphs_leave_the_choice_to_the_library(text: str, seen: Any) -> None:
    result = converted_with_facts(text, {"in": "graph"}, seen)
    assert result.new is not None and result.new.decode().replace(SWITCH, "") == text and SWITCH in result.new.decode()
    assert [(d.kind, d.runs) for d in result.diagnostics] == [("change", 2)]
    again = Converter().convert(result.new)
    assert again.new is None and not again.diagnostics


def test_a_dropout_with_arguments_of_a_caller_leaves_the_choice_to_the_library() -> None:
    result = converted_with_facts(IN_SCOPE, {"in": "graph"})
    assert result.new is not None and result.new.decode().replace(SWITCH, "") == IN_SCOPE
    (diagnostic,) = converted_with_facts(
        IN_SCOPE.replace("0.75", "0.75, noise_shape=[1, 4]"), select=("NPU118",)
    ).diagnostics
    assert diagnostic.kind != "change" and "noise_shape" in diagnostic.message


@pytest.mark.parametrize("text", [LAYER, SLIM, "import tensorflow as tf\n\nlayer = tf.layers.Dropout(0.5)\n"])
def test_an_import_of_the_switch_leaves_the_choice_to_the_library_and_a_comment_does_not(text: str) -> None:
    for line, findings in ((SWITCH, 0), ("import npu_shim.estimator.npu.npu_convert_dropout\n", 0), (f"# {SWITCH}", 1)):
        assert (
            len(Converter(Settings(select=("NPU107", "NPU118", "NPU201"))).convert((line + text).encode()).diagnostics)
            == findings
        )


@pytest.mark.parametrize("called", [{}, {"in": "eager"}, {"in": "function"}, {"in": ["graph", "eager"]}])
@pytest.mark.parametrize("seen", [{}, NONE, BOOL, {"is": ["python", "none"]}])
@pytest.mark.parametrize("text", [LAYER, SLIM])
def test_other_conditions_elsewhere_stay_findings(text: str, seen: Any, called: Any) -> None:
    (diagnostic,) = converted_with_facts(text, called, seen).diagnostics
    assert diagnostic.kind != "change" and diagnostic.message.startswith("the condition of ")


@pytest.mark.parametrize("made", ["tf.Variable(False)", "tf.get_variable('on', [], tf.bool)"])
def test_a_condition_stays_a_finding_beside_a_boolean_variable(made: str) -> None:
    text = LAYER.replace("def f", f"flag = {made}\n\n\ndef f")
    assert last_line(text, {}, PYTHON) == text.splitlines()[-1].strip()  # in graphs it is always true in Python
    assert "npu_ops" in last_line(text.replace("False", "0.5").replace("tf.bool", "tf.float32"), {}, PYTHON)


def test_no_facts_for_a_rule_leave_its_finding() -> None:
    assert "tf.layers.dropout" in last_line(LAYER, {"in": "graph"}, PYTHON, no_facts_for=("NPU107",))


BOTH = "import tensorflow as tf\n\n\ndef f(net):\n    return tf.nn.dropout(net, 0.25)\n"
OF_1 = ["x", "keep_prob", "noise_shape", "seed", "name", "rate"]
OF_2 = ["x", "rate", "noise_shape", "seed", "name"]


@pytest.mark.parametrize("parameters, keep", [(OF_1, "0.25"), (OF_2, "0.75")])
def test_the_dropout_that_ran_says_what_its_second_argument_is(parameters: list[str], keep: str) -> None:
    line = last_line(BOTH, {"parameters": [tuple(parameters)]})
    assert line == f"return npu_ops.dropout(net, {keep})"


@pytest.mark.parametrize("seen", [{}, {"parameters": [("x", "p")]}, {"parameters": [tuple(OF_1), tuple(OF_2)]}])
def test_a_dropout_of_both_versions_stays_a_finding(seen: Any) -> None:
    assert last_line(BOTH, seen) == "return tf.nn.dropout(net, 0.25)"


HOST = TF1 + "def load(x):\n    return tf.py_func(read, [x], tf.float32)\n"


def messages(text: str, *notes: Any, **settings: Any) -> list[str]:
    return [d.message for d in converted_with_facts(text, *notes, **settings).diagnostics if d.kind != "change"]


def test_python_in_functions_of_datasets_is_fine() -> None:
    assert not messages(HOST, {"in": "data"}, select=("NPU237",))


@pytest.mark.parametrize("seen", [{}, {"in": "graph"}, {"in": "eager"}, {"in": ["data", "function"]}])
def test_python_in_models_is_reported(seen: Any) -> None:
    (message,) = messages(HOST, seen, select=("NPU237",))
    assert message.startswith("py_func runs Python on the host")


TOWERS = TF1 + (
    "for i, device in enumerate(devices):\n    with tf.device('/gpu:%d' % i):\n"
    "        towers.append(optimizer.compute_gradients(loss_of(parts)))\n"
)


@pytest.mark.parametrize("length, count", [(1, 0), ([0, 1], 0), (4, 1), ([1, 2], 1), (None, 1)])
def test_one_tower_that_ran_is_none(length: Any, count: int) -> None:
    seen = {"is": "other"} if length is None else {"is": "other", "length": length}
    assert len(messages(TOWERS, seen, select=("NPU256",))) == count


CLONES = (
    TF1 + "from deployment import model_deploy\n\nconfig = model_deploy.DeploymentConfig(num_clones=FLAGS.num_clones)\n"
)
QUEUE = TF1 + "images = tf.train.batch([image], 8, num_threads=FLAGS.threads)\n"


@pytest.mark.parametrize(
    "text, code, said", [(CLONES, "NPU256", "one NPU"), (QUEUE, "NPU223", "batch queues with several")]
)
def test_one_clone_and_one_thread_are_not_several(text: str, code: str, said: str) -> None:
    for seen in ({}, {"number": 4}, {"number": [1, 2]}):
        (message,) = messages(text, seen, select=(code,))
        assert message.startswith(said)
    assert not any(message.startswith(said) for message in messages(text, {"number": 1}, select=(code,)))


LAYERS = (
    TF1 + "def net(x, training):\n    x = tf.keras.layers.Dropout(0.5)(x, training=training)\n"
    "    return tf.keras.layers.Dropout(0.1)(x)\n"
)
IN_GRAPH = {"in": "graph", "training": "tensor"}


@pytest.mark.parametrize("others", [IN_GRAPH, {}, {"in": "graph", "training": False}])
def test_layers_that_dropped_in_graphs_use_the_operator(others: Any) -> None:
    result = converted_with_facts(LAYERS, IN_GRAPH, others, select=("NPU201",))
    assert result.new is not None and result.new.decode() == LAYERS.replace("as tf\n", "as tf\n" + SWITCH)
    assert {d.kind for d in result.diagnostics} == {"change"}


@pytest.mark.parametrize(
    "one, other, count",
    [
        (IN_GRAPH, {"in": "function", "training": True}, 1),
        ({}, {}, 1),
        ({"in": "eager", "training": True}, {"in": "graph", "training": False}, 0),
    ],
)
def test_other_layers_are_reported_or_fine(one: Any, other: Any, count: int) -> None:
    result = converted_with_facts(LAYERS, one, other, select=("NPU201",))
    assert (result.new, len(result.diagnostics)) == (None, count)


PREDICTS = TF1 + (
    "with tf.Session({}) as session:\n    tf.train.Saver().restore(session, path)\n    print(session.run(logits))\n"
)
READS = {"trains": False, "updates": False}


@pytest.mark.parametrize(
    "given, written",
    [
        ("", "config=npu_config_proto(graph_run_mode=0)"),
        ("config=c", "config=npu_config_proto(config_proto=c, graph_run_mode=0)"),
        ("'', None, None", "'', None, npu_config_proto(graph_run_mode=0)"),
    ],
)
def test_a_session_that_only_predicted_is_configured_so(given: str, written: str) -> None:
    result = converted_with_facts(PREDICTS.format(given), READS, select=("NPU101", "NPU283"))
    assert result.new is not None and f"tf.Session({written})" in result.new.decode()
    assert [(d.kind, d.code, d.runs) for d in result.diagnostics] == [("change", "NPU101", 2)]


@pytest.mark.parametrize(
    "seen, count",
    [
        ({}, 1),
        ({"trains": False, "updates": [False, True]}, 1),
        ({"updates": True}, 1),
        ({"trains": [False, True], "updates": [False, True]}, 0),
    ],
)
def test_a_session_that_updated_variables_is_not(seen: Any, count: int) -> None:
    result = converted_with_facts(PREDICTS.format(""), seen, select=("NPU101", "NPU283"))
    assert result.new is not None and "config=npu_config_proto()" in result.new.decode()
    assert len([d for d in result.diagnostics if d.kind != "change"]) == count


def test_a_configured_session_that_predicted_stays_a_finding() -> None:
    text = PREDICTS.format("config=npu_config_proto()").replace("as tf\n", "as tf\nfrom npu_shim.npu_init import *\n")
    assert len(messages(text, READS, select=("NPU101", "NPU283"))) == 1


CALLS_PYTHON = TF1 + (
    "table = tf.lookup.StaticHashTable(rows, 0)\n"
    "scores = tf.py_func(score, [x, table.lookup(x)], tf.float32)\n"
    "with tf.Session({}) as session:\n    print(session.run(scores))\n"
)
ON_HOST = {"in": "graph"}, {"trains": True, "updates": True, "python": [False, True], "tables": True}
MIXED = ("NPU101", "NPU237", "NPU240")


@pytest.mark.parametrize(
    "given, written",
    [
        ("", "config=npu_config_proto(mix_compile_mode=True)"),
        ("config=c", "npu_config_proto(config_proto=c, mix_compile_mode=True)"),
    ],
)
def test_a_session_with_operators_of_the_host_gets_mixed_computing(given: str, written: str) -> None:
    result = converted_with_facts(CALLS_PYTHON.format(given), *ON_HOST, select=MIXED)
    assert result.new is not None and written in result.new.decode()
    assert [(d.kind, d.code, d.runs) for d in result.diagnostics] == [("change", "NPU101", 2)]


@pytest.mark.parametrize(
    "seen, codes",
    [
        (({"in": "graph"}, {**ON_HOST[1], "python": False}), ["NPU237"]),
        (({"in": "graph"}, {**ON_HOST[1], "tables": False}), ["NPU240"]),
        (({"in": ["graph", "eager"]}, ON_HOST[1]), ["NPU237"]),
        (({}, {}), ["NPU240", "NPU237"]),
    ],
)
def test_operators_of_the_host_that_no_session_ran_stay_findings(seen: Any, codes: list[str]) -> None:
    result = converted_with_facts(CALLS_PYTHON.format(""), *seen, select=MIXED)
    assert [d.code for d in result.diagnostics if d.kind != "change"] == codes


def test_options_of_a_session_are_taken_back_by_the_rule_that_writes_them() -> None:
    for text, seen, rules, option in (
        (CALLS_PYTHON, ON_HOST, MIXED, "mix_compile_mode"),
        (PREDICTS, (READS,), ("NPU101", "NPU283"), "graph_run_mode"),
    ):
        line = 1 + text[: text.index("tf.Session")].count("\n")
        for code in "NPU101", f"NPU101:train.py:{line}":
            result = converted_with_facts(text.format(""), *seen, select=rules, no_facts_for=(code,))
            assert result.new is not None and option not in result.new.decode()
            assert {d.code for d in result.diagnostics} == set(rules)


@pytest.mark.parametrize(
    "more",
    ["y = tf.layers.batch_normalization(x)\n", "iterations_per_loop = 4\n", "tf.train.MonitoredTrainingSession()\n"],
)
def test_programs_that_need_more_than_the_option_are_not_asked_for_their_sessions(more: str) -> None:
    result = Converter(Settings(select=MIXED)).convert((CALLS_PYTHON.format("") + more).encode())
    assert [asked.place.kind for asked in result.asked] == ["op"]


FITS = (
    TF1
    + "tf.disable_v2_behavior()\nmodel = MODELS[name]()\nmodel.compile(loss='mse', optimizer=tf.keras.optimizers.Adam())\nmodel.fit(x, y)\n"
)


def test_a_model_of_keras_that_trained_gets_a_session() -> None:
    new = converted_with_facts(FITS, {"is": "keras", "eager": False}, select=("NPU105",)).new
    assert new is not None and "npu_keras_sess = set_keras_session_npu_config()\nmodel = MODELS" in new.decode()


@pytest.mark.parametrize(
    "seen, count",
    [
        ({}, 1),
        ({"is": "keras", "eager": True}, 1),
        ({"is": ["keras", "other"], "eager": False}, 1),
        ({"is": "other"}, 0),
    ],
)
def test_other_models_get_none(seen: Any, count: int) -> None:
    result = converted_with_facts(FITS, seen, select=("NPU105",))
    assert (result.new, len(result.diagnostics)) == (None, count)


STEP = """import tensorflow as tf
{top}

def main(dataset, model, optimizer, options):
    loss_of = tf.keras.losses.MeanSquaredError()
    {before}

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        {inside}
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    for x, y in dataset:
        loss = step(x, y)
        {after}


main(*setup())
"""
PLACES = {"top": "", "before": "scale = 0.5", "inside": "", "after": "print(loss.numpy())"}
NOTED = {"lists": [()], "numbers": [()], "objects": [()]}
RAN = {"eager": True, "arguments": ["tensor", "array", "none"], "returns": "tensor", "traces": True, **NOTED}
FEW = {**RAN, "shapes": ["float32[8, 3]", "float32[2, 3]"], "constant": True}
LIBRARY, EAGER = {"is": "library", "reads": [()], "lists": [()]}, {"in": "eager"}


def step_of(**code: str) -> str:
    return STEP.format(**{**PLACES, **code})


TRACED = "an observed run could trace it. Put @tf.function above step if"


def test_a_step_that_traced_is_named() -> None:
    text = step_of(inside="loss = tf.square(loss) * scale")
    # asked: the tape, the loss, the model, the optimizer, and the call of the step
    result = converted_with_facts(text, EAGER, LIBRARY, LIBRARY, LIBRARY, RAN, select=("NPU247",))
    assert result.new is None and [TRACED in d.message for d in result.diagnostics] == [True]


def test_a_step_of_few_shapes_is_written_as_a_function() -> None:
    text = step_of(inside="loss = tf.square(loss) * scale")
    seen = (EAGER, LIBRARY, LIBRARY, LIBRARY, FEW)
    result = converted_with_facts(text, *seen, select=("NPU247",))
    assert (result.new or b"").decode() == text.replace("    def step(x, y)", "    @tf.function\n    def step(x, y)")
    ((line, kind, runs),) = [(d.line, d.kind, d.runs) for d in result.diagnostics]
    assert (kind, runs) == ("change", 2)
    assert converted_with_facts((result.new or b"").decode(), select=("NPU247",)).diagnostics == ()
    for codes in (("NPU247",), (f"NPU247:train.py:{line}",)):  # also after migrate has taken it back
        without = converted_with_facts(text, *seen, select=("NPU247",), no_facts_for=codes)
        assert without.new is None and [TRACED in d.message for d in without.diagnostics] == [False]


@pytest.mark.parametrize(
    "seen, written",
    [
        ({**FEW, "arguments": ["tensor", "number"]}, True),
        ({**FEW, "arguments": ["tensor", "number"], "constant": [True, False]}, False),
        ({**FEW, "shapes": [f"float32[{n}]" for n in range(3)]}, False),
        ({**FEW, "traces": False}, False),
        ({**FEW, "returns": "number"}, False),
    ],
)
def test_a_step_is_written_as_a_function_only_if_its_calls_are_alike(seen: Any, written: bool) -> None:
    result = converted_with_facts(step_of(), EAGER, LIBRARY, LIBRARY, LIBRARY, seen, select=("NPU247",))
    assert (result.new is not None) == written and len(result.diagnostics) == 1


def test_a_step_that_updates_metrics_is_written_as_a_function() -> None:
    text = step_of(before="mean = tf.keras.metrics.Mean()", inside="mean.update_state(loss)")
    seen = (EAGER, LIBRARY, LIBRARY, LIBRARY, {"is": "layer", "reads": [("total", "count")], "lists": [()]}, FEW)
    assert converted_with_facts(text, *seen, select=("NPU247",)).new is not None
    assert converted_with_facts(text + "options.total = 1\n", *seen, select=("NPU247",)).new is None


def test_a_step_with_a_call_that_no_run_reached_is_only_named() -> None:
    text = step_of(after="step(y, x)")
    result = converted_with_facts(text, EAGER, LIBRARY, LIBRARY, LIBRARY, FEW, {}, select=("NPU247",))
    assert result.new is None and [TRACED in d.message for d in result.diagnostics] == [True]


@pytest.mark.parametrize(
    "seen",
    [
        {**RAN, "traces": False},
        {name: values for name, values in FEW.items() if name != "lists"},  # of an earlier version
        {name: values for name, values in FEW.items() if name != "numbers"},
        {**RAN, "traces": [True, False]},
        {**RAN, "arguments": "number"},
        {**RAN, "returns": "number"},
        {"eager": True, "returns": "tensor"},
        {**RAN, "eager": [True, False]},
        {},
    ],
)
def test_other_steps_stay_as_they_are(seen: Any) -> None:
    result = converted_with_facts(step_of(), EAGER, LIBRARY, LIBRARY, LIBRARY, seen, select=("NPU247",))
    assert [TRACED in d.message for d in result.diagnostics] == [False]


@pytest.mark.parametrize(
    "callee, reads, count", [("layer", ("dense",), 0), ("layer", ("rate",), 1), ("layer", (), 0), ("other", (), 1)]
)
def test_layers_of_the_script_may_read_what_stays(callee: str, reads: tuple[str, ...], count: int) -> None:
    text = step_of(after="model.rate = 0.5")
    seen = {"is": callee, "reads": [reads], "lists": [()]}
    result = converted_with_facts(text, EAGER, LIBRARY, seen, LIBRARY, RAN, select=("NPU247",))
    assert len([d for d in result.diagnostics if TRACED not in d.message]) == count


@pytest.mark.parametrize(
    "code, written",
    [
        ({"before": "model.compile('sgd', 'mse')"}, False),  # a model of a caller, which may compile it, too
        ({"before": "net = make(); net.compile('sgd', 'mse')"}, True),
        ({"before": "net = make(); net.compile('sgd', 'mse')", "after": "net.compile('adam', 'mse')"}, False),
        ({"before": "net = make()", "after": "net.compile('adam', 'mse')"}, False),
        ({"top": "import re\n", "after": "re.compile('a')"}, True),
        ({"before": "net = make(); net.adapt(dataset)"}, True),
    ],
)
def test_methods_of_keras_that_are_called_once_set_values_that_stay(code: dict[str, str], written: bool) -> None:
    text = step_of(inside="loss = loss + options.optimizer", **code)
    result = converted_with_facts(text, EAGER, *[LIBRARY] * (3 if written else 0), *[FEW] * written, select=("NPU247",))
    assert (result.new is not None) is written


def test_settings_of_keras_that_are_set_once_stay() -> None:
    text = step_of(top="tf.keras.backend.set_learning_phase(1)\ntf.keras.backend.set_epsilon(1e-7)\n")
    assert converted_with_facts(text, EAGER, LIBRARY, LIBRARY, LIBRARY, FEW, select=("NPU247",)).new is not None


def test_a_step_may_be_interrupted() -> None:
    text = step_of().replace("loss = step(x, y)", "try: loss = step(x, y)\n        except KeyboardInterrupt: break")
    assert converted_with_facts(text, EAGER, LIBRARY, LIBRARY, LIBRARY, FEW, select=("NPU247",)).new is not None


def test_a_layer_that_is_adapted_in_training_stays() -> None:
    adapted = {**LIBRARY, "reads": [("adapt", "mean")]}
    for after, written in ("pass", True), ("model.adapt(x)", False):
        result = converted_with_facts(step_of(after=after), EAGER, LIBRARY, adapted, LIBRARY, FEW, select=("NPU247",))
        assert (result.new is not None) is written


@pytest.mark.parametrize("callee", [{}, {"is": "other"}, {"is": "metric"}, {"is": ["library", "other"]}])
def test_a_step_that_calls_unknown_code_stays(callee: Any) -> None:
    result = converted_with_facts(step_of(), EAGER, LIBRARY, callee, LIBRARY, RAN, select=("NPU247",))
    assert [TRACED in d.message for d in result.diagnostics] == [False]


@pytest.mark.parametrize(
    "code",
    [
        {"inside": "print(loss)"},
        {"inside": "loss.numpy()"},
        {"inside": "float(loss)"},
        {"inside": "if scale: loss = loss * scale"},
        {"inside": "loss = loss * options['scale']"},
        {"inside": "options.steps += 1"},
        {"inside": "loss = loss * options.scale", "after": "options.scale *= 0.5"},
        {"inside": "loss = loss * scale", "after": "scale = scale * 0.5"},
        {"inside": "loss = loss * scale", "before": "for scale in scales: pass"},
        {"inside": "loss = loss * SCALE", "top": "SCALE = 1\ndef set_scale():\n    global SCALE\n    SCALE = 2\n"},
        {"inside": "tf.summary.scalar('loss', loss)"},
        {"inside": "tf.Variable(1.0)"},
        {"inside": "loss = f(loss)", "top": "def f(x):\n    print(x)\n    return x\n"},
        {"inside": "yield loss"},
        {"after": "model.trainable = False"},
        {"after": "register(step)"},
        {"inside": "loss = loss * tf.stack(scales)", "before": "scales = [1.0]", "after": "scales.append(0.5)"},
        {"inside": "loss = loss * scales", "before": "scales = {}", "after": "scales['a'] = 0.5"},
        {"inside": "loss = loss * len(model.held)"},
        {"inside": "for scale in model.held: loss = loss * scale"},
        {
            "inside": "loss = loss * options.rate",
            "top": "class O:\n    @property\n    def rate(self):\n        return 1\n",
        },
        {"top": "def use(o, n):\n    setattr(o, n, 1)\n"},
        {"top": "def use(n):\n    globals()[n] = 1\n"},
        {"inside": "loss = tf.map_fn(f, loss)", "top": "def f(x):\n    return x\n"},  # of which the step knows nothing
        {"inside": "loss = tf.map_fn(options.f, loss)", "top": "class A:\n    def f(self, x):\n        return x\n"},
        {"inside": "loss = tf.map_fn(options, loss)"},
        {"inside": "loss = tf.add(f, loss)", "before": "f = lambda x: x"},
        {
            "inside": "loss = f(loss)",
            "top": "HELD = [1.0]\ndef f(x, held=HELD):\n    return x * held[0]\n",
            "after": "HELD[0] = 0.5",
        },
        {
            "inside": "loss = loss * options.scale",
            "top": "class A:\n    def __init__(self):\n        options.scale = 1\n",
        },
        {"inside": "loss = loss * options.scale", "top": "class A:\n    def build(self):\n        self.scale = 1\n"},
        {"inside": "tf.random.Generator.from_seed(1)"},
        {"after": "model.add(tf.keras.layers.Dense(1))"},
        {"top": "def deepen(model):\n    model.add(tf.keras.layers.Dense(1))\n"},
        {"after": "tf.keras.backend.set_learning_phase(0)"},
        {"top": "def use(phase):\n    tf.keras.backend.set_learning_phase(phase)\n"},
        {"top": "tf.keras.backend.set_epsilon(1e-7)\n", "after": "pass\ntf.keras.backend.set_epsilon(0.1)"},
        {"after": "options.__init__(scale)"},
        {"after": "options['scale'].value = 0.5"},  # as of flags of absl
        {"after": "try: step(x, y)\n        except tf.errors.InvalidArgumentError: pass"},
        {"after": "try: step(x, y)\n        except (StopIteration, ValueError): pass"},
        {"after": "try: step(x, y)\n        except: pass"},
    ],
)
def test_steps_with_effects_or_changing_values_are_not_asked_for_their_calls(code: dict[str, str]) -> None:
    result = Converter(Settings(select=("NPU247",))).convert(step_of(**code).encode())
    assert "step" not in [asked.place.kind for asked in result.asked]


def with_model(text: str) -> str:
    """Return a program whose step is given its model."""
    text = text.replace("loss = step(x, y)", "loss = step(x, y, model)").replace("step(y, x)", "step(y, x, model)")
    return text.replace("def step(x, y)", "def step(x, y, net)")


@pytest.mark.parametrize("after, count", [("print(loss)", 0), ("loss = step(y, x)", 1)])
def test_a_step_that_is_given_objects_has_one_call(after: str, count: int) -> None:
    calls = [{**RAN, "arguments": ["tensor", "object"], "objects": [("net",)]}] * (1 + count)
    text = with_model(step_of(after=after))
    result = converted_with_facts(text, EAGER, LIBRARY, LIBRARY, LIBRARY, *calls, select=("NPU247",))
    assert len([d for d in result.diagnostics if TRACED not in d.message]) == count


OBJECTS = {**FEW, "arguments": ["tensor", "object"]}


@pytest.mark.parametrize("loop, written", [("", True), ("for fold in range(3): ", False)])
def test_a_step_that_is_given_objects_gets_those_of_one_model(loop: str, written: bool) -> None:
    text = with_model(step_of().replace("\nmain(", f"\n{loop}main("))
    call = {**OBJECTS, "objects": [("net",)]}
    result = converted_with_facts(text, EAGER, LIBRARY, LIBRARY, LIBRARY, call, select=("NPU247",))
    assert (b"@tf.function" in (result.new or b"")) is written


EPOCHS = """import tensorflow as tf

def step(net, x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(net(x))
    optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))

def train(data, model):
    for x in data:
        step(model, x)

def main(data):
    model = make()
    for epoch in range(20):
        train(data, model)

optimizer = tf.keras.optimizers.SGD(0.1)
main(load())
"""


@pytest.mark.parametrize(
    "old, new, written",
    [
        ("", "", True),
        ("    for epoch", "    other = make()\n    for epoch", True),
        ("        train(data, model)", "        model = make()\n        train(data, model)", False),
        ("train(data, model)\n\nop", "train(data, model)\n    train(data, make())\n\nop", False),
        ("train(data, model)\n\nop", "train(data, models[epoch])\n\nop", False),
        ("for epoch in range(20)", "for model in [make(), make()]", False),
        ("    for x in data:\n", "    model = make()\n    for x in data:\n", False),
        ("main(load())", "for fold in range(3):\n    main(load())", False),
        (
            "        train(data, model)",
            "        train(data, model=options.model)\n        options.model = make()",
            False,
        ),
    ],
)
def test_a_step_gets_the_objects_of_a_function_that_runs_each_epoch(old: str, new: str, written: bool) -> None:
    call = {**OBJECTS, "objects": [("net",)]}
    text = EPOCHS.replace(old, new, 1)
    result = converted_with_facts(text, EAGER, LIBRARY, LIBRARY, call, select=("NPU247",))
    assert (b"@tf.function" in (result.new or b"")) is written


@pytest.mark.parametrize(
    "given, after, written",
    [("scale", "", True), ("0.5", "", True), ("scale", "scale = 0.1", False), ("options.scale", "", True),
     ("options.scale", "options.scale = 0.1", False), ("float(loss)", "", False)],
)  # fmt: skip
def test_a_step_gets_numbers_that_no_code_changes(given: str, after: str, written: bool) -> None:
    text = step_of(after=after).replace("def step(x, y)", "def step(x, y, z)")
    call = {**FEW, "arguments": ["tensor", "number"], "numbers": [("z",)]}
    text = text.replace("step(x, y)", f"step(x, y, {given})")
    result = converted_with_facts(text, EAGER, LIBRARY, LIBRARY, LIBRARY, call, select=("NPU247",))
    assert (b"@tf.function" in (result.new or b"")) is written


@pytest.mark.parametrize(
    "code, written",
    [
        ({"before": "parts = [tf.Variable(1.0)]; print(len(parts), parts[0])"}, True),
        ({"before": "parts = {'a': tf.Variable(1.0)}; w = list(parts.values()) + [1]"}, True),
        ({"before": "parts = model.trainable_variables"}, True),
        ({"before": "parts = [tf.Variable(1.0)]; grow(parts)"}, False),
        ({"before": "parts = others = [tf.Variable(1.0)]"}, False),
        ({"before": "parts = options.parts"}, False),
        ({"before": "parts = [tf.Variable(1.0)]; options.held = parts"}, False),
        ({"before": "parts = [tf.Variable(1.0)]", "after": "parts.append(loss)"}, False),
        ({"top": "def grow(parts):\n    return len(parts)\n", "before": "parts = [tf.Variable(1.0)]"}, True),
    ],
)
def test_a_step_reads_lists_that_have_one_name(code: dict[str, str], written: bool) -> None:
    held = {**FEW, "lists": [("parts",)]}
    result = converted_with_facts(step_of(**code), EAGER, LIBRARY, LIBRARY, LIBRARY, held, select=("NPU247",))
    assert (result.new is not None) is written
    held = {**LIBRARY, "lists": [("parts",)]}  # in a layer that it calls
    result = converted_with_facts(step_of(**code), EAGER, LIBRARY, held, LIBRARY, FEW, select=("NPU247",))
    assert (result.new is not None) is written


@pytest.mark.parametrize(
    "given, after, written",
    [
        ("options.held", "", True),
        ("options.held", "options.held = model", False),
        ("model", "", True),
        ("model.trainable_variables", "", True),
        ("model.trainable_variables", "model.trainable = False", False),
        ("options.models[0]", "", False),  # of one stage, or of one member of an ensemble
        ("x.model", "", False),
    ],
)
def test_a_step_that_is_given_an_object_gets_one(given: str, after: str, written: bool) -> None:
    text = step_of(after=after).replace("model.trainable_variables", "x")
    text = text.replace("step(x, y)", f"step({given}, y)").replace(f"def step({given}", "def step(x")
    for objects, expected in ({"objects": [("x",)]}, written), ({"objects": []}, False):  # of an earlier version
        call = {**FEW, "arguments": ["tensor", "object"], **objects}
        result = converted_with_facts(text, EAGER, LIBRARY, LIBRARY, LIBRARY, call, select=("NPU247",))
        assert (b"@tf.function" in (result.new or b"")) is expected


METHOD = """import tensorflow as tf

class Base({base}):
    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss_of(x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    def loss_of(self, x, y):
        return tf.reduce_mean(x - y)

{other}

agent = make()
optimizer = tf.keras.optimizers.SGD(0.1)
variables = agent.trainable_variables
for x, y in dataset:
    agent.step(x, y)
"""


@pytest.mark.parametrize(
    "base, other, asked",
    [
        ("tf.Module", "", True),
        ("tf.Module", "class Other:\n    def loss_of(self, x, y):\n        return 1", True),
        ("tf.Module", "class Other(Base):\n    def loss_of(self, x, y):\n        return 1", False),
        ("tf.Module", "tf.saved_model.save(agent, 'out')", False),  # TensorFlow cannot save the optimizer's update
        ("object", "tf.saved_model.save(agent, 'out')", True),
    ],
)
def test_a_method_is_asked_about_unless_a_class_overrides_what_it_calls(base: str, other: str, asked: bool) -> None:
    result = Converter(Settings(select=("NPU247",))).convert(METHOD.format(base=base, other=other).encode())
    assert ("step" in [question.place.kind for question in result.asked]) is asked


def test_a_step_that_ran_in_functions_only_is_none() -> None:
    result = converted_with_facts(step_of(), {"in": "function"}, {}, {}, {}, {}, select=("NPU247",))
    assert result.diagnostics == ()


WITH_OPERATORS = """import tensorflow as tf

try:
    operators = tf.load_op_library("libcustom_ops.so")
except tf.errors.NotFoundError:
    operators = None
"""


SECOND_LIBRARY = 'others = tf.load_op_library("libother_ops.so")\n'


@pytest.mark.parametrize(
    "text,handled,without,kind",
    [
        (WITH_OPERATORS, 1, (), UNREACHED),
        (WITH_OPERATORS, 0, (), FINDING),  # the question was not asked
        (WITH_OPERATORS, 1, ("NPU218",), FINDING),
        (WITH_OPERATORS + SECOND_LIBRARY, 1, (), FINDING),
    ],
)
def test_a_library_that_no_run_could_load_counts_as_not_reached(
    text: str, handled: int, without: tuple[str, ...], kind: str
) -> None:
    path, raw = os.path.realpath("train.py"), text.encode()
    file = FileFacts(digest(raw), {Block(1, 7): 1, Block(6, 6): handled})
    facts = Facts(os.path.dirname(path), (), {"train.py": file})
    result = Converter(Settings(facts=facts, select=("NPU218",), no_facts_for=without)).convert(raw, path)
    assert [d.kind for d in result.diagnostics] == [kind]


def test_a_library_that_a_run_loaded_is_reported() -> None:
    seen = {"is": "other"}
    assert [d.kind for d in converted_with_facts(WITH_OPERATORS, seen, select=("NPU218",)).diagnostics] == [FINDING]


COUNTER = """import tensorflow as tf

step = tf.train.get_or_create_global_step()
counted = tf.assign_add(step, 1)
"""
SCALED = "optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer, 128.0)\n"


@pytest.mark.parametrize("more,left", [("", 0), (SCALED, 1)])
def test_a_counter_is_reported_if_the_program_names_loss_scaling(more: str, left: int) -> None:
    seen = {"in": "graph", "skips": False}  # a fixed scale of TensorFlow skips nothing, that of the NPU does
    assert len(converted_with_facts(COUNTER + more, seen, select=("NPU226",)).diagnostics) == left
