"""What an import does: nothing but give names."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import npu_shim


def python(code, root):
    """Runs code in a new Python at the root of the checkout; what it prints."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=str(root), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def test_importing_the_package_loads_neither_tensorflow_nor_its_own_modules(repo_root):
    code = (
        "import sys, npu_shim; print({'tensorflow', 'numpy', 'npu_bridge', 'dataclasses'} & set(sys.modules),"
        "sorted(name for name in sys.modules if name.startswith('npu_shim')))"
    )
    assert python(code, repo_root) == "set() ['npu_shim', 'npu_shim._lazy_names']\n"


def test_device_options_and_environment_need_no_tensorflow(repo_root):
    code = (
        "import sys, npu_shim, npu_shim.options, npu_shim._env; npu_shim.device();"
        "import npu_shim.config.nested, npu_shim.hccl.manage.api, npu_shim.hccl.split.api;"
        "from npu_shim.distributed.ranks import world; world();"
        "from npu_shim.distributed.ranktable import validate, generate, writer;"
        "print('tensorflow' in sys.modules)"
    )
    assert python(code, repo_root).split() == ["False"]


def test_public_names_are_explicit():
    assert npu_shim.__all__ == ["__version__", "device", "install", "session_config", "uninstall"]
    assert set(npu_shim.__all__) <= set(dir(npu_shim))
    with pytest.raises(AttributeError, match="has no attribute 'sesion_config'; it offers __version__, device"):
        npu_shim.sesion_config


def sources(root):
    return sorted((root / "npu_shim").rglob("*.py"))


def test_private_tensorflow_is_touched_in_its_modules_only(repo_root):
    """Apart from the two names the star import must hand out."""
    given_out = {"tensorflow.python.client", "tensorflow.python.training"}
    for path in sources(repo_root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else ([a.name for a in node.names] if isinstance(node, ast.Import) else [])
            )
            private = [m for m in modules if m.startswith("tensorflow.python")]
            allowed = path.name.startswith("_tf") or (path.name == "npu_init.py" and set(private) <= given_out)
            assert allowed or not private, f"{path} imports {private}"


def test_every_function_has_types_and_every_public_one_a_docstring(repo_root):
    for path in sources(repo_root):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), f"{path} has no docstring"
        public = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith("_")]
        for node in public:
            assert ast.get_docstring(node) or "__doc__" in ast.dump(node), f"{path}: {node.name} has no docstring"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                arguments = node.args.posonlyargs if hasattr(node.args, "posonlyargs") else []
                arguments = arguments + node.args.args + node.args.kwonlyargs
                untyped = [a.arg for a in arguments if a.annotation is None and a.arg not in ("self", "cls")]
                assert not untyped and node.returns is not None, f"{path}: {node.name} lacks types {untyped}"


def test_the_vendors_module_paths_are_current():
    from npu_shim import _vendor_paths

    assert _vendor_paths.stale() == []
