"""The host of a process: its device, environment and installed packages, and what npu_shim replaces in the process."""
