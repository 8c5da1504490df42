"""Shapes that change from step to step."""
