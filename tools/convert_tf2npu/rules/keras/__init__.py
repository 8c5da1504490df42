"""Keras sessions."""
