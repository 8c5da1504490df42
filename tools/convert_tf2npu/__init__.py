"""The migration tool: TensorFlow training scripts to npu_shim, by the meaning of names.

It needs the standard library of Python 3.7 or later, and never imports TensorFlow. Its packages are stages; each
imports only from those below it: ``api``, ``cli``, ``report``, ``engine``, ``rules``, ``rewrite``, ``analysis``,
``project``, ``semantics``, ``syntax``, ``tf_api``, ``files``. docs/architecture.md shows how a file passes through
them. ``api`` has all that npu_shim uses.
"""

__version__ = "0.1.0"  # as of npu_shim, which this tool does not import
