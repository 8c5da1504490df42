"""Scopes, name resolution, types, call sites and data flow.

Imports: ``syntax`` and below; other modules only through ``module_index``.
Gives: the meaning of names and expressions.
"""
