"""Scopes, Keras layers for the NPU's operators, and a tool for dumped graphs."""
