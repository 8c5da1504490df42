"""The part of ModelArts' package ``moxing`` that scripts of TensorFlow use most: its files, on local paths.

``npu_shim.alias`` serves it where ``moxing`` is not installed, so a script for ModelArts runs anywhere::

    import moxing as mox

    mox.file.copy_parallel("obs://bucket/data", "/cache/data")

A path of OBS is a path below the folder NPU_SHIM_OBS: ``obs://bucket/data`` is ``$NPU_SHIM_OBS/bucket/data``.
"""

from npu_shim._host.moxing import file as file


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"npu_shim serves moxing.file, but not moxing.{name}. Write this part of the script with TensorFlow."
    )
