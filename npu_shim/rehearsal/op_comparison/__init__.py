"""Compare two graphs, functions or models op by op on the same input.

* ``values`` computes the outputs of all ops. ``eager`` and ``graphs`` build the ops, in eager code and in sessions.
* ``compare`` pairs the ops of two of them, and finds the first that departs.
"""
