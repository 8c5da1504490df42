"""Diagnostics of this machine for ``npu-shim doctor``: facts, and whether training can run.

The modules return facts as dataclasses, and raise no error because of them.
``Diagnosis.to_json`` makes the report of them. Only ``probe`` imports TensorFlow, in a process of
its own.
"""
