"""Dropout and gelu."""
