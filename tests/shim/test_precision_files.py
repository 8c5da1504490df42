"""The files of modify_mixlist and customize_dtypes are checked if they exist."""

from __future__ import annotations

import json
import warnings

import pytest

import npu_shim
from npu_shim import npu_init as npu

MIXED = {"precision_mode": "allow_mix_precision"}


@pytest.fixture
def config(tmp_path):
    """config(option, content, **options) is a session config whose option names a file with this content."""

    def make(option, content, **options):
        path = tmp_path / "file"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made = npu_shim.session_config(**{option: str(path)}, **options)
        (entry,) = made.graph_options.rewrite_options.custom_optimizers
        assert entry.parameter_map[option].s == str(path).encode()
        return [str(one.message) for one in told]

    return make


GOOD = [
    {"black-list": {"to-add": ["Sum", "Softmax"], "to-remove": ["Conv2D"]}, "white-list": {"to-add": ["MatMul"]}},
    {"gray-list": {"to-add": []}},
    {},
]


@pytest.mark.parametrize("content", GOOD)
def test_a_valid_mixlist_is_accepted(config, content):
    assert config("modify_mixlist", content, **MIXED) == []


def test_a_misspelt_operator_is_reported(config):
    (told,) = config("modify_mixlist", {"black-list": {"to-add": ["Matmul", "MyOwnThing"]}}, **MIXED)
    assert "black-list.to-add: 'Matmul' is not a known operator type" in told and "Did you mean MatMul" in told


def test_operators_of_the_npus_compiler_are_known_where_it_is_not_installed(config):
    types = ["ReduceSumD", "MatMulV2", "SoftmaxV2", "StridedSliceD", "TransData", "ConfusionTransposeD", "Muls"]
    assert config("modify_mixlist", {"black-list": {"to-add": types}}, **MIXED) == []
    (told,) = config("modify_mixlist", {"black-list": {"to-add": ["MatMu1V2"]}}, **MIXED)
    assert "Did you mean MatMulV2" in told


def test_operators_of_an_installed_npu_compiler_are_known(config, tmp_path, monkeypatch):
    folder = tmp_path / "built-in/op_impl/ai_core/tbe/config/ascend910"
    folder.mkdir(parents=True)
    (folder / "aic-ascend910-ops-info.json").write_text('{"MatMulXYZ": {}}')
    assert config("modify_mixlist", {"black-list": {"to-add": ["MatMulXYZ"]}}, **MIXED)
    monkeypatch.setenv("ASCEND_OPP_PATH", str(tmp_path))
    assert config("modify_mixlist", {"black-list": {"to-add": ["MatMulXYZ"]}}, **MIXED) == []


BAD = [
    ("{", "is not JSON: "),
    ('{"black-list": {  // operators that keep float32\n}}', "JSON has no comments: remove them"),
    ([], r"the file is \[\], but must be an object with black-list and white-list and gray-list"),
    ({"blacklist": {}}, "blacklist is unknown. Did you mean black-list"),
    ({"black-list": {"to_add": []}}, "black-list.to_add is unknown. Did you mean to-add"),
    ({"black-list": []}, r"black-list is \[\], but must be an object with to-add and to-remove"),
    ({"black-list": {"to-add": "MatMul"}}, "black-list.to-add is 'MatMul', but must be a list of operator types"),
    (
        {"black-list": {"to-add": ["Sum"]}, "white-list": {"to-add": ["Sum"]}},
        "'Sum' is in black-list.to-add and in white-list.to-add. Remove one",
    ),
]


@pytest.mark.parametrize("content, text", BAD, ids=[b[1][:30] for b in BAD])
def test_an_invalid_mixlist_is_refused(config, content, text):
    with pytest.raises(ValueError, match="modify_mixlist=.*" + text):
        config("modify_mixlist", content, **MIXED)


def test_valid_types_are_accepted(config):
    assert (
        config(
            "customize_dtypes",
            "conv1::InputDtype:float16,float16,OutputDtype:float32\n\n"
            "OpType::MatMul:InputDtype:float16,float16, OutputDtype:float16\n",
        )
        == []
    )


@pytest.mark.parametrize(
    "line, text",
    [
        ("conv1:float16", "line 2: 'conv1:float16' is not allowed: it must be NAME::InputDtype"),
        ("conv1::InputDtype:half,OutputDtype:float32", "line 2: 'half' is not a type. Did you mean "),
        ("OpType::MatMul:OutputDtype:float32", "line 2: .* is not allowed"),
    ],
)
def test_invalid_types_are_refused(config, line, text):
    with pytest.raises(ValueError, match=text.replace("Did you mean ", "")):
        config("customize_dtypes", "a::InputDtype:float16,OutputDtype:float32\n" + line)


def test_a_file_that_does_not_exist_here_is_not_checked(has_estimator):
    made = npu_shim.session_config(modify_mixlist="/there/ops_info.json", customize_dtypes="/there/types.cfg", **MIXED)
    (entry,) = made.graph_options.rewrite_options.custom_optimizers
    assert entry.parameter_map["modify_mixlist"].s == b"/there/ops_info.json"
    if has_estimator:
        assert npu.NPURunConfig(modify_mixlist="/there/ops_info.json", **MIXED).modify_mixlist == "/there/ops_info.json"
