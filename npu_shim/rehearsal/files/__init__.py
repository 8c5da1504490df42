"""The files of the user while a script runs for a command: what a run writes is taken back."""
