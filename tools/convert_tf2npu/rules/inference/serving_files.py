"""Files for TensorFlow Serving that do not serve on the NPU.

The tool reads shell scripts, YAML files, Dockerfiles and text files of the server beside the Python files. A server that
was built with the vendor's adapter runs models on the NPU if ``--platform_config_file`` configures their sessions.
``npu-shim export --for serving`` writes this file. Beside it, the server ignores its own options for batches and
threads: write ``batching_parameters``, as in their file, before ``session_config``. The file of ``--model_config_file``
with names, paths and versions of models stays as it is, and so do the files for monitoring, logs and SSL, which the host
reads. Each batch size is compiled for the NPU, so list few ``allowed_batch_sizes``: the server pads smaller batches.
The comment ``# npu: ignore[NPU287]`` in the line suppresses a finding.

Reported in another file::

    tensorflow_model_server --rest_api_port=8501 --model_config_file=/models/models.config

Reported in another file::

    tensorflow_model_server --port=8500 --model_config_file=/models/models.config \\
      --enable_batching --batching_parameters_file=/models/batching.config \\
      --platform_config_file=/models/model.platform.pbtxt

Reported in another file::

    services:
      ranking:
        image: tensorflow/serving:2.6.5
        command: --model_config_file=/models/models.config

Reported in another file::

    max_batch_size { value: 32 }
    batch_timeout_micros { value: 1000 }
    num_batch_threads { value: 4 }

Reported in another file::

    model_config_list {
      config { name: "ranking" base_path: "/models/ranking" model_platform: "other" }
    }

Reported in another file::

    platform_configs { key: "tensorflow" value { source_adapter_config {
      [type.googleapis.com/tensorflow.serving.SavedModelBundleSourceAdapterConfig] {
        legacy_config { session_config { intra_op_parallelism_threads: 4 } }
      }
    } } }

Untouched in another file::

    tensorflow_model_server --port=8500 --model_config_file=models.config --platform_config_file=model.platform.pbtxt

Untouched in another file::

    bazel build -c opt tensorflow_serving/model_servers:tensorflow_model_server
    # tensorflow_model_server --port=8500 --model_base_path=/models/ranking

Untouched in another file::

    model_config_list {
      config { name: "ranking" base_path: "/models/ranking" model_platform: "tensorflow" }
      config { name: "search" base_path: "/models/search" model_platform: "tensorflow" model_version_policy { latest {} } }
    }

Untouched in another file::

    max_batch_size { value: 32 }
    allowed_batch_sizes: 8
    allowed_batch_sizes: 32

Untouched in another file::

    The image of tensorflow/serving has no NPU.
"""

from __future__ import annotations

import re
from typing import Iterator

CODE = "NPU287"
_NO_CODE = re.compile(r"(?m)(?:^|(?<=\s))#.*|\\\r?\n")  # comments, and the ends of lines that go on
_SERVER = re.compile(r"\btensorflow_model_server\b(?=[^#]*--(?:port|rest_api_port|model_\w+)\b)")
_CONFIGURED = "platform_config_file"
_IGNORED = re.compile(
    r"--(?:enable_batching|batching_parameters_file|tensorflow_session_config_file"
    r"|tensorflow_(?:session|intra_op|inter_op)_parallelism)\b"
)
_IMAGE = re.compile(r"""(?:\bdocker\s+run\b[^\n]*?\s|\bimage:\s*["']?|^FROM\s+)(tensorflow/serving\b)""", re.M)
_BATCHES = re.compile(r"^\s*max_batch_size\s*:?\s*\{|\bbatching_parameters\s*:?\s*\{", re.M)
_PLATFORM = re.compile(r"""\bmodel_platform\s*:\s*["'](?!tensorflow["'])""")
_PLATFORMS = re.compile(r"^\s*platform_configs\s*:?\s*\{", re.M)


def check_text(text: str) -> Iterator[tuple[int, str]]:
    text = _NO_CODE.sub(lambda found: " " * len(found.group()), text)
    server = _SERVER.search(text)
    if server and _CONFIGURED not in text:
        yield (
            server.start(),
            "the server runs the model on the CPU. "
            "Pass --platform_config_file with the file that npu-shim export --for serving writes",
        )
    for option in _IGNORED.finditer(text) if server and _CONFIGURED in text else ():
        yield (
            option.start(),
            f"the server ignores {option.group()} beside --platform_config_file. Write its settings into that file",
        )
    for image in _IMAGE.finditer(text):
        yield image.start(1), "the server of this image has no NPU. Build it with the vendor's adapter"
    batches = _BATCHES.search(text)
    if batches and "allowed_batch_sizes" not in text:
        yield batches.start(), "each batch size is compiled for the NPU. List few in allowed_batch_sizes"
    for platform in _PLATFORM.finditer(text):
        yield platform.start(), 'the platform has no configuration for the NPU. Write model_platform: "tensorflow"'
    platforms = _PLATFORMS.search(text)
    if platforms and "NpuOptimizer" not in text:
        yield (
            platforms.start(),
            "the sessions of this platform run on the CPU. "
            "Take session_config from the file that npu-shim export --for serving writes",
        )
