"""A script behaves under ``npu-shim run`` as under Python."""

from __future__ import annotations

import re
import signal
import sys
from typing import Any, Callable

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.smoke]

ABOUT_ME = '''
import os, sys
import tensorflow as tf


def where():
    with tf.device('/gpu:0'):
        return 1


class Thing:
    """Pickled by the name of its module."""
    def method(self):
        return where()


def about():
    import inspect, pickle
    main = sys.modules['__main__']
    yield 'argv', sys.argv
    yield 'path', [p for p in sys.path]
    yield 'file', __file__
    yield 'package', __package__, __spec__ and __spec__.name
    yield 'names', sorted(vars(main))
    yield 'builtins', type(__builtins__).__name__
    yield 'main', main.where is where, main.__name__, vars(main) is globals()
    yield 'source', inspect.getsource(where), inspect.getsource(Thing), inspect.getsourcelines(about)[1]
    yield 'code', where.__code__.co_filename, where.__code__.co_firstlineno
    yield 'pickle', type(pickle.loads(pickle.dumps(Thing()))) is Thing, Thing.__module__
    yield 'cached', getattr(main, '__cached__', 'none'), __doc__
    yield 'around', os.getcwd(), sorted(os.environ)


if __name__ == '__main__':
    for line in about():
        print(*line)
'''

SCRIPTS: dict[str, dict[str, str]] = {
    "about": {"train.py": ABOUT_ME},
    "in a package": {
        "pack/__init__.py": "",
        "pack/train.py": ABOUT_ME + "from pack import train; print(train.__name__)",
    },
    "traceback": {
        "train.py": '''"""A docstring."""
import tensorflow as tf
def f(x):
    with tf.device('/gpu:0') as d, \\
            tf.device('/gpu:1'):
        raise ValueError(
            d[:0], 'wrong')
f(3)
'''
    },
    "traceback in a module": {
        "train.py": "import m\nm.f()\n",
        "m.py": """import tensorflow as tf
def f():
    try:
        with tf.device('/gpu:0'):
            {}['key']
    except KeyError:
        raise RuntimeError('second')
""",
    },
    "module that fails when it is imported": {
        "train.py": "import m",
        "m.py": ('import tensorflow as tf\nwith tf.device("/gpu:0"):\n    1 / 0\n'),
    },
    "missing module": {"train.py": "import tensorflow\nimport no_such_module\n"},
    "syntax error in a module": {"train.py": "import m", "m.py": "import tensorflow as tf\nx = = 3\n"},
    "syntax error": {"train.py": "import tensorflow as tf\nx = = 3\n"},
    "Python 2": {"train.py": "import old", "old.py": 'import tensorflow as tf\nprint "no"\n'},
    "NUL": {"train.py": "import m", "m.py": "import tensorflow as tf\0\n"},
    "unknown encoding of a module": {"train.py": "import m", "m.py": "# -*- coding: no-such -*-\nimport tensorflow\n"},
    "exit code": {"train.py": 'import sys, tensorflow as tf\nwith tf.device("/gpu:0"): sys.exit(7)'},
    "exit text": {"train.py": 'import sys; sys.exit("that was it")'},
    "own excepthook": {
        "train.py": """
import sys
def hook(kind, value, trace):
    names = []
    while trace:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    print(kind.__name__, value, names, value.__traceback__.tb_frame.f_code.co_name)
sys.excepthook = hook
def f():
    1 / 0
f()
"""
    },
    "hook of the end": {
        "train.py": """
import atexit, sys, threading, time
atexit.register(lambda: print('end', sys.modules['__main__'].__dict__['x']))
x = 5
threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()
"""
    },
    "recursion": {
        "train.py": """
import traceback, sys
def f(n):
    return f(n + 1)
try:
    f(0)
except RecursionError as error:
    print(len(traceback.extract_tb(error.__traceback__)) > 500)
"""
    },
    "warnings": {
        "train.py": """import warnings, m
warnings.warn('mine')
""",
        "m.py": """import tensorflow as tf
import warnings
with tf.device('/gpu:0'):
    text = '\\d'
    warnings.warn('of a module')
    assert (1, 'always')
""",
    },
    "reload": {
        "train.py": """
import importlib, m
print(m.value)
with open(m.__file__, 'a') as stream:
    stream.write('value = 2\\n')
print(importlib.reload(m).value)
with open(m.__file__, 'w') as stream:
    stream.write('value = 1\\n')
""",
        "m.py": "value = 1\n",
    },
    "relative and namespace imports": {
        "train.py": "from pack.sub import a\nimport space.deep.b as b\n"
        "print(a.x, b.y, a.__package__, b.__spec__.name)\n",
        "pack/__init__.py": "z = 3",
        "pack/sub/__init__.py": "from .. import z",
        "pack/sub/a.py": "from . import z\nfrom ..other import w\nx = z + w\n",
        "pack/other.py": "w = 4",
        "space/deep/b.py": 'import tensorflow as tf\nwith tf.device("/gpu:0"): y = 1\n',
    },
    "runpy": {
        "train.py": """
import runpy
print(sorted(runpy.run_path('other.py', {'given': 1}))[-2:], runpy.run_path('other.py', run_name='me')['me'])
print(runpy.run_module('other')['me'])
""",
        "other.py": "import tensorflow as tf\nme = __name__, __file__\n",
    },
    "no future of ours": {"train.py": "def f(x: int): pass\nprint(f.__annotations__)\n"},
    "future of the script": {
        "train.py": '''"""Doc."""
from __future__ import annotations
import tensorflow as tf
def f(x: no_such_name): pass
with tf.device('/gpu:0'): print(f.__annotations__, __doc__)
'''
    },
    "CRLF, tabs and a byte order mark": {
        "train.py": (
            '\ufeff# comment\r\nimport tensorflow as tf\r\nif True:\r\n\twith tf.device("/gpu:0"):\r\n\t\t1/0\r\n'
        )
    },
    "letters beyond ASCII": {
        "train.py": (
            'import tensorflow as tf\nwith tf.device("/gpu:0"), tf.device("/gpu:1" if "ä€😀" else [][0]):\n'
            '    größe = {"ü": 1}; größe["ö"]\n'
        )
    },
    "one line": {"train.py": 'import tensorflow as tf; d = tf.device("/gpu:0"); [][d and 1]'},
    "mains are one": {
        "train.py": """
import tensorflow as tf
import other
state = 'main'
if __name__ == '__main__':
    print(other.seen())
""",
        "other.py": """
def seen():
    import __main__, train
    return __main__.state, train is __main__
""",
    },
}


def without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def assert_same(project: Any, arguments: list[str], **more: Any) -> None:
    before = project.files()
    plain = project.python(*arguments, **more)
    ours = project.run(*arguments, **more)
    assert without_addresses(ours.out) == without_addresses(plain.out)
    assert (ours.code, without_addresses(ours.err)) == (plain.code, without_addresses(plain.err))
    assert project.files() == before
    assert len(ours.said) >= 1


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_behaves_as_with_python(name: str, project: Callable[..., Any]) -> None:
    made = project(SCRIPTS[name])
    script = next(path for path in SCRIPTS[name] if path.endswith("train.py"))
    assert_same(made, [script, "--steps", "3", "-v", "-m", "--", "x"])


@pytest.mark.parametrize("spelling", ["../project/train.py", "./train.py", "link.py", "{root}/train.py"])
def test_it_does_so_however_the_script_is_named(spelling: str, project: Callable[..., Any]) -> None:
    made = project({"real/train.py": ABOUT_ME, "train.py": ABOUT_ME})
    (made.root / "link.py").symlink_to(made.root / "real" / "train.py")
    assert_same(made, [spelling.format(root=made.root)])


@pytest.mark.parametrize("module", ["train", "pack.train", "pack", "pack.no_such", "no_such", "pack.fails"])
def test_a_module_behaves_as_with_python_m(module: str, project: Callable[..., Any]) -> None:
    made = project(
        {
            "train.py": ABOUT_ME,
            "pack/__init__.py": "import tensorflow as tf",
            "pack/train.py": ABOUT_ME,
            "pack/__main__.py": ABOUT_ME,
            "pack/fails.py": "1 / 0",
        }
    )
    assert_same(made, ["-m", module, "-v", "--steps=3"])


def test_a_folder_behaves_as_with_python(project: Callable[..., Any]) -> None:
    made = project({"app/__main__.py": ABOUT_ME + "import beside", "app/beside.py": "import tensorflow as tf"})
    assert_same(made, ["app", "-v"])


def test_flags_and_variables_of_python_hold(project: Callable[..., Any]) -> None:
    made = project({"train.py": 'import tensorflow as tf\nassert tf.device("/gpu:0") is None\nprint(__debug__)'})
    plain = made.python("-O", "train.py")
    ours = made.python("-O", "-m", "npu_shim", "run", "train.py")
    assert plain.out == ours.out == "False\n" and ours.code == 0


def test_ctrl_c_ends_it_as_it_ends_python(project: Callable[..., Any]) -> None:
    made = project(
        {
            "train.py": 'import os, signal, tensorflow as tf\nwith tf.device("/gpu:0"):\n'
            "    os.kill(os.getpid(), signal.SIGINT)\n    import time; time.sleep(9)\n"
        }
    )
    plain, ours = made.python("train.py"), made.run("train.py")
    assert (ours.code, ours.err) == (plain.code, plain.err)
    assert plain.code == (-signal.SIGINT if sys.version_info >= (3, 8) else 1)
