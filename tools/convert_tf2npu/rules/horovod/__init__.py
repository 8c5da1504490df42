"""Horovod in a script: its uses, what becomes of each, and which files go together."""
