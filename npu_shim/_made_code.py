"""Whether this process may run code that it has made, as every compiler at run time does.

Hardened systems forbid it: systemd's MemoryDenyWriteExecute, SELinux without
its right execmem, a process itself by prctl. XLA does not report that, in any
version of TensorFlow: the process ends with a segmentation fault.
"""

from __future__ import annotations

import ctypes
import mmap


def is_allowed() -> bool:
    """Tries with a page of memory what a compiler does: writes to it, and has it made executable.

    Takes microseconds, and runs nothing of what is written.
    """
    if not hasattr(mmap, "PROT_EXEC"):  # a system without mprotect
        return True
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    page[:] = bytes(mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    mprotect = ctypes.CDLL(None).mprotect
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    refused = mprotect(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
    page.close()
    return not refused
