"""A wheel built from the checkout holds every module and the right commands."""

from __future__ import annotations

import configparser
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import convert_tf2npu
import pytest

import npu_shim

pytestmark = [pytest.mark.once, pytest.mark.slow]

BUILT_FROM = ("setup.py", "pyproject.toml", "LICENSE", "README.md", "npu_shim", "tools")
PACKAGES = {"npu_shim": "npu_shim", "convert_tf2npu": "tools/convert_tf2npu"}


@pytest.fixture(scope="module")
def wheel(repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built without the network and outside the checkout."""
    out = tmp_path_factory.mktemp("wheel")
    source = tmp_path_factory.mktemp("source")
    # setuptools leaves build/ and *.egg-info behind: the copy keeps the checkout clean.
    present = [name for name in BUILT_FROM if (repo_root / name).exists()]
    subprocess.run(["cp", "-R", *present, str(source)], cwd=repo_root, check=True)
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--disable-pip-version-check",
            "-w",
            str(out),
            str(source),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert built.returncode == 0, built.stdout
    (path,) = out.glob("npu_shim-*.whl")
    return zipfile.ZipFile(path)


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = [n for n in wheel.namelist() if n.endswith(".dist-info/" + name)]
    return wheel.read(path).decode("utf-8")


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_every_module_and_table_of_the_package_is_in_the_wheel(
    package: str, repo_root: pathlib.Path, wheel: zipfile.ZipFile
) -> None:
    folder = repo_root / PACKAGES[package]
    modules = {
        package + "/" + path.relative_to(folder).as_posix().replace("_vendor_paths/modules/", "")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert modules
    assert modules - set(wheel.namelist()) == set()


def test_nothing_but_the_two_packages_and_the_start_of_the_alias_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {*PACKAGES, "npu_shim_alias.pth"}


def test_the_commands_are_the_ones_which_exist(wheel: zipfile.ZipFile) -> None:
    parser = configparser.ConfigParser()
    parser.read_string(metadata(wheel, "entry_points.txt"))
    assert dict(parser["console_scripts"]) == {
        "convert_tf2npu": "convert_tf2npu.main:main",
        "npu-shim": "npu_shim.cli:main",
    }


def test_the_installed_tool_converts(wheel: zipfile.ZipFile, tmp_path: pathlib.Path) -> None:
    place, script = tmp_path / "site", tmp_path / "train.py"
    wheel.extractall(str(place))
    script.write_text("import tensorflow as tf\nsess = tf.Session()\n")
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from convert_tf2npu.main import main; sys.exit(main())", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "+sess = tf.Session(config=npu_config_proto())" in done.stdout, done.stderr


def test_the_wheel_asks_for_no_tensorflow_numpy_or_protobuf(wheel: zipfile.ZipFile) -> None:
    """pip would move the user's, or install a second one beside tensorflow-cpu. tests/install has the packages' own."""
    required = re.findall(r"^Requires-Dist: ([\w.-]+)", metadata(wheel, "METADATA"), re.M)
    assert "absl-py" in required and "onnx" in required
    assert [name for name in required if re.match("tensorflow|tf-nightly|keras|numpy|protobuf", name)] == []


@pytest.mark.parametrize("module", ["tools/convert_tf2npu/main.py", "npu_shim/cli/__init__.py"])
def test_a_command_points_to_a_function_of_a_module(module: str, repo_root: pathlib.Path) -> None:
    text = (repo_root / module).read_text(encoding="utf-8")
    assert re.search(r"^def main\(", text, re.M)


def test_the_version_is_the_one_in_the_source(wheel: zipfile.ZipFile) -> None:
    version = re.search(r"^Version: (.+)$", metadata(wheel, "METADATA"), re.M)
    assert version is not None
    assert npu_shim.__version__ == convert_tf2npu.__version__ == version.group(1)


def second_versions(text: str) -> list[str]:
    """Return what states a version of the project, as an assignment or beside its name."""
    return re.findall(
        r"(?im)^ *_*version_*(?:: \w+)? *= *[\"']\d[^\"']*[\"']|npu[_-]shim(?:-|==| |=| v)\d+\.\d+[\w.-]*", text
    )


def test_the_version_stands_in_one_place(repo_root: pathlib.Path) -> None:
    folders = [repo_root / name for name in ("npu_shim", "tools", "docs", "samples", "benchmarks")]
    paths = [*repo_root.glob("*.*"), *(path for folder in folders for path in folder.rglob("*"))]
    read = [path for path in paths if path.suffix in (".py", ".md", ".toml", ".cfg", ".yml", ".sh", ".txt")]
    places = {
        path.relative_to(repo_root).as_posix(): second_versions(path.read_text(encoding="utf-8")) for path in read
    }
    found = {place: versions for place, versions in places.items() if versions}
    assert found.pop("npu_shim/horovod/__init__.py") == ['__version__ = "0.28.1"']  # that of Horovod's interface
    assert found == {"npu_shim/__init__.py": [f'__version__ = "{npu_shim.__version__}"']}
    changes = (repo_root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^## (.+)$", changes)[0] == npu_shim.__version__


@pytest.mark.parametrize(
    "text",
    ['version = "2.0"', "__version__: str = '1.2.3'", "pip install npu_shim==1.0", "npu_shim-0.1.0-py3-none-any.whl"],
)
def test_a_second_version_is_noticed(text: str) -> None:
    assert len(second_versions(text)) == 1


def test_a_copy_of_the_tool_alone_has_no_version(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    subprocess.run(["cp", "-R", str(repo_root / "tools" / "convert_tf2npu"), str(tmp_path)], check=True)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "convert_tf2npu" / "main.py"), "--version"], capture_output=True, text=True
    )
    assert done.stdout == "convert_tf2npu 0.0.0+unknown\n", done.stderr


def test_requirements_are_ranges_and_no_pins(wheel: zipfile.ZipFile) -> None:
    requirements = re.findall(r"^Requires-Dist: (.+)$", metadata(wheel, "METADATA"), re.M)
    assert requirements
    assert [r for r in requirements if "==" in r.split(";")[0]] == []


def test_the_page_of_licences_has_all_packages_of_each_extra(repo_root: pathlib.Path) -> None:
    spec = importlib.util.spec_from_file_location("make_licences", repo_root / "docs" / "make_licences.py")
    assert spec is not None and spec.loader is not None
    licences = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(licences)
    extras = licences.requirements((repo_root / "setup.py").read_text(encoding="utf-8"))
    page = (repo_root / "docs" / "licences.md").read_text(encoding="utf-8")
    sections = re.split(r"(?m)^## (?:Always|With `npu_shim\[(\w+)\]`)$", page)[1:]
    assert len(sections) == 2 * len(extras)
    for extra, section in zip(sections[::2], sections[1::2]):
        rows = re.findall(r"(?m)^\| (\S+) \| [\w.+]+ \| (.+) \| (npu_shim|one of these) \|$", section)
        required = {licences.name_of(requirement) for requirement in extras[extra or ""]}
        assert {licences.name_of(name) for name, _, by in rows if by == "npu_shim"} == required
        assert all(stated != "not stated" for _, stated, _ in rows)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"license_expression": "MIT", "license": "other"}, "MIT"),
        ({"classifier": ["License :: OSI Approved", "License :: OSI Approved :: BSD License"]}, "BSD License"),
        ({"license": "\nApache License v2.0\nmore", "classifier": ["Topic :: Software"]}, "Apache License v2.0"),
        ({}, "not stated"),
    ],
)
def test_a_licence_is_what_the_metadata_state(
    metadata: dict[str, object], expected: str, repo_root: pathlib.Path
) -> None:
    code = "import json, sys; import make_licences; print(make_licences.licence(json.loads(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(metadata)], cwd=repo_root / "docs", capture_output=True, text=True
    )
    assert done.stdout == f"{expected}\n", done.stderr


def test_licence_text_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    (path,) = [n for n in wheel.namelist() if n.endswith("/LICENSE")]
    assert b"Apache License" in wheel.read(path)


def test_an_installed_package_serves_the_vendors_packages_when_the_variable_asks(
    wheel: zipfile.ZipFile, tmp_path: pathlib.Path
) -> None:
    wheel.extractall(str(tmp_path))
    code = "import hccl.manage.api as api; print(api.__name__)"
    for value, expected in (("1", "npu_shim.hccl.manage.api\n"), ("0", "")):
        start = f"import site; site.addsitedir({str(tmp_path)!r})\n"  # as Python does for site-packages
        done = subprocess.run(
            [sys.executable, "-c", start + code],
            env={**os.environ, "NPU_SHIM_ALIAS": value},
            cwd=tmp_path.parent,
            capture_output=True,
            text=True,
        )
        assert done.stdout == expected, done.stderr
