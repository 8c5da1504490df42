"""Sources as bytes, text and tree, edits of the text, notebooks, suppression comments.

Imports: ``tf_api`` and ``files``.
Gives: positions of nodes and edited bytes.
"""
