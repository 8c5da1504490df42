"""The import hook of ``npu-shim run``: runs a script as if it had been migrated, without writing files.

* ``tool`` finds the migration tool.
* ``project_files`` tells the script's own files from libraries. ``reachable``
  lists those that the script may import.
* ``conversions`` converts them. ``migrated_code`` compiles the migrated text with the
  line numbers of the original.
* ``hook`` gives that code to the import system, ``children`` to the processes
  of multiprocessing, ``autograph`` to TensorFlow. ``after_tensorflow`` acts
  when a script has imported TensorFlow.
* ``script`` runs a file or a module as Python itself would.

It does not need TensorFlow.
"""
