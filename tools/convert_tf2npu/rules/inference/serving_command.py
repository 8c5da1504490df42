"""TensorFlow Serving without the configuration of the NPU.

A server that was built with the vendor's adapter runs a model on the NPU only if ``--platform_config_file`` configures its
sessions. ``npu-shim export --for serving`` writes this file, and the SavedModel with requests for the warm-up.

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
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test
from ...semantics.value_flow import origins
from ...syntax.expressions import constant
from ..base import Context, Finding, Result

CODE = "NPU285"
_SERVER, _CONFIGURATION = "tensorflow_model_server", "platform_config_file"


def check_file(context: Context) -> Iterator[Result]:
    text = context.source.text
    if _SERVER not in text or _CONFIGURATION in text:
        return
    for call in context.names.calls:
        if not context.called.get(call.node, "").startswith(("os.", "subprocess.")) or not call.node.args:
            continue
        commands = [call.node.args[0], *(each.node for each in origins(call.node.args[0], call.where, context.names))]
        words = ((constant(word) or ("",))[0] for command in commands for word in ast.walk(command))
        if any(isinstance(word, str) and _SERVER in word for word in words) and not in_test(context, call.node):
            yield Finding(
                call.node,
                "the server runs the model on the CPU. "
                "Pass --platform_config_file with the file that npu-shim export --for serving writes",
            )
