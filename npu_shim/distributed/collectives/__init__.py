"""Collective operations, independent of the backend: types, reductions, checks between ranks, and errors.

A backend provides a ``GroupBackend`` for each process group; callers use ``ProcessGroup``.
"""
