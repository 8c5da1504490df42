"""The parts of the product, how many mistakes each gets, and the tests that must notice them."""

from __future__ import annotations

from typing import NamedTuple


class Area(NamedTuple):
    """A part of the product.

    Attributes:
        name: the part.
        files: patterns of its files.
        number: of mistakes.
        tests: arguments of pytest, the narrowest tests first.
    """

    name: str
    files: str
    number: int
    tests: str


_RULES = "tests/convert/test_rules.py tests/convert"
AREAS = (
    Area("tool: syntax, files", "tools/convert_tf2npu/syntax/*.py tools/convert_tf2npu/files/*.py", 8, "tests/convert"),
    Area("tool: names and types", "tools/convert_tf2npu/semantics/*.py", 10, _RULES),
    Area("tool: project", "tools/convert_tf2npu/project/*.py", 5, _RULES),
    Area("tool: rewrite, analysis", "tools/convert_tf2npu/rewrite/*.py tools/convert_tf2npu/analysis/*.py", 12, _RULES),
    Area(
        "tool: rules of TensorFlow 1",
        " ".join(
            f"tools/convert_tf2npu/rules/{topic}/*.py"
            for topic in "session estimator keras dropout data dynamic_shape restriction unsupported".split()
        ),
        14,
        _RULES,
    ),
    Area(
        "tool: engine, cli, reports",
        "tools/convert_tf2npu/engine/*.py tools/convert_tf2npu/cli/*.py tools/convert_tf2npu/report/*.py",
        8,
        "tests/convert",
    ),
    Area("configuration", "npu_shim/config/*.py", 6, "tests/shim --ignore-glob=*/test_estimator*.py"),
    Area("options", "npu_shim/options/*.py", 4, "tests/fast/test_options.py tests/shim"),
    Area("optimizers", "npu_shim/optimizer/*.py", 6, "tests/shim --ignore-glob=*/test_estimator*.py"),
    Area(
        "estimators", "npu_shim/estimator/*.py", 5, "tests/shim/test_estimator.py tests/shim/test_estimator_batches.py"
    ),
    Area("data", "npu_shim/data/*.py", 5, "tests/shim --ignore-glob=*/test_estimator*.py"),
    Area("operators", "npu_shim/ops/*.py", 12, "tests/ops tests/shim"),
    Area(
        "shared memory", "npu_shim/distributed/shm/*.py", 5, "tests/distributed/test_backend_collectives.py tests/fast"
    ),
    Area(
        "ranks and groups", "npu_shim/distributed/*.py npu_shim/distributed/ranktable/*.py", 8, "tests/fast tests/shim"
    ),
    Area(
        "training",
        "npu_shim/training/*.py",
        3,
        "tests/shim/test_strategy.py tests/shim tests/distributed/test_strategy.py",
    ),
    # What came later.
    Area(
        "tool: rules of TensorFlow 2",
        "tools/convert_tf2npu/rules/tf2/*.py tools/convert_tf2npu/rules/tf_strategy/*.py "
        "tools/convert_tf2npu/rules/horovod/*.py",
        12,
        _RULES,
    ),
    Area(
        "npu_device",
        "npu_shim/npu_device/*.py npu_shim/npu_device/*/*.py",
        6,
        "tests/shim/test_npu_device.py tests/shim",
    ),
    Area(
        "Horovod",
        "npu_shim/horovod/*/*.py",
        6,
        "tests/shim/test_horovod_callbacks.py tests/distributed/test_horovod.py",
    ),
    Area(
        "verify, half, numerics",
        "npu_shim/rehearsal/recording/*.py npu_shim/rehearsal/comparing/*.py npu_shim/rehearsal/half/*.py "
        "npu_shim/rehearsal/numerics/*.py",
        10,
        "tests/fast tests/shim/test_numerics.py tests/shim/test_half_precision.py tests/shim/test_recordings.py tests/rehearsal",
    ),
    Area("assess", "npu_shim/rehearsal/assess/*.py", 5, "tests/cli/test_assess_tensorflow.py tests/fast"),
    Area("launching", "npu_shim/launching/*.py", 4, "tests/fast"),
)
