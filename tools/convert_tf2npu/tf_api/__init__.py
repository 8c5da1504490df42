"""Tables of TensorFlow's names: canonical names, aliases, versions, NPU support.

Imports: nothing of the tool but ``files``.
Gives: facts; no file of a user is read here.
"""
