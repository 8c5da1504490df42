"""Edits of calls, imports and statements, and the change or finding that carries them.

Imports: ``analysis`` and below.
Gives: byte edits that keep comments and layout.
"""
