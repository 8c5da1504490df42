"""Watch the numbers of a run: the first op with Inf or NaN of a step, loss scale, gradient norms.

* ``numerics_watch`` has the function that users call. ``ops`` checks the output of each op,
  ``update_values`` reads each update.
* ``history`` collects both by step and finds problems. ``numerics_page`` shows them.
"""
