"""Names of a module are the same after its tree was dropped from memory."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project import module_store
from convert_tf2npu.project.module_cache import LRU
from convert_tf2npu.project.project import Project
from convert_tf2npu.semantics.module_index import Module
from convert_tf2npu.semantics.resolved_name import ResolvedName
from convert_tf2npu.semantics.stars import star_binds, starred_name

OTHER = "import tensorflow as tf\nfrom tensorflow import keras\nclass Base(tf.Session):\n    pass\n"
MODULES = {
    "an import": "import tensorflow as tf\n",
    "an import of a part": "import tensorflow.keras\n",
    "a name from TensorFlow": "from tensorflow import Session as name\n",
    "a name from another file": "from other import tf\n",
    "a name from another file that has none": "from other import missing as name\n",
    "a function": "def name():\n    pass\n",
    "a class": "class name:\n    pass\n",
    "two things": "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\n",
    "two that disagree": "try:\n    import tensorflow as tf\nexcept ImportError:\n    import keras as tf\n",
    "nothing where it cannot be had": "try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\n",
    "nothing": "name = None\n",
    "a value": "import tensorflow\ntf = tensorflow\nname = tf.Session\n",
    "a number": "name = 3\n",
    "a result": "import tensorflow\ndef get():\n    return tensorflow\ntf = get()\n",
    "parts of a result": "import tensorflow\ndef get():\n    return tensorflow, 1\ntf, name = get()\n",
    "a global of a function": "def load():\n    global tf\n    import tensorflow as tf\n",
    "a function inside that is global": "def load():\n    global name\n    def name():\n        pass\n",
    "a star": "from other import *\n",
    "a star of TensorFlow": "from tensorflow import *\n",
    "a star of npu_shim": "from npu_shim.npu_init import *\n",
    "two stars": "from other import *\nfrom unknown import *\n",
    "a loop": "for name in range(3):\n    pass\n",
}
NAMES = ("tf", "name", "keras", "tensorflow", "Base", "len", "missing")


def project_of(folder: pathlib.Path, text: str) -> Project:
    (folder / "made.py").write_text(text)
    (folder / "other.py").write_text(OTHER)
    return Project([str(folder / "made.py"), str(folder / "other.py")])


def module_of(project: Project, path: pathlib.Path) -> Module:
    found = project.module(str(path))
    assert found is not None
    return found


@pytest.mark.parametrize("what", sorted(MODULES))
def test_names_are_the_same_after_the_tree_was_dropped(what: str, tmp_path: pathlib.Path) -> None:
    read, let_go = (project_of(tmp_path, MODULES[what]) for _ in range(2))
    path = tmp_path / "made.py"
    module = module_of(read, path)
    let_go._store._modules = LRU(1)
    module_of(let_go, path)
    module_of(let_go, tmp_path / "other.py")
    assert str(path) not in let_go._store
    for name in NAMES:
        made = ResolvedName("", str(path))
        assert let_go.resolve_attribute(made, name) == read.resolve_attribute(made, name), name
        assert starred_name(let_go, str(path), name) == starred_name(read, str(path), name), name
        assert star_binds(let_go, str(path), name) == (name in module.names.module.bindings), name


@pytest.mark.parametrize(
    "text,offered",
    [
        ("_a = b = 1\n", "b c"),
        ("__all__ = ['_a', 'c']\n", "_a c"),
        ("__all__ = ('b',)\n", "b"),
        ("__all__ = []\n", ""),
        ("__all__ = list(names)\n", "_a b c"),
        ("__all__ = ['b', *more]\n", "_a b c"),
        ("__all__ = ['b']\n__all__ += ['c']\n", "_a b c"),
    ],
)
def test_a_star_import_brings_what_the_module_offers(text: str, offered: str, tmp_path: pathlib.Path) -> None:
    names = module_of(project_of(tmp_path, text), tmp_path / "made.py").names
    assert [name for name in ("_a", "b", "c") if names.star_exports(name)] == offered.split()


@pytest.mark.parametrize("base,config", [("tf.Session", True), ("other.Base", True), ("object", False)])
def test_files_that_ask_each_other_are_converted_with_one_tree_in_memory(
    base: str, config: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "kinds.py").write_text(
        f"import tensorflow as tf\nimport other\nclass Kind({base}):\n    pass\ndef make():\n    return 1\n"
    )
    users = [tmp_path / f"use{number}.py" for number in range(6)]
    for path in users:
        path.write_text("import tensorflow as tf\nfrom kinds import Kind, make\nmade = Kind(), make(), tf.zeros(1)\n")
    paths = [str(tmp_path / "kinds.py"), str(tmp_path / "other.py")] + [str(path) for path in users]
    monkeypatch.setattr(module_store, "LEAST_NODES", 1)
    converter = Converter(Settings(), Project(paths))
    made = [converter.convert(path.read_bytes(), str(path)).new for path in users]
    assert [new is not None and b"Kind(config=npu_config_proto())" in new for new in made] == [config] * len(users)
