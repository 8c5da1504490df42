"""``npu-shim assess``: wrong input, and the lists of operators. Needs no TensorFlow."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from npu_shim.cli import main
from npu_shim.rehearsal.assess import operators, products
from npu_shim.rehearsal.assess.assessment import Assessment, Collective, CompiledGraphs, Graph, job_assessment

TABLE = str(pathlib.Path(__file__).parents[2] / "samples" / "ranktables" / "rank_table_8p.json")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["absent.py"], "file not found: absent.py. Give a Python script"),
        ([__file__, "--product", "ascend91"], "There are ascend910, atlas-a3. For another one, give the TFLOPS"),
        ([__file__, "--product", "0,5"], "--product 0,5: no such product."),
        (
            [__file__, "--opp", "absent.json"],
            "file not found: absent.json. Give a file of CANN's folder opp.",
        ),
        ([__file__, "--mixlist", "absent.json"], "file not found: absent.json."),
        ([__file__, "--ranks", "1"], "'1' is not allowed: it must be an integer from 2 to 1024"),
        ([__file__, "--processor", "Ascend910B5"], "--processor Ascend910B5: no such processor. Did you mean"),
        ([__file__, "--rank-table", "absent.json"], "file not found: absent.json. Give a rank table."),
        ([__file__, "--rank-table", __file__], "is not JSON"),
        (
            [__file__, "--rank-table", TABLE, "--ranks", "4"],
            f"--ranks 4: {TABLE} has 8. Leave one of the two out",
        ),
    ],
    ids=[
        "script",
        "product",
        "figures",
        "opp",
        "mixlist",
        "ranks",
        "processor",
        "no table",
        "broken table",
        "other table",
    ],  # fmt: skip
)
def test_wrong_input_is_an_error_that_says_what_to_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["assess", *arguments])
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[1]", '{"Abs": 3}', "{}", "{"], ids=["list", "number", "empty", "cut off"])
def test_a_file_of_another_form_is_refused(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ops.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="Give npu_supported_ops.json or aic"):
        operators.read_cann_lists([str(path)])


def test_the_lists_of_an_installed_cann_replace_the_table(tmp_path: pathlib.Path) -> None:
    (tmp_path / "npu_supported_ops.json").write_text(
        json.dumps({"Abs": {"isGray": False, "isHeavy": False}, "Relu": {"isGray": True, "isHeavy": False}})
    )
    (tmp_path / "aic-info.json").write_text(
        json.dumps({"Relu": {"precision_reduce": {"flag": "true"}}, "Exp": {"precision_reduce": {"flag": "false"}}})
    )
    lists = operators.read_cann_lists([str(tmp_path / "npu_supported_ops.json"), str(tmp_path / "aic-info.json")])
    assert [lists.device_status(op) for op in ("Abs", "Relu", "Conv2D")] == ["device", "device", "host"]
    assert lists.gray == {"Relu"} and lists.source == "npu_supported_ops.json, aic-info.json"
    assert [lists.precision_rule(op) for op in ("Relu", "Exp", "Abs")] == ["reduce", "keep", "follow"]
    only = operators.read_cann_lists([str(tmp_path / "aic-info.json")])
    assert only.device_status("Conv2D") == "device"


def test_a_mixlist_moves_operators(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mix.json"
    path.write_text(
        json.dumps(
            {"black-list": {"to-add": ["MatMul"]}, "white-list": {"to-remove": ["Conv2D"], "to-add": ["BiasAddGrad"]}}
        )
    )
    before, after = operators.built_in_lists(), operators.with_mixlist_changes(operators.built_in_lists(), str(path))
    assert [before.precision_rule(op) for op in ("MatMul", "Conv2D", "BiasAddGrad")] == ["reduce", "reduce", "keep"]
    assert [after.precision_rule(op) for op in ("MatMul", "Conv2D", "BiasAddGrad")] == ["keep", "follow", "reduce"]


def test_the_table_knows_the_operators_of_training() -> None:
    lists = operators.built_in_lists()
    device = (
        "Conv2D MatMul FusedBatchNormV3 ApplyAdam ResourceApplyAdam SparseSoftmaxCrossEntropyWithLogits HcomAllReduce"
    )
    assert {lists.device_status(op) for op in device.split()} == {"device"}
    assert {lists.device_status(op) for op in ("PyFunc", "DecodeJpeg", "LookupTableFindV2", "CudnnRNNV3")} == {"host"}
    assert {lists.device_status(op) for op in ("IteratorGetNext", "BatchDatasetV2")} == {"input"}
    assert {lists.device_status(op) for op in ("BlockLSTM", "IsNan", "CTCLoss")} == {"unclear"}
    assert lists.reduce <= lists.device and lists.keep <= lists.device and not lists.reduce & lists.keep


def test_a_product_can_be_given_by_its_figures() -> None:
    own = products.parse_product("320,1600")
    assert (own.flops, own.bandwidth) == (320e12, 1.6e12)
    assert all(each.source and each.flops > each.bandwidth > 0 for each in products.PRODUCTS.values())


def test_ranks_with_other_collectives_are_a_problem() -> None:
    def rank(count: int) -> Assessment:
        fields: Any = dict.fromkeys(Graph.__dataclass_fields__)
        graph = Graph(**{**fields, "name": "session.run", "collectives": [Collective("HcomAllReduce", count, 8)]})
        return Assessment("train.py", [], "", 1, "", CompiledGraphs(0, 1, 0), [], [graph])

    assert job_assessment([rank(2), rank(2)]).problems == []
    [problem] = job_assessment([rank(2), rank(2), rank(1)]).problems
    assert problem.why.startswith("on rank 2 are not those of rank 0: 1 HcomAllReduce of 8 bytes in place of 2")
