"""Diagnostics of this machine for ``npu-shim doctor``: facts, and whether training can run.

The modules report what they find in plain dictionaries, ready for JSON, and
raise no error because of it. Only ``probe`` imports TensorFlow, in a process of
its own.
"""
