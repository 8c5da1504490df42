"""A SavedModel for TensorFlow Serving: signature, requests for its warm-up, and the configuration of its sessions."""

from __future__ import annotations

import pathlib
import textwrap
from argparse import Namespace

from google.protobuf import text_format

from npu_shim._tensorflow import tf_api, tf_capture, tf_export
from npu_shim.exporting import proof
from npu_shim.exporting.inference_model import Model
from npu_shim.exporting.proof import Values
from npu_shim.exporting.targets import Written, fill_template, npu

tf, v1 = tf_api.tf, tf_api.v1
_TAG, _SIGNATURE = "serve", "serving_default"
_WARM_UP = pathlib.Path("assets.extra", "tf_serving_warmup_requests")  # the path that the server reads
_REQUESTS = 2
# Numbers of fields in tensorflow_serving/apis: PredictionLog, PredictLog, PredictRequest, ModelSpec, an entry of a map.
_PREDICT_LOG, _REQUEST, _SPEC, _INPUTS, _MODEL_NAME, _SIGNATURE_NAME, _KEY, _VALUE = 6, 1, 1, 2, 1, 3, 1, 2


def write(model: Model, options: Namespace, values: Values) -> Written:
    """Write the next version of the model below NAME, and NAME.platform.pbtxt for the server's sessions on the NPU."""
    base = pathlib.Path(options.out, options.name)
    path = base / str(max((int(version.name) for version in base.glob("*") if version.name.isdigit()), default=0) + 1)
    _write_saved_model(model, str(path))
    warm_up = path / _WARM_UP
    warm_up.parent.mkdir()
    with tf.io.TFRecordWriter(str(warm_up)) as writer:
        for _ in range(_REQUESTS):
            writer.write(_request_bytes(options.name, values))
    platform = pathlib.Path(options.out, options.name + ".platform.pbtxt")
    config = text_format.MessageToString(npu.inference_session_config(options, uses_host_for_missing_ops=True)).rstrip(
        "\n"
    )
    platform.write_text(fill_template("platform.pbtxt", config=textwrap.indent(config, " " * 8)), encoding="utf-8")
    graph = tf_export.SavedModel.FromString(path.joinpath("saved_model.pb").read_bytes()).meta_graphs[0].graph_def
    command = f"tensorflow_model_server --model_name={options.name} --model_base_path={base.absolute()}"
    lines = [f"{command} --platform_config_file={platform.absolute()}"]
    if any(port.shape is None or None in port.shape for port in model.inputs):
        lines.append("an input has an unknown size: the NPU compiles the graph again for each new one")
    return Written([path, platform], lines, proof.run_graph(graph, {}, model.inputs, model.outputs, values))


def _write_saved_model(model: Model, path: str) -> None:
    with tf_capture.import_into_new_graph(model.graph).as_default() as graph, v1.Session() as session:
        find, both = graph.get_tensor_by_name, (model.inputs, model.outputs)
        sides = ({port.key: find(port.tensor) for port in side} for side in both)
        signatures = {_SIGNATURE: v1.saved_model.predict_signature_def(*sides)}
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(session, [_TAG], signatures, strip_default_attrs=True)
        builder.save()


def _request_bytes(name: str, values: Values) -> bytes:
    """Return a PredictionLog, whose package is not needed for these few fields."""
    request = _field_bytes(
        _SPEC, _field_bytes(_MODEL_NAME, name.encode()) + _field_bytes(_SIGNATURE_NAME, _SIGNATURE.encode())
    )
    for key, value in values.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += _field_bytes(_INPUTS, _field_bytes(_KEY, key.encode()) + _field_bytes(_VALUE, tensor))
    return _field_bytes(_PREDICT_LOG, _field_bytes(_REQUEST, request))


def _field_bytes(number: int, content: bytes) -> bytes:
    """Return a field of bytes, a string or a message in the format of protocol buffers."""
    size = len(content)  # in five bytes, of which the last ones may be zero
    return bytes([number << 3 | 2, *(size >> bits & 127 | 128 for bits in (0, 7, 14, 21)), size >> 28]) + content
