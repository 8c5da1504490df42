"""Horovod's interface as it answers on one process, for the scripts as they were before the migration."""
