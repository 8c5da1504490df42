"""The ends of nodes on Python 3.7, whose trees have none.

Imports: nothing of the tool but ``syntax``.
Gives: the same positions as later versions of Python.
"""
