"""The options for TensorFlow 2 give the device the same dictionary as the vendor's classes, or the same error."""

from __future__ import annotations

import copy
import functools
import json
import pathlib
from typing import Any

import pytest

from npu_shim.config.device_options import NpuConfig, NpuDumpConfig, NpuRunContextOptions

CASES = json.loads((pathlib.Path(__file__).parents[1] / "data" / "npu_config_goldens.json").read_text())
CLASSES = {"global_options": NpuConfig, "run_context": NpuRunContextOptions}
DEFAULTS = {case["of"]: case["differs"] for case in CASES if not case["sets"]}


def assigned(case: dict[str, Any]) -> dict[str, str]:
    config = CLASSES[case["of"]]()
    for path, value in case["sets"]:
        *groups, name = path.split(".")
        setattr(functools.reduce(getattr, groups, config), name, value)
    return config.as_dict()


@pytest.mark.once
@pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")
@pytest.mark.parametrize("options", CLASSES)
def test_every_golden_assignment(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    for case in CASES:
        if case["of"] != options:
            continue
        try:
            found: Any = assigned(case)
        except (TypeError, ValueError, AttributeError) as error:
            assert case.get("error") == type(error).__name__, case
            continue
        expected = {**DEFAULTS[options], **case["differs"]}
        assert found == {key: text for key, text in expected.items() if key not in case.get("absent", ())}, case
        assert (" is deprecated " in capsys.readouterr().out) == case.get("deprecated", False), case


def test_an_error_names_the_option_the_value_and_what_is_allowed() -> None:
    config = NpuConfig()
    with pytest.raises(TypeError, match=r"dump_config.dump_mode=1 is int, but must be str: one of 'input', 'output'"):
        config.dump_config.dump_mode = 1
    with pytest.raises(ValueError, match=r"precision_mode='fp16' is not allowed. It must be one of 'force_fp32', "):
        config.precision_mode = "fp16"
    with pytest.raises(ValueError, match=r"NpuConfig has no option 'precison_mode'. Did you mean precision_mode"):
        config.precison_mode = "force_fp32"
    with pytest.raises(AttributeError, match=r"NpuConfig has no option 'dump_confg'. Did you mean dump_config"):
        config.dump_confg.enable_dump = True
    assert config.as_dict() == DEFAULTS["global_options"]


def test_an_option_has_its_default_its_values_and_its_text() -> None:
    option = NpuConfig().enable_small_channel
    assert (option.default, list(option.optional), option.value) == (False, [True, False], "0")


def test_a_group_is_replaced_by_one_of_its_class() -> None:
    config, group = NpuConfig(), NpuDumpConfig()
    group.enable_dump = True
    config.dump_config = group
    assert config.as_dict()["enable_dump"] == "1"
    with pytest.raises(TypeError, match=r"dump_config={'enable_dump': True} must be a NpuDumpConfig"):
        config.dump_config = {"enable_dump": True}


def test_copies_are_independent() -> None:
    config = NpuConfig()
    other = copy.deepcopy(config)
    other.dump_config.dump_path = "here"
    assert "dump_path" in other.as_dict() and "dump_path" not in config.as_dict()


def test_deprecated_and_removed_options_raise_a_warning() -> None:
    config = NpuConfig()
    with pytest.warns(DeprecationWarning, match="op_debug_level is deprecated. Use op_debug_config."):
        config.op_debug_level = 1
    with pytest.warns(UserWarning, match="auto_tune_mode='RL,GA' has no effect. Use aoe_config.aoe_mode."):
        config.auto_tune_mode = "RL,GA"
    assert {k: v for k, v in config.as_dict().items() if DEFAULTS["global_options"].get(k) != v} == {
        "op_debug_level": "1"
    }


def test_as_dict_prints_deprecated_options_as_the_vendors_package_does(capsys: pytest.CaptureFixture[str]) -> None:
    config = NpuConfig()
    config.as_dict()
    assert capsys.readouterr().out == ""
    with pytest.warns(DeprecationWarning):
        config.op_select_implmode = "high_precision"
        config.variable_format_optimize = False
    config.as_dict()
    lines = sorted(capsys.readouterr().out.splitlines())
    assert [line.split("'")[1] for line in lines] == ["op_select_implmode", "variable_format_optimize"]
    assert "'op_precision_mode' instead" in lines[0] and "do not configure" in lines[1]
