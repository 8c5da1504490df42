"""Runs a script as if it had been migrated, without a file being written.

* ``tool``: finds the migration tool;
* ``own``: which files are the script's own; ``reach``: which of them it may import;
* ``conversions``: what becomes of each of them; ``lines``: code of the migrated
  text that carries the line numbers of the original;
* ``hook``: gives that code to the import system; ``children``: to the processes
  of multiprocessing; ``autograph``: to TensorFlow, where it reads source;
  ``after_import``: what waits until a script imports TensorFlow;
* ``script``: runs a file or a module as Python itself would.

It needs no TensorFlow.
"""
