"""The parts of the product, how many mistakes each gets, and the tests that must notice them."""

from __future__ import annotations

from typing import NamedTuple


class Area(NamedTuple):
    """A part of the product.

    Attributes:
        name: the part.
        files: patterns of its files.
        number: of mistakes.
        steps: the tests that run for each mistake, one after another: environment, suite of tests/suites.py, variables for
            it, and which of its tests. The cheap and near ones come first.
    """

    name: str
    files: str
    number: int
    steps: tuple[str, ...]


# Files that the conftest.py of their folder leaves out in an environment, where pytest would take one that is given.
LEFT_OUT = {"tf115": {"test_backports.py"}}
# Environments that only the nightly run has.
BY_NIGHT = {"mpi"}
# Mistakes that no test can notice, and why.
WITHOUT_EFFECT = {
    "npu_shim/distributed/shm/backend.py:73": "the incarnation is word 0 of a page",
    "npu_shim/distributed/mpi/order.py:130": "no collective has either token, so all ranks are named",
    "npu_shim/distributed/shm/barrier.py:44": "all ranks begin with the other half of the slots",
    "npu_shim/rehearsal/half/skips.py:88": "the input is not used",
    "npu_shim/rehearsal/assess/partition.py:126": "all levels rise by one, and they are only compared with each other",
}
# Mistakes that no test noticed when they were first made, and that have a test since.
NOTICED_SINCE = """
    tools/convert_tf2npu/semantics/loaded_datasets.py:24
    tools/convert_tf2npu/rules/tf2/predict_in_loop.py:114
    npu_shim/ops/library_operators.py:16
    npu_shim/estimator/rank_checkpoints.py:100
    npu_shim/horovod/tensorflow/gradient_aggregation.py:99
    npu_shim/horovod/tensorflow/elastic.py:184
    npu_shim/horovod/tensorflow/gradient_reduction.py:59
    npu_shim/npu_device/distribute/broadcast_callback.py:38
    npu_shim/npu_device/distribute/strategy.py:23
    npu_shim/npu_device/distribute/random_state.py:35
    npu_shim/rehearsal/recording/limit.py:104
    npu_shim/rehearsal/predict/gains.py:116
    npu_shim/rehearsal/predict/memory_of_step.py:105
""".split()
_RULES = (
    "tf215 convert tests/convert/test_rules.py",
    "tf215 convert tests/convert",
    "tf215 robustness tests/robustness",
    "tf215 samples tests/migrated tests/lifted",
    "tf115 corpus tests/corpus",
)
_TOOL = ("tf215 convert tests/convert", "tf115 convert tests/convert", "tf215 robustness tests/robustness")
_SHIM = (
    "tf215 shim tests/shim tests/ops",
    "tf115 shim tests/shim tests/ops",
)
_FAST = ("tf215 fast tests/fast",)
_RANKS = ("tf215 distributed tests/distributed", "tf115 distributed tests/distributed")
_MPI = (
    "mpi mpi tests/mpi/test_ranks.py",
    "mpi mpi NPU_SHIM_TEST_BACKENDS=mpi tests/distributed/test_backend_collectives.py "
    "tests/distributed/test_backend_uneven.py tests/distributed/test_backend_random.py",
    "mpi mpi_hosts tests/mpi/test_two_hosts.py tests/mpi/test_sample.py",
)
_OTHERS = ("tf215 samples tests/samples", "tf215 card tests/card", "tf115 card tests/card")
AREAS = (
    Area("tool: syntax, files", "tools/convert_tf2npu/syntax/*.py tools/convert_tf2npu/files/*.py", 8, _TOOL),
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
        _TOOL,
    ),
    Area("configuration", "npu_shim/config/*.py", 6, (*_SHIM, *_OTHERS)),
    Area("options", "npu_shim/options/*.py", 4, (*_FAST, *_SHIM)),
    Area("optimizers", "npu_shim/optimizer/*.py", 6, (*_SHIM, *_RANKS, *_OTHERS)),
    Area("estimators", "npu_shim/estimator/*.py", 5, (*_SHIM, *_OTHERS, *_RANKS)),
    Area("data", "npu_shim/data/*.py", 5, (*_SHIM, *_OTHERS)),
    Area("operators", "npu_shim/ops/*.py", 12, (*_SHIM, "tf215 card tests/card", "tf215 blocks tests/blocks")),
    Area(
        "shared memory",
        "npu_shim/distributed/shm/*.py",
        5,
        (
            *_FAST,
            "tf215 backends tests/distributed/test_backend_collectives.py tests/distributed/test_backend_faults.py "
            "tests/distributed/test_backend_random.py tests/distributed/test_backend_uneven.py",
            *_RANKS,
        ),
    ),
    Area(
        "ranks and groups",
        "npu_shim/distributed/*.py npu_shim/distributed/ranktable/*.py",
        8,
        (*_FAST, *_SHIM, *_RANKS),
    ),
    Area("training", "npu_shim/training/*.py", 3, (*_SHIM, *_RANKS)),
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
        (*_SHIM, "tf26 card tests/card", *_RANKS),
    ),
    Area("Horovod", "npu_shim/horovod/*/*.py", 6, (*_FAST, "tf215 shim tests/shim", *_RANKS)),
    Area(
        "verify, half, numerics",
        "npu_shim/rehearsal/recording/*.py npu_shim/rehearsal/comparing/*.py npu_shim/rehearsal/half/*.py "
        "npu_shim/rehearsal/numerics/*.py",
        10,
        (*_FAST, "tf215 rehearsal -m smoke tests/rehearsal", "tf215 cli tests/cli", *_SHIM),
    ),
    Area(
        "assess",
        "npu_shim/rehearsal/assess/*.py",
        5,
        ("tf215 cli tests/cli", *_FAST, "tf215 rehearsal -m smoke tests/rehearsal"),
    ),
    Area("launching", "npu_shim/launching/*.py", 4, (*_FAST, "tf215 distributed tests/distributed")),
    Area("MPI", "npu_shim/distributed/mpi/*.py", 4, _MPI),
    Area(
        "observe, migrate",
        "npu_shim/rehearsal/observing/*.py npu_shim/rehearsal/migrating/*.py",
        6,
        (*_FAST, "tf215 cli tests/cli", "tf115 cli tests/cli", "tf215 rehearsal tests/rehearsal"),
    ),
    Area("tool: facts", "tools/convert_tf2npu/facts/*.py tools/convert_tf2npu/tf_api/*.py", 5, _TOOL),
    Area(
        "prediction",
        "npu_shim/rehearsal/predict/*.py",
        6,
        (*_FAST, "tf215 rehearsal tests/rehearsal", "tf215 dumps tests/profiles"),
    ),
    Area(
        "dumps, profiles",
        "npu_shim/dumps/*.py npu_shim/dumps/*/*.py npu_shim/profiles/*.py",
        7,
        ("tf215 dumps tests/dumps tests/profiles", *_FAST, "tf215 cli tests/cli"),
    ),
    Area("export", "npu_shim/exporting/*.py", 4, (*_FAST, "tf215 cli tests/cli", "tf115 cli tests/cli")),
    Area("import hook", "npu_shim/import_hook/*.py", 4, (*_FAST, "tf215 cli tests/cli", "tf215 shim tests/shim")),
)
