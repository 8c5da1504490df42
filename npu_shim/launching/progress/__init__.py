"""Show the progress of ranks: one line each, which is drawn again at the bottom of a terminal or printed to a pipe.

* ``status`` is what a rank reports, a line of JSON in a pipe.
* ``board`` makes the lines from the last status of each rank.
* ``region`` keeps lines at the bottom of a terminal, below the output of the script.
* ``display`` is the process that reads the pipe and draws.
"""
