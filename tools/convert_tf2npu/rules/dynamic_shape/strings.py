"""String operations in the model.

The NPU has no strings. Operations on strings run on the host, and in the model they split the graph between host and
NPU. In the input pipeline they are fine. The rule reports one finding for each file.

Move string operations into the function that ``dataset.map`` calls, and pass numbers to the model, padded to a fixed
length. Format the text of a log in Python, from the numbers that the session or hook returns.

With facts of ``npu-shim observe``, there is no finding if only the input pipeline and eager code make strings.

Reported::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        words = tf.string_split(features['text'])
        ids = tf.strings.to_hash_bucket_fast(words.values, 1000)

Reported::

    import tensorflow as tf

    def train(model):
        message = tf.strings.join(['step: ', tf.as_string(tf.train.get_global_step())])
        return tf.train.LoggingTensorHook([message], every_n_iter=10)

Untouched::

    import tensorflow as tf

    def parse(line):
        return tf.string_to_number(tf.string_split([line]).values)

    dataset = tf.data.TextLineDataset(files).map(parse)

Untouched::

    import tensorflow as tf

    def decode(characters):
        return tf.strings.reduce_join(characters).numpy().decode('utf-8')

Untouched::

    import tensorflow as tf

    def standardize(text):
        return tf.strings.regex_replace(tf.strings.lower(text), '<br />', ' ')

    layer = tf.keras.layers.TextVectorization(standardize=standardize)
    dataset = dataset.map(lambda text: layer(text))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...rewrite.seen_findings import questions_if_first
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding

CODE = "NPU236"
CALLS = frozenset(
    "tensorflow." + name
    for name in """
string_split string_join string_strip string_to_number string_to_hash_bucket string_to_hash_bucket_fast
string_to_hash_bucket_strong regex_replace regex_full_match substr as_string reduce_join encode_base64 decode_base64
decode_raw decode_csv decode_json_example parse_example parse_single_example parse_tensor
strings.split strings.join strings.strip strings.to_number strings.to_hash_bucket
strings.to_hash_bucket_fast strings.to_hash_bucket_strong strings.regex_replace strings.regex_full_match
strings.substr strings.as_string strings.reduce_join strings.length strings.lower strings.upper
strings.format strings.unicode_decode strings.unicode_encode strings.unicode_split strings.bytes_split
io.decode_raw io.decode_csv io.parse_example io.parse_single_example io.parse_tensor""".split()
)

_FORMATS = frozenset({"tensorflow.as_string", "tensorflow.strings.as_string", "tensorflow.strings.format"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    parent = context.names.parents[call.node]
    if isinstance(parent, ast.Attribute) and parent.attr == "numpy":
        return  # eager code that reads the string
    asks = questions_if_first(context, CODE, call, CALLS, context.names.tree, {"data", "numpy", "eager"})
    if asks:
        word = last_part(name)
        if _formats_numbers(context, call):
            yield Finding(
                call.node,
                "{0} runs on the host, because the NPU has no strings. Format the text in Python",
                word,
                asks=asks,
            )
            return
        yield Finding(
            call.node,
            "{0} runs on the host, because the NPU has no strings. "
            "Move it into dataset.map and pass the model padded numbers",
            word,
            asks=asks,
        )


def _formats_numbers(context: Context, call: Call) -> bool:
    """Return True if a call makes text of numbers."""
    parts = (node for node in ast.walk(call.node) if isinstance(node, ast.Call))
    return any(context.called_names.get(part) in _FORMATS for part in parts)
