"""Profiles of the NPU and of the CPU: read, and turned into the bottlenecks of a training step with their fixes."""
