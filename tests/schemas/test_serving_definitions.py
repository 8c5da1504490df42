"""Files for TensorFlow Serving parse with its own definitions: what exports write, and what docs and rules show.

The package tensorflow-serving-api has the definitions of requests and of a server's models. Those of platforms and
batches are in no package of TensorFlow's. pythie-serving, a server that speaks the same protocol, has them all, and
TensorFlow's own, which this environment does not have.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import re
import struct
import sys
import types
from typing import Any, Iterator

import pytest
from convert_tf2npu.report.explanation import doc_blocks
from convert_tf2npu.rules.inference import serving as rule
from google.protobuf import text_format

FOLDER = pathlib.Path(__file__).parent
EXAMPLES = [each.text for each in doc_blocks(rule.__doc__) if each.kind == "code"]


@pytest.fixture(scope="module")
def serving() -> Iterator[Any]:
    """Give the messages of TensorFlow Serving by their names."""
    spec = importlib.util.find_spec("pythie_serving")
    assert spec is not None and spec.submodule_search_locations
    package = types.ModuleType("pythie_serving")  # without its server, which loads another version of the requests
    package.__path__ = list(spec.submodule_search_locations)
    copied = "pythie_serving.tensorflow_proto.tensorflow_serving."
    before, found = set(sys.modules), {}
    sys.modules["pythie_serving"] = package
    sys.path.append(str(pathlib.Path(package.__path__[0], "tensorflow_proto")))
    for name in (
        "tensorflow_serving.apis.prediction_log_pb2",
        "tensorflow_serving.config.model_server_config_pb2",
        copied + "config.platform_config_pb2",
        copied + "servables.tensorflow.saved_model_bundle_source_adapter_pb2",
        copied + "servables.tensorflow.session_bundle_config_pb2",
    ):
        found.update(vars(importlib.import_module(name)))
    yield types.SimpleNamespace(**found)
    sys.path.pop()
    for name in set(sys.modules) - before:  # other tests see that there is no TensorFlow
        del sys.modules[name]


def adapter(serving: Any, text: str) -> Any:
    """Return the configuration of the sessions in a platform file."""
    platforms = text_format.Parse(text, serving.PlatformConfigMap()).platform_configs
    assert list(platforms) == ["tensorflow"]
    found = serving.SavedModelBundleSourceAdapterConfig()
    assert platforms["tensorflow"].source_adapter_config.Unpack(found)
    return found.legacy_config


def test_the_platform_file_configures_sessions_on_the_npu(serving: Any) -> None:
    found = adapter(serving, (FOLDER / "net.platform.pbtxt").read_text())
    assert found.enable_model_warmup  # else the server does not read the requests
    [npu] = found.session_config.graph_options.rewrite_options.custom_optimizers
    assert (npu.name, npu.parameter_map["graph_run_mode"].i) == ("NpuOptimizer", 0)


def test_batches_of_the_page_stand_before_the_sessions(serving: Any, repo_root: pathlib.Path) -> None:
    [batches] = re.findall("^batching_parameters .*$", (repo_root / "docs" / "export.md").read_text(), re.M)
    text = (FOLDER / "net.platform.pbtxt").read_text().replace("session_config", f"{batches} session_config")
    assert list(adapter(serving, text).batching_parameters.allowed_batch_sizes) == [8, 32]


def test_the_requests_for_the_warm_up_are_logs_of_predictions(serving: Any) -> None:
    records = (FOLDER / "net.warmup_requests").read_bytes()
    [size] = struct.unpack("<Q", records[:8])  # of the first record of two, which follows its checksum
    assert len(records) == 2 * (size + 16)
    request = serving.PredictionLog.FromString(records[12 : 12 + size]).predict_log.request
    assert (request.model_spec.name, request.model_spec.signature_name) == ("net", "serving_default")
    assert struct.unpack("<2f", request.inputs["x"].tensor_content) == (1, 2)


@pytest.mark.parametrize("text", [each for each in EXAMPLES if re.match(r"\w+ \{", each)])
def test_files_that_the_rule_shows_are_files_of_the_server(serving: Any, text: str) -> None:
    kinds = {"max_batch_size": "BatchingParameters", "model_config_list": "ModelServerConfig"}
    kind = kinds.get(re.findall(r"\w+", text)[0], "PlatformConfigMap")
    assert text_format.Parse(text, getattr(serving, kind)()).ByteSize()
