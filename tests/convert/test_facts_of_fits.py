"""Arrays and images that Keras' fit trains on, and slices that are fed: what facts settle, and what they do not."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.convert.observed import converted_with_facts, findings_and_text

SELECT = {"select": ("NPU245", "NPU248")}
converted = functools.partial(findings_and_text, **SELECT)
SLICES = """import tensorflow.compat.v1 as tf

for i in range(0, len(images), 100):
    scores.extend(sess.run(probabilities, feed_dict={x: images[i:i + 100]}))
"""
FIT = """import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile('adam', 'mse')
model.fit(images, labels, batch_size=size, validation_split=0.1)
"""


def test_slices_of_one_shape_are_not_reported() -> None:
    assert converted(SLICES, {"shape": (100, 784)}) == ([], SLICES)
    assert len(converted(SLICES, {"shape": [(100, 784), (50, 784)]})[0]) == 1


@pytest.mark.parametrize("rows, size", [(1000, 100), (10, 32), (1000, [100, 90])])
def test_a_batch_size_that_divides_the_rows_is_not_reported(rows: int, size: object) -> None:
    assert converted(FIT, {"shape": (rows, 3)}, {"number": size}) == ([], FIT)


FULL = "shuffle=npu_data.full_batches()"


def fit_converted(arguments: str, *notes: dict[str, Any], before: str = "") -> str | None:
    """Return the call of fit with facts, or None if it is reported."""
    text = f"{before}{FIT.partition('model.fit')[0]}model.fit({arguments})\n"
    (message,), _ = converted(text, *({} for _ in notes))
    found, new = converted(text, *notes)
    assert found in ([], [message]) and (not found or new == text)
    assert found or converted(new) == ([], new)
    return None if found else new[new.index("model.fit") :].strip()


@pytest.mark.parametrize("share", ["", ", validation_split=0.1"])
def test_a_partial_batch_of_arrays_is_left_out_in_training(share: str) -> None:
    rows, size, split = {"shape": (1000, 3)}, {"number": [100, 128]}, {"number": [0.1, 0.2]}
    shared = "x, y, batch_size=n, validation_split=share"
    assert fit_converted(shared, rows, size, split) == f"model.fit({shared}, {FULL})"
    assert fit_converted(f"x, y, batch_size=n{share}", rows, size) == f"model.fit(x, y, batch_size=n{share}, {FULL})"
    assert fit_converted("x, y, shuffle=True, epochs=2", rows) == f"model.fit(x, y, {FULL}, epochs=2)"
    assert fit_converted("x, y", {"shape": [(1000,), (20,)]}) == f"model.fit(x, y, {FULL})"
    text = f"import tensorflow as tf\nfrom npu_shim import data as npu_data\n{FIT[FIT.index(chr(10)) :]}"
    assert [d.runs for d in converted_with_facts(text, rows, size, **SELECT).diagnostics] == [2]


@pytest.mark.parametrize(
    "arguments, notes",
    [
        ("x, y", {}),
        ("x, y", {"shape": []}),
        ("x, y", {"shape": [(), (1000,)]}),
        ("x, y, shuffle=False", {"shape": (1000,)}),
        ("x, y, shuffle='batch'", {"shape": (1000,)}),
        ("x, y, shuffle=mixed", {"shape": (1000,)}),
        ("x, y, **given", {"shape": (1000,)}),
        ("x, y, 32, 2, 0, None, 0.0, None, False", {"shape": (1000,)}),
    ],
)
def test_a_partial_batch_that_cannot_change_stays_a_finding(arguments: str, notes: dict[str, Any]) -> None:
    assert fit_converted(arguments, notes) is None


@pytest.mark.parametrize("number", [{}, {"number": "32"}, {"number": [0, 32]}, {"number": [*range(1, 70)]}])
def test_a_size_that_is_not_known_stays_a_finding(number: dict[str, Any]) -> None:
    assert fit_converted("x, y, n", {"shape": (1000,)}, number) is None
    assert fit_converted("x, y, validation_split=n", {"shape": (1000,)}, {}) is None


def test_a_partial_batch_stays_where_the_name_of_the_library_is_taken() -> None:
    assert fit_converted("x, y", {"shape": (1000,)}, before="npu_data = 1\n") is None


@pytest.mark.parametrize("outputs", ["[y1, y2]", "(y1, y2)", "{'a': y1, 'b': y2}", "[(y1, y2), y3]"])
def test_rows_of_several_outputs_are_those_of_an_array(outputs: str) -> None:
    assert fit_converted(f"x, {outputs}", {"shape": (70, 1)}) == f"model.fit(x, {outputs}, {FULL})"
    text = f"{FIT.partition('model.fit')[0]}model.fit(x, {outputs})\n"
    assert converted(text, {"shape": (64, 1)}) == ([], text)


def test_the_length_of_a_list_of_arrays_is_no_number_of_rows() -> None:
    assert fit_converted("x, y", {"shape": (2,), "arrays": True}) is None
    assert fit_converted("x, y", {"shape": (2,), "arrays": True}, before="y = [a, b]\n") is None
    assert fit_converted("x, [*ys]", {"shape": (2,), "arrays": True}) is None
    text = f"{FIT.partition('model.fit')[0]}model.fit(x, y)\n"
    assert converted(text, {"shape": (64,), "arrays": False}) == ([], text)


@pytest.mark.parametrize(
    "callback",
    [
        "class Save(Base):\n    def on_train_batch_end(self, batch, logs=None):\n        if batch == last:\n            save()\n",
        "class Save(tf.keras.callbacks.Callback):\n    def on_batch_begin(self, batch, logs=None):\n"
        "        self.is_last = batch + 1 == self.params['steps']\n"
        "    def on_epoch_end(self, epoch, logs=None):\n        save(self.is_last)\n",
        "save = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: save() if batch % 9 else None)\n",
        "def save(batch, logs):\n    batch == last and write()\n"
        "saving = tf.keras.callbacks.LambdaCallback(on_train_batch_end=save)\n",
    ],
)
def test_a_partial_batch_stays_where_a_callback_may_decide_by_its_number(callback: str) -> None:
    before = f"import tensorflow as tf\n{callback}Save, saving\n"
    assert fit_converted("x, y", {"shape": (70,)}, before=before) is None
    unused = f"import tensorflow as tf\n{callback}"
    assert (fit_converted("x, y", {"shape": (70,)}, before=unused) is None) is ("LambdaCallback" in callback)


REPORTING = """import time
import numpy as np
import tensorflow as tf
class Speed(tf.keras.callbacks.Callback):
    def __init__(self, size):
        super().__init__()
        self.size = size
    def on_epoch_begin(self, epoch, logs=None):
        self.times = []
    def on_batch_begin(self, batch, logs=None):
        self.start = time.time()
    def on_batch_end(self, batch, logs=None):
        if batch % 10 == 0:
            duration = time.time() - self.start
            if duration < 10:
                self.times.append(duration)
            print(f"{batch}: {logs.get('loss'):.3f}")
    def on_epoch_end(self, epoch, logs=None):
        if epoch:
            print(self.size / np.mean(self.times))
speed = Speed(32)
"""


def test_a_callback_that_only_reports_changes_nothing() -> None:
    for before in REPORTING, REPORTING + "if args.size > 1 or speed.size:\n    print(speed.times)\n":
        assert fit_converted("x, y", {"shape": (70,)}, before=before) == f"model.fit(x, y, {FULL})"
    each = "tf.keras.callbacks.LambdaCallback(on_batch_end=lambda n, logs: print(n) if n % 9 == 0 else None)\n"
    assert fit_converted("x, y", {"shape": (70,)}, before=f"import tensorflow as tf\n{each}") is not None


@pytest.mark.parametrize(
    "old, new",
    [
        ("            print(f", "            self.model.save('model')\n            print(f"),
        ("            print(f", "            self.model.stop_training = True\n            print(f"),
        ("            print(f", "            logs['loss'] = 0.0\n            print(f"),
        ("            print(f", "            logs.update(loss=0.0)\n            print(f"),
        ("            print(f", "            raise StopIteration\n            print(f"),
        (
            "            print(f",
            "            tf.keras.backend.set_value(self.model.optimizer.lr, 0.1)\n            print(f",
        ),
        ("self.times.append(", "self.model.metrics.append("),
        ("            print(self.size", "            np.save('times', self.times)\n            print(self.size"),
        ("Callback):", "ModelCheckpoint):"),
        ("Callback):", "Callback, Mixin):"),
        ("class Speed", "@registered\nclass Speed"),
        ("speed = Speed(32)", "speed = Speed(32)\nif len(speed.times) > 3:\n    save()"),
        ("speed = Speed(32)", "speed = Speed(32)\nsmall = speed.start < 3"),
    ],
)
def test_a_partial_batch_stays_where_a_callback_does_more_than_report(old: str, new: str) -> None:
    assert old in REPORTING
    assert fit_converted("x, y", {"shape": (70,)}, before=REPORTING.replace(old, new)) is None


def test_a_callback_that_counts_or_decides_after_an_epoch_changes_nothing() -> None:
    before = "class Count(Base):\n    def on_batch_end(self, batch, logs=None):\n        self.logs.append(logs or {})\n"
    before += "    def on_epoch_end(self, epoch, logs=None):\n        if epoch == 3:\n            save()\n"
    assert fit_converted("x, y", {"shape": (70,)}, before=before) == f"model.fit(x, y, {FULL})"


IMAGES = """from tensorflow.keras.preprocessing.image import ImageDataGenerator
import tensorflow as tf
import npu_shim.npu_device as npu

npu.open().as_default()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile('adam', 'mse')
g = ImageDataGenerator().flow(x, y, batch_size=8)
"""
FLOW = {"shape": (45,), "batch": 8, "mixed": True}


def images_converted(call: str, *notes: dict[str, Any], before: str = "") -> str | None:
    """Return a call that trains on images, with facts; None if it is reported."""
    text = f"{before}{IMAGES}model.{call}\n"
    (message,), _ = converted(text, *({} for _ in notes))
    found, new = converted(text, *notes)
    assert message.startswith("the last batch of the generator g may be smaller")
    assert found in ([], [message]) and (not found or new == text)
    assert new == text or converted(new) == ([], new)
    return None if found else new[new.index("model.fit") :].strip()


@pytest.mark.parametrize(
    "call, notes",
    [
        ("fit(g, epochs=3)", [FLOW]),
        ("fit(g, steps_per_epoch=5)", [FLOW]),
        ("fit(g, steps_per_epoch=n // 8)", [FLOW, {"number": [4, 5]}]),
        ("fit_generator(g, 5, 3)", [FLOW]),
        ("fit(g)", [{**FLOW, "shape": [(45,), (48,), (3,)], "batch": [8, 9]}]),
    ],
)
def test_a_partial_batch_of_images_is_left_out_in_training(call: str, notes: list[dict[str, Any]]) -> None:
    assert images_converted(call, *notes) == f"model.{call[:-1]}, {FULL})"


def test_images_in_full_batches_need_nothing() -> None:
    for call, rows in ("fit(g)", (48,)), ("fit(g, steps_per_epoch=9)", [(48,), (5,)]):
        assert images_converted(call, {**FLOW, "shape": rows}) == f"model.{call}"


def test_the_order_of_images_is_read_by_position() -> None:
    given = "fit_generator(g, 5, 3, 0, None, None, None, 1, None, 9, 1, False, {})"
    assert images_converted(given.format("True"), FLOW) == "model." + given.format("npu_data.full_batches()")
    assert images_converted(given.format("False"), FLOW) is None


@pytest.mark.parametrize(
    "call, notes",
    [
        ("fit(g)", [{}]),
        ("fit(g)", [{"shape": (45,)}]),
        ("fit(g)", [{**FLOW, "batch": [0, 8]}]),
        ("fit(g)", [{**FLOW, "mixed": False}]),
        ("fit(g)", [{**FLOW, "mixed": [True, False]}]),
        ("fit(g, shuffle=False)", [FLOW]),
        ("fit(g, **given)", [FLOW]),
        ("fit(g, steps_per_epoch=6)", [FLOW]),
        ("fit(g, steps_per_epoch=n / 8)", [FLOW, {"number": 5.625}]),
        ("fit(g, steps_per_epoch=n)", [FLOW, {}]),
    ],
)
def test_a_partial_batch_of_images_that_training_may_need_stays(call: str, notes: list[dict[str, Any]]) -> None:
    assert images_converted(call, *notes) is None


def test_a_partial_batch_of_images_stays_where_callbacks_or_models_may_decide() -> None:
    own = "import tensorflow as tf\nclass Net(tf.keras.Model):\n    def fit(self, *args):\n        pass\n"
    callback = (
        "import tensorflow as tf\nclass Save(tf.keras.callbacks.Callback):\n    def on_batch_end(self, n, logs=None):\n"
    )
    callback += "        if n == 5:\n            self.model.save('m')\nsave = Save()\n"
    for before in own, callback, "npu_data = 1\n":
        assert images_converted("fit(g)", FLOW, before=before) is None


def test_a_partial_batch_stays_where_a_model_may_have_its_own_fit() -> None:
    own = "import tensorflow as tf\nclass {}({}):\n    def fit(self, x, y, shuffle=True):\n        pass\n"
    assert fit_converted("x, y", {"shape": (70,)}, before=own.format("Net", "tf.keras.Model")) is None
    derived = own.format("Base", "tf.keras.Model") + "class Net(Base):\n    pass\n"
    assert fit_converted("x, y", {"shape": (70,)}, before=derived) is None
    assert fit_converted("x, y", {"shape": (70,)}, before=own.format("Other", "object")) == f"model.fit(x, y, {FULL})"


def test_the_share_for_validation_is_read_by_position() -> None:
    assert fit_converted("x, y, 32, 2, 0, None, 0.1", {"shape": (64,)}) == (
        f"model.fit(x, y, 32, 2, 0, None, 0.1, {FULL})"
    )
    assert fit_converted("x, y, 32, 2, 0, None, 0.0, None, True", {"shape": (70,)}) == (
        "model.fit(x, y, 32, 2, 0, None, 0.0, None, npu_data.full_batches())"
    )
    assert fit_converted("x, y, 32, 2, 0, None, share", {"shape": (64,)}, {}) is None
    assert fit_converted("x, y, **given", {"shape": (64,)}) is None
    assert fit_converted("x, y, *given", {"shape": (64,)}) is None
