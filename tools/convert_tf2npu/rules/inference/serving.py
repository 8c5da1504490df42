"""TensorFlow Serving that does not serve on the NPU.

The tool reads commands in Python files, and beside them shell scripts, YAML files, Dockerfiles and text files of the
server. A server that was built with the vendor's adapter runs models on the NPU if ``--platform_config_file`` configures
their sessions. ``npu-shim export --for serving`` writes this file. Beside it, the server ignores its own options for
batches and threads: write ``batching_parameters``, as in their file, before ``session_config``. The file of ``--model_config_file``
with names, paths and versions of models stays as it is, and so do the files for monitoring, logs and SSL, which the host
reads. Each batch size is compiled for the NPU, so list few ``allowed_batch_sizes``: the server pads smaller batches.
The comment ``# npu: ignore[NPU285]`` in the line suppresses a finding.

Reported::

    import subprocess
    import tensorflow as tf

    tf.saved_model.save(model, '/models/net/1')
    server = ['tensorflow_model_server', '--rest_api_port=8501', '--model_name=net', '--model_base_path=/models/net']
    subprocess.Popen(server)

Reported::

    import os
    import tensorflow as tf

    tf.saved_model.simple_save(sess, folder + '/1', {'x': x}, {'y': y})
    os.system(f'nohup tensorflow_model_server --port=8500 --model_name=net --model_base_path={folder} &')

Untouched::

    import subprocess
    import tensorflow as tf

    tf.saved_model.save(model, '/models/net/1')
    subprocess.Popen(['tensorflow_model_server', '--platform_config_file=model.platform.pbtxt', '--model_base_path=/models/net'])

Untouched::

    import tensorflow as tf

    print('start the server: tensorflow_model_server --model_base_path=/models/net')

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

import ast
import itertools
import re
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant
from ..base import Context, Finding, Message

CODE = "NPU285"
_NO_CODE = re.compile(r"(?m)(?:^|(?<=\s))#.*|\\\r?\n")  # comments, and the ends of lines that go on
_SERVER, _CONFIGURED = "tensorflow_model_server", "platform_config_file"
_IGNORED = re.compile(
    r"--(?:enable_batching|batching_parameters_file|tensorflow_session_config_file"
    r"|tensorflow_(?:session|intra_op|inter_op)_parallelism)\b"
)
_CHECKS = {  # the message: the place, and the word in the file that makes it right
    "the server runs the model on the CPU. "
    "Pass --platform_config_file with the file that npu-shim export --for serving writes": (
        rf"\b{_SERVER}\b(?=[^#]*--(?:port|rest_api_port|model_\w+)\b)",
        _CONFIGURED,
    ),
    "the server of this image has no NPU. Build it with the vendor's adapter": (
        r"""(?m)(?:\bdocker\s+run\b[^\n]*?\s|\bimage:\s*["']?|^FROM\s+)(?P<place>tensorflow/serving\b)""",
        None,
    ),
    "each batch size is compiled for the NPU. List few in allowed_batch_sizes": (
        r"(?m)^\s*max_batch_size\s*:?\s*\{|\bbatching_parameters\s*:?\s*\{",
        "allowed_batch_sizes",
    ),
    'the platform has no configuration for the NPU. Write model_platform: "tensorflow"': (
        r"""\bmodel_platform\s*:\s*["'](?!tensorflow["'])""",
        None,
    ),
    "the sessions of this platform run on the CPU. "
    "Take session_config from the file that npu-shim export --for serving writes": (
        r"(?m)^\s*platform_configs\s*:?\s*\{",
        "NpuOptimizer",
    ),
}


def check_text(text: str) -> Iterator[tuple[int, str]]:
    text = _NO_CODE.sub(lambda match: " " * len(match.group()), text)
    for message, (pattern, right) in _CHECKS.items():
        if right is None or right not in text:
            for match in itertools.islice(re.finditer(pattern, text), 1 if right else None):
                yield match.start(match.lastgroup or 0), message
    for option in _IGNORED.finditer(text) if _SERVER in text and _CONFIGURED in text else ():
        yield (
            option.start(),
            Message(
                "the server ignores {0} beside --platform_config_file. Write its settings into that file",
                option.group(),
            ),
        )


def check_file(context: Context) -> Iterator[Finding]:
    if _SERVER not in context.source.text or _CONFIGURED in context.source.text:
        return
    for call in context.names.calls:
        if context.called_names.get(call.node, "").startswith(("os.", "subprocess.")) and call.node.args:
            commands = [
                call.node.args[0],
                *(origin.node for origin in origins(call.node.args[0], call.where, context.names)),
            ]
            words = [boxed_constant(word) for command in commands for word in ast.walk(command)]
            for _, message in check_text(" ".join(str(*word) for word in words if word)):
                if not is_in_test(context, call.node):
                    yield Finding(call.node, message)
