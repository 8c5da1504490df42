"""A run of an unmodified script that is observed: what its source does not show, for the migration tool.

The tool names the expressions that it cannot judge. ``watched_text`` wraps each in a call, in memory and on its own
line, so tracebacks and AutoGraph see the script as it is. ``observation`` counts what runs, ``answers`` has a function
for each kind of question, and ``observed_run`` runs the script and writes the facts.
"""
