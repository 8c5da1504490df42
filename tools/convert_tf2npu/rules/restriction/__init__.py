"""Restrictions of the NPU that show in source code."""
