"""A SavedModel for TensorFlow Serving: signature, requests for its warm-up, and the configuration of its sessions."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING

from google.protobuf import text_format

from npu_shim._tensorflow import tf_api, tf_capture, tf_export
from npu_shim.exporting import proof
from npu_shim.exporting.targets import Options, Written, npu

if TYPE_CHECKING:
    from npu_shim.exporting.model import Model

tf, v1 = tf_api.tf, tf_api.v1
_TAG, _SIGNATURE = "serve", "serving_default"
_WARM_UP = os.path.join("assets.extra", "tf_serving_warmup_requests")  # the path that the server reads
_REQUESTS = 2
# Numbers of fields in tensorflow_serving/apis: PredictionLog, PredictLog, PredictRequest, ModelSpec, an entry of a map.
_PREDICT_LOG, _REQUEST, _SPEC, _INPUTS, _MODEL_NAME, _SIGNATURE_NAME, _KEY, _VALUE = 6, 1, 1, 2, 1, 3, 1, 2
_PLATFORM = """platform_configs {{
  key: "tensorflow"
  value {{
    source_adapter_config {{
      [type.googleapis.com/tensorflow.serving.SavedModelBundleSourceAdapterConfig] {{
        legacy_config {{
          session_config {{
{config}
          }}
        }}
      }}
    }}
  }}
}}
"""


def write(model: Model, folder: str, options: Options) -> Written:
    """Write the next version of the model below NAME, and NAME.platform.pbtxt for the server's sessions on the NPU."""
    base = os.path.join(folder, options.name)
    versions = [int(name) for name in (os.listdir(base) if os.path.isdir(base) else ()) if name.isdigit()]
    path = os.path.join(base, str(max(versions, default=0) + 1))
    _save(model, path)
    warm_up = os.path.join(path, _WARM_UP)
    os.makedirs(os.path.dirname(warm_up))
    with tf.io.TFRecordWriter(warm_up) as writer:
        for _ in range(_REQUESTS):
            writer.write(_request(options.name, options.values))
    platform = os.path.join(folder, options.name + ".platform.pbtxt")
    with open(platform, "w", encoding="utf-8") as stream:
        config = text_format.MessageToString(npu.config(options, mixes=True)).rstrip("\n")
        stream.write(_PLATFORM.format(config=textwrap.indent(config, " " * 12)))
    with open(os.path.join(path, "saved_model.pb"), "rb") as saved:
        graph = tf_export.SavedModel.FromString(saved.read()).meta_graphs[0].graph_def
    command = f"tensorflow_model_server --model_name={options.name} --model_base_path={os.path.abspath(base)}"
    lines = [f"{command} --platform_config_file={os.path.abspath(platform)}"]
    if any(port.shape is None or None in port.shape for port in model.inputs):
        lines.append("an input has an unknown size: the NPU compiles the graph again for each new one")
    return Written([path, platform], lines, proof.run_graph(graph, {}, model.inputs, model.outputs))


def _save(model: Model, path: str) -> None:
    with tf_capture.import_alone(model.graph).as_default() as graph, v1.Session() as session:
        sides = [
            {port.key: v1.saved_model.build_tensor_info(graph.get_tensor_by_name(port.tensor)) for port in ports}
            for ports in (model.inputs, model.outputs)
        ]
        signature = v1.saved_model.build_signature_def(*sides, "tensorflow/serving/predict")
        builder = v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(session, [_TAG], {_SIGNATURE: signature}, strip_default_attrs=True)
        builder.save()


def _request(name: str, values: proof.Values) -> bytes:
    """Return a PredictionLog, whose package is not needed for these few fields."""
    request = _field(_SPEC, _field(_MODEL_NAME, name.encode()) + _field(_SIGNATURE_NAME, _SIGNATURE.encode()))
    for key, value in values.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += _field(_INPUTS, _field(_KEY, key.encode()) + _field(_VALUE, tensor))
    return _field(_PREDICT_LOG, _field(_REQUEST, request))


def _field(number: int, content: bytes) -> bytes:
    """Return a field of bytes, a string or a message in the format of protocol buffers."""
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content
