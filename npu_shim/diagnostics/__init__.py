"""What this machine is and has, for ``npu-shim doctor``.

Nothing here raises because of what it finds, and nothing imports TensorFlow in
this process: ``probe`` does, in one of its own. What is read goes into plain
dictionaries, ready for JSON.
"""
