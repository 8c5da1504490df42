"""Predicted times of the ops of a step on a processor."""
