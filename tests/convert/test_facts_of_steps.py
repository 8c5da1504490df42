"""Training steps in a loop: what becomes a tf.function by facts, and what stays."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.results import FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project

from .observed import converted_with_facts

LOOP = """import tensorflow as tf
{top}

def main(dataset, model, optimizer, options):
    scale = 0.5
    {before}
    # Train.
    for epoch in range(2):
        for step, (x, y) in enumerate(dataset):
            x = tf.reshape(x, [-1, 4])
            with tf.GradientTape() as tape:
                error = model(x) - y  # of a batch
                loss = tf.reduce_mean(error * error) * scale
                {inside}

            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            {after}


main(*setup())
"""
PLACES = {"top": "", "before": "", "inside": "", "after": "print(step, loss.numpy())"}
FEW = {
    "eager": True,
    "arguments": "tensor",
    "returns": "tensor",
    "traces": True,
    "narrowed": [()],
    "lists": [()],
    "numbers": [()],
    "shapes": ["float32[8, 4]", "float32[2, 4]"],
    "constant": True,
}
LIBRARY, EAGER = {"is": "library", "reads": [()], "lists": [()]}, {"in": "eager"}
STEP = """    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            error = model(x) - y  # of a batch
            loss = tf.reduce_mean(error * error) * scale


        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    # Train.
    for epoch in range(2):
        for step, (x, y) in enumerate(dataset):
            x = tf.reshape(x, [-1, 4])
            loss = train_step(x, y)
            print(step, loss.numpy())
"""


def loop_of(**code: str) -> str:
    return LOOP.format(**{**PLACES, **code})


def with_facts(text: str, seen: Any = FEW, **settings: Any) -> FileResult:
    """Return a loop converted with what a run saw of its tape, and of its model and its optimizer."""
    return converted_with_facts(text, seen, EAGER, LIBRARY, LIBRARY, select=("NPU247",), **settings)


def written(text: str, seen: Any = FEW) -> str:
    return (with_facts(text, seen).new or b"").decode()


def test_a_step_in_a_loop_becomes_a_function_before_the_loop() -> None:
    text = loop_of()
    result = with_facts(text)
    new = (result.new or b"").decode()
    before, loop = text.index("    # Train."), text.index("\n\nmain(*setup())")
    assert new == text[:before] + STEP + text[loop:]
    ((line, kind, runs),) = [(d.line, d.kind, d.runs) for d in result.diagnostics]
    assert (line, kind, runs) == (11, "change", 2)
    assert converted_with_facts(new, select=("NPU247",)).diagnostics == ()
    for codes in (("NPU247",), (f"NPU247:train.py:{line}",)):  # also after migrate has taken it back
        assert with_facts(text, no_facts_for=codes).new is None


@pytest.mark.parametrize(
    "code, step, call",
    [
        ({"after": "pass"}, "train_step(x, y)", "train_step(x, y)"),
        ({"after": "print(error, loss)"}, "train_step(x, y)", "error, loss = train_step(x, y)"),
        ({"after": "del loss"}, "train_step(x, y)", "loss = train_step(x, y)"),
        ({"after": "y = model(x)\n    print(y, loss)"}, "train_step(x, y)", "loss = train_step(x, y)"),
        # a Python number that is computed in each step, and an object that each epoch has another of
        ({"inside": "loss = loss * step"}, "train_step(x, y, step)", "loss = train_step(x, y, step)"),
        ({"before": "total = 0.0", "inside": "total += loss"}, "train_step(x, y, total)", "loss, total = train_step"),
        ({"before": "mean = tf.zeros([])", "inside": "mean = 0.9 * mean + loss"}, "train_step(x, y, mean)", "loss, mean ="),
        ({"top": "train_step = 1"}, "training_step(x, y)", "loss = training_step(x, y)"),
        ({"inside": "loss = sum_of([loss * i for i in range(3)])", "top": "sum_of = lambda values: tf.add_n(values)"},
         "train_step(x, y)", "loss = train_step(x, y)"),
        ({"inside": "loss = loss * W['a']", "top": "W = {'a': tf.Variable(1.0)}"}, "train_step(x, y)", "loss = train"),
    ],
)  # fmt: skip
def test_the_function_gets_what_changes_and_returns_what_is_read(code: dict[str, str], step: str, call: str) -> None:
    new = written(loop_of(**code))
    assert f"\n    def {step}:\n" in new and f"\n            {call}" in new
    assert "\n    @tf.function\n" in new


def test_arrays_of_float64_beside_tensors_are_passed_as_float32() -> None:
    seen = {**FEW, "arguments": ["tensor", "array"], "narrowed": [("x",)]}
    assert '            loss = train_step(x.astype("float32"), y)\n' in written(loop_of(), seen)


def test_steps_that_follow_at_once_are_one_function() -> None:
    second = """with tf.GradientTape() as tape:
                rest = tf.reduce_mean(model(x))
            gradients = tape.gradient(rest, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            print(rest)
            with tf.GradientTape() as tape:
                last = tf.reduce_mean(model(x))
            optimizer.apply_gradients(zip(tape.gradient(last, model.variables), model.variables))"""
    result = converted_with_facts(
        loop_of(after=second), FEW, EAGER, LIBRARY, LIBRARY, LIBRARY, LIBRARY, select=("NPU247",)
    )
    new = (result.new or b"").decode()
    assert new.count("@tf.function") == 1 and "            rest = train_step(x, y)\n            print(rest)\n" in new
    assert [d.kind for d in result.diagnostics] == ["change", "finding"]  # and the last one stays


def test_a_loop_of_a_module_gets_its_function_before_it() -> None:
    text = """import tensorflow as tf

w = tf.Variable(2.0)
\t
for x in data:
\twith tf.GradientTape() as tape:
\t\tloss = w * x
\tw.assign_sub(tape.gradient(loss, w))
print(loss)
"""
    result = converted_with_facts(text, FEW, EAGER, LIBRARY, select=("NPU247",))
    assert (
        "\n@tf.function\ndef train_step(x):\n\twith tf.GradientTape() as tape:\n\t\tloss = w * x\n"
        in (result.new or b"").decode()
    )
    assert "\treturn loss\n\n\nfor x in data:\n\tloss = train_step(x)\nprint(loss)\n" in (result.new or b"").decode()


@pytest.mark.parametrize(
    "seen",
    [
        {**FEW, "arguments": ["tensor", "number"], "constant": [True, False]},
        {**FEW, "shapes": [f"float32[{n}]" for n in range(3)]},
        {**FEW, "traces": False},
        {**FEW, "narrowed": [(), ("x",)]},
        {**FEW, "returns": ["tensor", "other"]},
        {**FEW, "arguments": ["tensor", "other"]},
        {**FEW, "arguments": ["tensor", "object"]},  # a later fold may make another model
        {**FEW, "eager": [True, False]},
        {"eager": True, "arguments": "tensor", "shapes": "float32[8, 4]"},
        {},
    ],
)
def test_a_step_in_a_loop_stays_if_its_passes_are_not_alike(seen: Any) -> None:
    result = with_facts(loop_of(), seen)
    assert (result.new, [d.kind for d in result.diagnostics]) == (None, ["finding"])


@pytest.mark.parametrize("callee", [{}, {"is": "other"}, {"is": ["library", "other"], "reads": [()], "lists": [()]}])
def test_a_step_in_a_loop_that_calls_unknown_code_stays(callee: Any) -> None:
    assert converted_with_facts(loop_of(), FEW, EAGER, callee, LIBRARY, select=("NPU247",)).new is None


@pytest.mark.parametrize(
    "code",
    [
        {"inside": "print(loss)"},
        {"inside": "history.append(loss)"},
        {"inside": "options.steps += 1"},
        {"inside": "options['steps'] = step"},
        {"inside": "loss.numpy()"},
        {"inside": "if scale: loss = loss * scale"},
        {"inside": "if step: break"},
        {"inside": "w = tf.Variable(1.0)"},
        {"inside": "tf.summary.scalar('loss', loss)"},
        {"inside": "f = lambda: loss"},
        {"inside": "loss = loss * options['scale']"},
        {"inside": "loss = loss * options.scale", "after": "options.scale *= 0.5"},
        {"inside": "loss = loss * SCALES[0]", "top": "SCALES = [1.0]", "after": "SCALES[0] = 0.5"},
        {"inside": "loss = loss * tf.stack(scales)", "before": "scales = [1.0]", "after": "scales.append(0.5)"},
        {"inside": "name = '''a\n    b'''"},
        {"inside": "global loss_of_step; loss_of_step = loss"},
        {"after": "model.layers[0].rate = 0.1"},  # a layer reads it in each call
        {"after": "print(locals())"},
        {"after": "setattr(options, 'scale', 0.5)"},
        {"after": "options.__dict__.update(scale=0.5)"},
        {"before": "tf.keras.optimizers.schedules.ExponentialDecay", "after": "optimizer.learning_rate = 0.1"},
        {"after": "print(loss); model.trainable = False"},
        {"inside": "for i in range(step): part = loss * i", "after": "print(part)"},  # may have no value
        {"top": "def again():\n    for i in range(3): main(*setup())\n"},  # would be traced each time
    ],
)
def test_loops_with_effects_or_changing_values_are_not_asked_for_their_steps(code: dict[str, str]) -> None:
    text = loop_of(**code)
    if "global" in code.get("inside", ""):
        text = text.replace("def main", "loss_of_step = None\ndef main")
    result = Converter(Settings(select=("NPU247",))).convert(text.encode())
    assert [asked.place.kind for asked in result.asked] == ["op"]


@pytest.mark.parametrize("change, asked", [("import steps\nsteps.scale = 0.5\n", False), ("import steps\n", True)])
def test_a_step_whose_globals_another_file_binds_is_not_asked_about(
    tmp_path: pathlib.Path, change: str, asked: bool
) -> None:
    text = loop_of(top="scale = 1.0").replace("    scale = 0.5\n", "")
    for name, code in ("steps", text), ("train", change):
        (tmp_path / f"{name}.py").write_text(code)
    project = Project([str(tmp_path / name) for name in ("steps.py", "train.py")])
    result = Converter(Settings(select=("NPU247",)), project).convert(text.encode(), str(tmp_path / "steps.py"))
    assert ("block" in [question.place.kind for question in result.asked]) is asked


@pytest.mark.parametrize(
    "code, stays",
    [
        ({"inside": "loss = loss * step"}, False),  # would be traced again in each pass
        ({"before": "step = 1\n    if options: step = 2", "inside": "loss = loss * step"}, True),
    ],
)
def test_a_step_in_a_loop_gets_numbers_that_the_loop_does_not_bind(code: dict[str, str], stays: bool) -> None:
    text = loop_of(**code)
    text = text.replace("for step, (x, y) in enumerate(dataset)", "for x, y in dataset") if stays else text
    seen = {**FEW, "arguments": ["tensor", "number"], "numbers": [("step",)]}
    assert ("@tf.function" in written(text, seen)) is stays


def test_a_step_that_reads_what_a_function_of_another_file_binds_is_not_asked_about(tmp_path: pathlib.Path) -> None:
    (tmp_path / "state.py").write_text("scale = 1.0\n\ndef halve():\n    global scale\n    scale *= 0.5\n")
    text = loop_of(top="import state", inside="loss = loss * state.scale", after="state.halve()")
    (tmp_path / "train.py").write_text(text)
    project = Project([str(tmp_path / name) for name in ("train.py", "state.py")])
    result = Converter(Settings(select=("NPU247",)), project).convert(text.encode(), str(tmp_path / "train.py"))
    assert [asked.place.kind for asked in result.asked] == ["op"]


def test_a_step_stays_if_the_program_assigns_a_setting_of_a_layer() -> None:
    text = loop_of(top="def less(layer):\n    layer.rate = 0.1\n", after="less(model)")
    notes = FEW, EAGER, {"is": "library", "reads": [("rate", "trainable")], "lists": [()]}, LIBRARY
    assert converted_with_facts(text, *notes, select=("NPU247",)).new is None
    notes = FEW, EAGER, {"is": "library", "reads": [("trainable",)], "lists": [()]}, LIBRARY
    assert b"@tf.function" in (converted_with_facts(text, *notes, select=("NPU247",)).new or b"")


def test_learning_rates_of_keras_may_be_set_in_the_loop() -> None:
    assert "@tf.function" in written(loop_of(after="optimizer.learning_rate = 0.1 / (1 + epoch); print(loss)"))


@pytest.mark.parametrize("error, asked", [("KeyboardInterrupt", True), ("tf.errors.InvalidArgumentError", False)])
def test_a_step_whose_error_a_loop_survives_is_not_asked_about(error: str, asked: bool) -> None:
    text = f"""import tensorflow as tf

w = tf.Variable(2.0)
for x in data:
    try:
        with tf.GradientTape() as tape:
            loss = w * x
        w.assign_sub(tape.gradient(loss, w))
    except {error}:
        continue
"""
    result = Converter(Settings(select=("NPU247",))).convert(text.encode())
    assert ("block" in [question.place.kind for question in result.asked]) is asked


def test_a_step_in_which_another_rule_writes_stays() -> None:
    text = loop_of(inside="loss = loss + tf.keras.ops.mean(error)")
    result = converted_with_facts(text, FEW, EAGER, LIBRARY, LIBRARY, select=("NPU124", "NPU247"))
    new = (result.new or b"").decode()
    assert "backports.ops.mean" in new and "@tf.function" not in new
    assert "@tf.function" in written(text)
