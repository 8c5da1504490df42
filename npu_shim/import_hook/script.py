"""Run a file or a module as Python itself would: ``python script.py``, ``python -m module``."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader
from types import ModuleType, TracebackType
from typing import Callable, Sequence

from npu_shim.import_hook import other_version
from npu_shim.import_hook.hook import Finder, MigratedLoader


def main_file_path(path: str) -> str:
    """Return the path of the script for ``__file__``: absolute from Python 3.9 on."""
    return os.path.join(os.getcwd(), path) if sys.version_info >= (3, 9) else path


def enter_script_folder(command: Sequence[str]) -> None:
    """Put the folder of a script first on ``sys.path``, as Python does.

    Args:
        command: the path of the script, or ``-m`` and a module, and the arguments.
    """
    if command[0] == "-m":
        folder = os.getcwd()
    elif os.path.isdir(command[0]):
        folder = main_file_path(command[0])
    else:
        folder = os.path.dirname(os.path.realpath(command[0]))
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path[0] = folder


def root_of_module(path: str, module: str) -> str:
    """Return the folder in which Python finds a module with ``-m``.

    Args:
        path: of the module, or of the ``__main__.py`` of a package.
        module: its name.
    """
    parts = module.split(".")
    is_package = os.path.basename(path) == "__main__.py" and parts[-1] != "__main__"
    root = os.path.abspath(path)
    for _ in range(len(parts) + is_package):
        root = os.path.dirname(root)
    return root


def run_unconverted(command: Sequence[str]) -> None:
    """Run a script as it is, as ``python command``. See enter_script_folder()."""
    if command[0] == "-m":
        run_module(command[1], [*command[2:]])
    else:
        run_file(command[0], [*command[1:]], None)


def run_file(path: str, arguments: list[str], finder: Finder | None) -> None:
    """Run a script as ``python path arguments``.

    Args:
        path: of a file, or of a folder with a __main__.py, as the user wrote it.
        arguments: the script's own arguments.
        finder: loads the converted script; None to run the file as it is.
    """
    sys.argv[:] = [path] + arguments
    module = _new_main()
    if os.path.isdir(path):
        _run_with_short_traceback(lambda: _run_as_main("__main__", False))
        return
    file = main_file_path(path)
    plain = SourceFileLoader("__main__", file)
    loader = finder.loader_for(plain) if finder else plain
    module.__file__, module.__loader__ = file, loader
    if sys.version_info < (3, 14):
        module.__dict__["__cached__"] = None

    def execute_main() -> None:
        # The loader would look for bytecode, which Python does not do for the main script.
        code = (
            loader.get_code("__main__")
            if isinstance(loader, MigratedLoader)
            else compile(loader.get_data(file), file, "exec", dont_inherit=True)
        )
        exec(code, module.__dict__)

    _run_with_short_traceback(execute_main)


def run_module(name: str, arguments: list[str]) -> None:
    """Run a module as ``python -m name arguments``."""
    sys.argv[:] = ["-m"] + arguments
    _new_main()
    _run_with_short_traceback(lambda: _run_as_main(name, True))


def _run_as_main(name: str, alter_argv: bool) -> None:
    run: Callable[[str, bool], object] = getattr(runpy, "_run_module_as_main")  # the interpreter calls it for -m
    run(name, alter_argv)


def _new_main() -> ModuleType:
    """Create a new main module, which replaces that of the command."""
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        module.__dict__["__annotations__"] = {}
    module.__loader__ = BuiltinImporter
    sys.modules["__main__"] = module
    if "__mp_main__" in sys.modules:  # of multiprocessing, the same module by another name
        sys.modules["__mp_main__"] = module
    return module


def _run_with_short_traceback(execute: Callable[[], None]) -> None:
    """Run the script. Its traceback begins with the script's own frames.

    An exception goes on to the interpreter, which ends the process as usual:
    with its exit code, on Ctrl-C, and with the messages of threads.
    """
    try:
        execute()
    except SystemExit:
        raise
    except BaseException:
        shown = sys.excepthook

        def excepthook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
            own, text = _without_launcher(trace), other_version.version_advice(value)
            if text:
                print(f"npu_shim: {text}", file=sys.stderr, flush=True)
            shown(kind, value.with_traceback(own), own)

        sys.excepthook = excepthook
        raise


def _without_launcher(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback of a caught exception without the frames of this module."""
    last, step = None, trace
    while step is not None:
        if step.tb_frame.f_code.co_filename == __file__:
            last = step
        step = step.tb_next
    return last.tb_next if last else trace
