"""The place and the form of the added import of npu_shim."""

from __future__ import annotations

import pytest
from convert_tf2npu.engine.converter import Converter

USE = "sess = tf.Session()\n"
USED = "sess = tf.Session(config=npu_config_proto())\n"
STAR = "from npu_shim.npu_init import *\n"
NAMED = "from npu_shim.npu_init import npu_config_proto\n"

CASES = {
    "after the docstring and the future": (
        '"""Doc."""\nfrom __future__ import division\nimport tensorflow as tf\n' + USE,
        '"""Doc."""\nfrom __future__ import division\nimport tensorflow as tf\n' + STAR + USED,
    ),
    "after settings that must come before TensorFlow": (
        'import os\nos.environ["A"] = "1"\nimport tensorflow as tf\nimport sys\n' + USE,
        'import os\nos.environ["A"] = "1"\nimport tensorflow as tf\n' + STAR + "import sys\n" + USED,
    ),
    "after the last import of TensorFlow": (
        "import tensorflow as tf\nimport sys\nfrom tensorflow.keras import layers\n" + USE,
        "import tensorflow as tf\nimport sys\nfrom tensorflow.keras import layers\n" + STAR + USED,
    ),
    "before its use, where the file has it later": (
        "import tensorflow as tf\n" + USE + STAR,
        "import tensorflow as tf\n" + NAMED + USED + STAR,
    ),
    "by name where tf is another TensorFlow": (
        "import tensorflow.compat.v1 as tf\n" + USE,
        "import tensorflow.compat.v1 as tf\n" + NAMED + USED,
    ),
    "by name where a function binds a name of the star": (
        "import tensorflow as tf\ndef f(session):\n    return session\n" + USE,
        "import tensorflow as tf\n" + NAMED + "def f(session):\n    return session\n" + USED,
    ),
    "by name beside another star": (
        "import tensorflow as tf\nfrom utils import *\n" + USE,
        "import tensorflow as tf\n" + NAMED + "from utils import *\n" + USED,
    ),
    "with os imported it is the star all the same": (
        "import os\nimport tensorflow as tf\n" + USE,
        "import os\nimport tensorflow as tf\n" + STAR + USED,
    ),
    "with another os by name": (
        "from my import os\nimport tensorflow as tf\n" + USE,
        "from my import os\nimport tensorflow as tf\n" + NAMED + USED,
    ),
    "behind a choice between two TensorFlows": (
        "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\n" + USE,
        "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\n"
        + NAMED
        + USED,
    ),
    "into the try where TensorFlow may be missing": (
        "try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\ndef f():\n    " + USE,
        "try:\n    import tensorflow as tf\n    " + NAMED + "except ImportError:\n    tf = None\ndef f():\n    " + USED,
    ),
    "into the try where its absence ends the program": (
        "try:\n    import tensorflow as tf\nexcept ImportError:\n    raise\ndef f():\n    " + USE,
        "try:\n    import tensorflow as tf\n    " + STAR + "except ImportError:\n    raise\ndef f():\n    " + USED,
    ),
    "behind the try around an extension that may be missing": (
        "import tensorflow as tf\ntry:\n    import tensorflow_io\nexcept ImportError:\n    pass\n" + USE,
        "import tensorflow as tf\ntry:\n    import tensorflow_io\nexcept ImportError:\n    pass\n" + STAR + USED,
    ),
    "into the function where TensorFlow is imported there": (
        "import sys\ndef f():\n\timport tensorflow as tf\n\t" + USE,
        "import sys\ndef f():\n\timport tensorflow as tf\n\t" + NAMED + "\t" + USED,
    ),
    "into each function that imports TensorFlow": (
        "def f():\n    import tensorflow as tf\n    " + USE + "def g():\n    import tensorflow as tf\n    " + USE,
        "def f():\n    import tensorflow as tf\n    "
        + NAMED
        + "    "
        + USED
        + "def g():\n    import tensorflow as tf\n    "
        + NAMED
        + "    "
        + USED,
    ),
    "not where the star is there": (
        "import tensorflow as tf\n" + STAR + USE,
        "import tensorflow as tf\n" + STAR + USED,
    ),
    "not where the name is there": (
        "import tensorflow as tf\n" + NAMED + USE,
        "import tensorflow as tf\n" + NAMED + USED,
    ),
    "behind the comment of its line": (
        "import tensorflow as tf  # pylint: disable=x\n" + USE,
        "import tensorflow as tf  # pylint: disable=x\n" + STAR + USED,
    ),
    "behind an import over several lines": (
        "from tensorflow import (\n    Session,  # one\n)\nsess = Session()\n",
        "from tensorflow import (\n    Session,  # one\n)\n" + STAR + "sess = Session(config=npu_config_proto())\n",
    ),
}


@pytest.mark.parametrize("before,after", list(CASES.values()), ids=list(CASES))
def test_the_import_goes(before: str, after: str) -> None:
    new = Converter().convert(before.encode()).new
    assert (new.decode() if new else None) == after


def test_a_name_that_the_file_uses_for_something_else_stops_the_change() -> None:
    text = "import tensorflow as tf\ndef npu_config_proto():\n    pass\n" + USE
    result = Converter().convert(text.encode())
    assert result.new is None
    assert "npu_config_proto for something else" in result.diagnostics[0].message


def test_no_import_where_no_name_of_it_is_used() -> None:
    text = "import tensorflow as tf\nwith tf.device('/gpu:0'):\n    pass\n"
    new = Converter().convert(text.encode()).new
    assert new is not None and b"npu_shim" not in new
