"""Operators, one per file: formula, shapes, gradient, CPU form, NPU form."""
