"""Savers with the vendor's names. Each rank holds whole variables, so they save as TensorFlow's."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_session


class NPUSaver(tf_api.v1.train.Saver):
    """A tf.compat.v1.train.Saver. On an NPU it first collects the variables that ranks update in shares."""


class NPUBulkSaverBuilder(tf_session.BulkSaverBuilder):
    """The builder of the graph that tf.compat.v1.train.Saver makes."""
