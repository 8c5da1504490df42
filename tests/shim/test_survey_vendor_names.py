"""The survey finds each vendor's name of a collection, and those that npu_shim does not serve."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType
from typing import Any, Iterator

import pytest

FILES = {
    "vision/Net_ID1_for_TensorFlow/train.py": (
        "from npu_bridge.npu_init import *\nimport hccl.manage.api as api, npu_device\n"
        "npu_ops.dropout(x, 0.5); api.get_rank_id(); npu_device.distribute.all_reduce; NPURunConfig().session_config.x\n"
    ),
    "vision/Net_ID1_for_TensorFlow/sub_for_more/old.py": "print 'Python 2'\n",
    "vision/Broken_ID2_for_TensorFlow/a/train.py": (
        "from npu_bridge.npu_init import *\nfrom npu_bridge.nowhere import thing\n"
        "def f():\n    import npu_bridge.estimator.npu.npu_config as c\n    c.NoSuchConfig; npu_ops.no_such_op(1)\n"
    ),
    "text/train.py": "import horovod.tensorflow as hvd\nhvd.init(); hvd.no_such()\n",
    "own/train.py": "from npu_bridge.npu_init import *\nfrom utils import npu_ops\nnpu_ops.not_the_vendors\n",
    "own/places.py": (
        "def f():\n    from npu_bridge.estimator import npu_unary_ops\n    npu_unary_ops.gelu(1)\n"
        "def g():\n    from npu_bridge.estimator.npu_unary_ops import npu_unary_ops\n    npu_unary_ops.gelu(1)\n"
        "def h():\n    from npu_bridge import hccl as npu_unary_ops\n"
    ),
    "stars/train.py": "from npu_bridge.npu_init import *\nfrom utils import *\nutil.perhaps_of_utils\n",
    "plain/train.py": "import tensorflow as tf\ntf.no_such_name\n",
}
MISSING = {
    "text": ["horovod.tensorflow.no_such"],
    "vision/Broken_ID2_for_TensorFlow": [
        "npu_bridge.estimator.npu.npu_config.NoSuchConfig",
        "npu_bridge.nowhere",
        "npu_bridge.npu_init.npu_ops.no_such_op",
    ],
}


@pytest.fixture
def survey(repo_root: pathlib.Path) -> Iterator[ModuleType]:
    """The module of the script. The alias that it installs is removed again."""
    spec = importlib.util.spec_from_file_location("survey", str(repo_root / "tools" / "survey_vendor_names.py"))
    assert spec is not None and spec.loader is not None
    module, finders, before = importlib.util.module_from_spec(spec), list(sys.meta_path), set(sys.modules)
    spec.loader.exec_module(module)
    module.__dict__["npu_shim"].alias.install()
    yield module
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in module.ROOTS:
            del sys.modules[name]


def test_names_that_are_not_served_are_found_with_their_place(
    survey: ModuleType, tmp_path: pathlib.Path, capsys: Any
) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    models = survey.survey(str(tmp_path))
    assert {name: sorted(model.missing) for name, model in models.items() if model.missing} == MISSING
    assert sorted(models) == ["own", "stars", *sorted(MISSING), "vision/Net_ID1_for_TensorFlow"]
    assert survey.main([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  npu_bridge.nowhere (vision/Broken_ID2_for_TensorFlow/a/train.py:2)" in lines
    assert lines[-2] == "5 models use a vendor's name; npu_shim serves all names of 3 (60.0 %)"
    assert lines[-1].startswith("1 of their files do not parse with Python 3.")


def test_a_function_that_only_raises_is_not_served(survey: ModuleType, monkeypatch: Any) -> None:
    from npu_shim.estimator import npu_ops
    from npu_shim.ops import npu_only

    name = min(npu_only.ROWS)
    monkeypatch.setattr(npu_ops, "missing_op", npu_only.raising("npu_ops", name), raising=False)
    assert survey.missing_part("npu_bridge.estimator.npu_ops.dropout") is None
    missing = "npu_bridge.estimator.npu_ops.missing_op"
    assert survey.missing_part(missing) == survey.missing_part(f"{missing}.attribute") == missing
