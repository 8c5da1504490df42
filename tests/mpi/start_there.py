"""Takes the place of ssh for mpirun: ``start_there.py [-x] HOST COMMAND ...`` runs a command in the network namespace of a host.

START_THERE_HOSTS names a file with the command line by which each host is entered.
"""

from __future__ import annotations

import json
import os
import sys

host, *words = [word for word in sys.argv[1:] if word != "-x"]  # MPICH passes the option of ssh
with open(os.environ["START_THERE_HOSTS"]) as given:
    enter = json.load(given)[host]
command = [*enter, "sh", "-c", " ".join(words)]
os.execvp(command[0], command)
