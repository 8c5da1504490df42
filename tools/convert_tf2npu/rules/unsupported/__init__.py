"""Calls that the NPU does not support."""
