"""Horovod's exceptions."""

from __future__ import annotations


class HorovodInternalError(RuntimeError):
    """A collective failed because another rank is gone. Elastic training restores the last commit."""


class HostsUpdatedInterrupt(RuntimeError):
    """The hosts of the job have changed. npu_shim does not raise it: a job's world is fixed.

    Args:
        skip_sync: True if no rank joined, so that states need no synchronization.
    """

    def __init__(self, skip_sync: bool) -> None:
        super().__init__(skip_sync)
        self.skip_sync = skip_sync


class HorovodVersionMismatchError(ImportError):
    """A framework has another version than at Horovod's installation. npu_shim never raises it.

    Args:
        name: the framework.
        version: its version at installation.
        installed_version: its version now.
    """

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(f"{name} {installed_version} is installed, but Horovod was installed for {version}.")
        self.name, self.version, self.installed_version = name, version, installed_version
