"""The files of a run as modules that import each other.

Imports: ``semantics`` and below.
Gives: modules by path, the import graph, and the index that name resolution asks.
"""
