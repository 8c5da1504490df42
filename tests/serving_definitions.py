"""Messages of TensorFlow Serving that exports and the tool write or read.

The package tensorflow-serving-api has those of requests and of the models of a server. Those of platforms and batches
are in the repository of TensorFlow Serving only. Fields that nothing here needs are left out.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, symbol_database, wrappers_pb2
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import config_pb2

_FIELDS = {
    "PredictionLog": "PredictLog predict_log = 6",
    "PredictLog": "PredictRequest request = 1",
    "PredictRequest": "ModelSpec model_spec = 1; map<string, tensorflow.TensorProto> inputs = 2",
    "ModelSpec": "string name = 1; string signature_name = 3",
    "PlatformConfigMap": "map<string, PlatformConfig> platform_configs = 1",
    "PlatformConfig": "google.protobuf.Any source_adapter_config = 1",
    "SavedModelBundleSourceAdapterConfig": "SessionBundleConfig legacy_config = 1000",
    "SessionBundleConfig": "tensorflow.ConfigProto session_config = 2; BatchingParameters batching_parameters = 3; "
    "bool enable_model_warmup = 779",
    "BatchingParameters": "google.protobuf.Int64Value max_batch_size = 1; google.protobuf.Int64Value "
    "batch_timeout_micros = 2; google.protobuf.Int64Value num_batch_threads = 4; repeated int64 allowed_batch_sizes = 6",
    "ModelServerConfig": "ModelConfigList model_config_list = 1",
    "ModelConfigList": "repeated ModelConfig config = 1",
    "ModelConfig": "string name = 1; string base_path = 2; string model_platform = 4",
}
_PACKAGE = "tensorflow.serving"
_FIELD = re.compile(r"(repeated )?(?:map<string, )?([\w.]+)(>)? (\w+) = (\d+)")
_OTHERS = any_pb2, wrappers_pb2, tensor_pb2, config_pb2
_Field = descriptor_pb2.FieldDescriptorProto
_NUMBERS = {"string": _Field.TYPE_STRING, "int64": _Field.TYPE_INT64, "bool": _Field.TYPE_BOOL}


def _add(message: Any, repeated: bool, kind: str, name: str, number: int) -> None:
    field = message.field.add(name=name, number=number, label=_Field.LABEL_REPEATED if repeated else 1)
    field.type = _NUMBERS.get(kind, _Field.TYPE_MESSAGE)
    if kind not in _NUMBERS:
        field.type_name = f".{kind}" if kind.count(".") else f".{_PACKAGE}.{kind}"


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="tests/serving.proto", package=_PACKAGE, syntax="proto3")
    file.dependency.extend(each.DESCRIPTOR.name for each in _OTHERS)
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for repeated, kind, is_map, field, number in _FIELD.findall(fields):
            if is_map:
                entry = message.nested_type.add(name="".join(map(str.capitalize, field.split("_"))) + "Entry")
                entry.options.map_entry = True
                _add(entry, False, "string", "key", 1)
                _add(entry, False, kind, "value", 2)
                kind = f"{_PACKAGE}.{name}.{entry.name}"
            _add(message, bool(repeated or is_map), kind, field, int(number))
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    found = {name: pool.FindMessageTypeByName(f"{_PACKAGE}.{name}") for name in _FIELDS}
    if hasattr(message_factory, "GetMessageClass"):
        return {name: message_factory.GetMessageClass(each) for name, each in found.items()}
    known = symbol_database.Default()  # older versions of protobuf; with the classes that TensorFlow has
    return {name: known.GetPrototype(each) for name, each in found.items()}


SERVING = _classes()
