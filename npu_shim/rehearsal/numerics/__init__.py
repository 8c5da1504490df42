"""Watch the numbers of a run: the first op with Inf or NaN of a step, loss scale, gradient norms.

* ``watch`` has the function that users call. ``ops`` checks the output of each op, ``optimizers`` reads each update.
* ``history`` collects both by step and finds problems. ``events`` and ``page`` report them.
"""
