"""All ways to create a session, and all ways to configure one."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project

HEAD = "import functools\nimport tensorflow as tf\n"
OURS = "npu_config_proto(config_proto=%s)"
CONVERTED: dict[str, list[str]] = {
    # what is written, what becomes of the part in it
    "Session": ["s = tf.Session()", "s = tf.Session(config=npu_config_proto())"],
    "Session with None": ["s = tf.Session(config=None)", "s = tf.Session(config=npu_config_proto())"],
    "Session by place": ['s = tf.Session("", g, c)', f's = tf.Session("", g, {OURS})' % "c"],
    "Session by place, with None": ['s = tf.Session("", None, None)', 's = tf.Session("", None, npu_config_proto())'],
    "Session by its last place": [
        "s = tf.Session(target, graph=g)",
        "s = tf.Session(target, graph=g, config=npu_config_proto())",
    ],
    "Session with hidden other arguments": [
        "s = tf.Session(config=c, **kw)",
        f"s = tf.Session(config={OURS}, **kw)" % "c",
    ],
    "InteractiveSession": ["s = tf.InteractiveSession()", "s = tf.InteractiveSession(config=npu_config_proto())"],
    "a config made in the call": [
        "s = tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True)))",
        f"s = tf.Session(config={OURS})" % "tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))",
    ],
    "a config that is changed later": [
        "c = tf.ConfigProto()\nc.gpu_options.allow_growth = True\ns = tf.Session(config=c)",
        f"c.gpu_options.allow_growth = True\ns = tf.Session(config={OURS})" % "c",
    ],
    "a config of a helper": [
        "def config():\n    return tf.ConfigProto()\ns = tf.Session(config=config())",
        f"s = tf.Session(config={OURS})" % "config()",
    ],
    "a config that is passed through": [
        "def run(config=None):\n    return tf.Session(config=config)\nrun(tf.ConfigProto())",
        f"    return tf.Session(config={OURS})" % "config",
    ],
    "a config of an object": [
        "class A:\n    def f(self):\n        self.s = tf.Session(config=self.config)",
        f"tf.Session(config={OURS})" % "self.config",
    ],
    "a config with graph options": [
        "o = tf.GraphOptions(optimizer_options=tf.OptimizerOptions(\n    global_jit_level=tf.OptimizerOptions.ON_1))\n"
        "s = tf.Session(config=tf.ConfigProto(graph_options=o))",
        f"s = tf.Session(config={OURS})" % "tf.ConfigProto(graph_options=o)",
    ],
    "a config chosen": ["s = tf.Session(config=a if b else c)", f"s = tf.Session(config={OURS})" % "a if b else c"],
    "a session of Keras": [
        "from tensorflow.keras import backend as K\nK.set_session(tf.Session(config=c))",
        f"K.set_session(tf.Session(config={OURS}))" % "c",
    ],
    "MonitoredTrainingSession": [
        "s = tf.train.MonitoredTrainingSession(hooks=h)",
        "s = tf.train.MonitoredTrainingSession(hooks=h, config=npu_config_proto())",
    ],
    "MonitoredSession": [
        "s = tf.train.MonitoredSession()",
        "s = tf.train.MonitoredSession(session_creator=tf.train.ChiefSessionCreator(config=npu_config_proto()))",
    ],
    "MonitoredSession by place": [
        "s = tf.train.MonitoredSession(None, hooks)",
        "s = tf.train.MonitoredSession(tf.train.ChiefSessionCreator(config=npu_config_proto()), hooks)",
    ],
    "ChiefSessionCreator": [
        's = tf.train.MonitoredSession(session_creator=tf.train.ChiefSessionCreator(scaffold, "", c))',
        f'session_creator=tf.train.ChiefSessionCreator(scaffold, "", {OURS}))' % "c",
    ],
    "WorkerSessionCreator": [
        "c = tf.train.WorkerSessionCreator(master=m)",
        "c = tf.train.WorkerSessionCreator(master=m, config=npu_config_proto())",
    ],
    "SingularMonitoredSession": [
        "s = tf.train.SingularMonitoredSession(hooks)",
        "s = tf.train.SingularMonitoredSession(hooks, config=npu_config_proto())",
    ],
    "managed_session": [
        "sv = tf.train.Supervisor()\nwith sv.managed_session() as s:\n    pass",
        "with sv.managed_session(config=npu_config_proto()) as s:",
    ],
    "managed_session of an object": [
        "class A:\n    def __init__(self):\n        self.sv = tf.train.Supervisor()\n    def f(self):\n"
        "        with self.sv.managed_session(config=c) as s:\n            pass",
        f"with self.sv.managed_session(config={OURS}) as s:" % "c",
    ],
    "managed_session of another module": [
        "from tensorflow.python.training import supervisor\nsv = supervisor.Supervisor()\n"
        "with sv.managed_session(m) as s:\n    pass",
        "with sv.managed_session(m, config=npu_config_proto()) as s:",
    ],
    "prepare_or_wait_for_session": [
        'sv = tf.train.Supervisor()\ns = sv.prepare_or_wait_for_session("", c)',
        f's = sv.prepare_or_wait_for_session("", {OURS})' % "c",
    ],
    "the session manager of a supervisor": [
        'sv = tf.train.Supervisor()\ns = sv.session_manager.prepare_session("", init_op=i)',
        's = sv.session_manager.prepare_session("", init_op=i, config=npu_config_proto())',
    ],
    "slim.learning.train": [
        "slim = tf.contrib.slim\nslim.learning.train(op, d)",
        "slim.learning.train(op, d, session_config=npu_config_proto())",
    ],
    "the package tf_slim": [
        "import tf_slim as slim\nslim.learning.train(op, d, session_config=c)",
        f"slim.learning.train(op, d, session_config={OURS})" % "c",
    ],
    "slim.evaluation": [
        'from tensorflow.contrib import slim\nslim.evaluation.evaluate_once("", p, d)',
        'slim.evaluation.evaluate_once("", p, d, session_config=npu_config_proto())',
    ],
    "contrib.training.train": [
        "tf.contrib.training.train(op, d, config=c)",
        f"tf.contrib.training.train(op, d, config={OURS})" % "c",
    ],
    "contrib.training.evaluate_once": [
        "tf.contrib.training.evaluate_once(p)",
        "tf.contrib.training.evaluate_once(p, config=npu_config_proto())",
    ],
    "a class made from Session": [
        "class S(tf.Session):\n    pass\ns = S(graph=g)",
        "s = S(graph=g, config=npu_config_proto())",
    ],
    "a class made from one made from Session": [
        "class S(tf.Session):\n    pass\nclass T(S):\n    pass\ns = T(config=c)",
        f"s = T(config={OURS})" % "c",
    ],
    "the __init__ of a class made from Session": [
        "class S(tf.Session):\n    def __init__(self, c):\n        super(S, self).__init__(config=c)\ns = S(c)",
        f"super(S, self).__init__(config={OURS})\ns = S(c)" % "c",
    ],
    "the __init__ of Session by name": [
        'class S(tf.Session):\n    def __init__(self, c):\n        tf.Session.__init__(self, "", None, c)\ns = S(c)',
        f'tf.Session.__init__(self, "", None, {OURS})\ns = S(c)' % "c",
    ],
    "partial": ["make = functools.partial(tf.Session, config=c)", f"partial(tf.Session, config={OURS})" % "c"],
    "partial without a config": [
        "make = functools.partial(tf.train.MonitoredTrainingSession, hooks=h)\nmake()",
        "partial(tf.train.MonitoredTrainingSession, hooks=h, config=npu_config_proto())\nmake()",
    ],
}


@pytest.mark.parametrize("text,part", list(CONVERTED.values()), ids=list(CONVERTED))
def test_a_session_gets_the_npu_configuration(text: str, part: str) -> None:
    converter = Converter()
    result = converter.convert((HEAD + text + "\n").encode())
    assert result.new is not None and part in result.new.decode(), result
    assert result.new.count(b"npu_config_proto(") == 1
    again = converter.convert(result.new)
    assert again.new is None and not again.unreadable


REPORTED = {
    "hidden arguments": "s = tf.Session(**kw)",
    "hidden arguments by place": "s = tf.InteractiveSession(*a)",
    "a partial that gets its config later": "make = functools.partial(tf.Session)\ns = make(config=c)",
    "a default argument": "def f(session=tf.Session):\n    pass",
    "an argument": "pool = Pool(tf.Session, 8)",
    "a monitored session by its own name": "from tensorflow.train import MonitoredSession\ns = MonitoredSession()",
}


@pytest.mark.parametrize("text", list(REPORTED.values()), ids=list(REPORTED))
def test_a_hidden_configuration_is_reported(text: str) -> None:
    result = Converter().convert((HEAD + text + "\n").encode())
    assert result.new is None
    assert [(d.code, d.kind) for d in result.diagnostics if d.code in ("NPU101", "NPU204")] == [
        (result.diagnostics[0].code, FINDING)
    ]
    assert "npu_config_proto(" in result.diagnostics[0].message


UNTOUCHED = {
    "a creator of its own": "s = tf.train.MonitoredSession(session_creator=creator)",
    "a creator by place": "s = tf.train.MonitoredSession(creator)",
    "a class that only looks like one": "class Session:\n    pass\ns = Session()",
    "a session of requests": "import requests\ns = requests.Session()",
    "a session of a test": "class T(tf.test.TestCase):\n    def test(self):\n        with self.session() as s:\n            pass",
    "a cached session of a test": "class T(tf.test.TestCase):\n    def test(self):\n        with self.test_session():\n"
    "            pass",
    "what a session is asked": 'tf.Session.reset("")\nx = isinstance(s, tf.Session)',
    "a managed_session of something else": "with runner.managed_session() as s:\n    pass",
    "a config that is prepared already": "from npu_shim.npu_init import *\nc = npu_config_proto(config_proto=tf.ConfigProto())\ns = tf.Session(config=c)",
    "a helper that prepares it already": "from npu_shim.npu_init import *\ndef config():\n    return npu_config_proto()\ns = tf.Session(config=config())",
    "a server": "server = tf.train.Server(cluster, config=c)",
}


@pytest.mark.parametrize("text", list(UNTOUCHED.values()), ids=list(UNTOUCHED))
def test_other_calls_are_not_changed(text: str) -> None:
    result = Converter().convert((HEAD + text + "\n").encode())
    assert result.new is None and [d for d in result.diagnostics if d.code in ("NPU101", "NPU204")] == []


@pytest.mark.parametrize("value", ["", " 0", " None", " model"])
def test_the_session_of_keras_is_closed_before_each_return(value: str) -> None:
    script = (
        "import tensorflow as tf\ntf.compat.v1.disable_v2_behavior()\n\ndef main():\n    model = tf.keras.Sequential()\n"
        "    model.compile('adam', 'mse')\n    model.fit(x, y)\n    if quick:\n"
        f"        return{value}\n    model.evaluate(x, y)\n    return{value}\n\nmain()\n"
    )
    result = Converter(Settings(select=("NPU105",))).convert(script.encode())
    assert result.new is not None
    lines = [line.strip() for line in result.new.decode().splitlines()]
    returns = [index for index, line in enumerate(lines) if line.startswith("return")]
    assert len(returns) == 2 and lines.count("close_session(npu_keras_sess)") == 2
    assert all(lines[index - 1] == "close_session(npu_keras_sess)" for index in returns)


def test_the_session_of_keras_stays_open_where_a_return_computes_something() -> None:
    script = (
        "import tensorflow as tf\ntf.compat.v1.disable_v2_behavior()\n\ndef main():\n    model = tf.keras.Sequential()\n"
        "    model.compile('adam', 'mse')\n    model.fit(x, y)\n    return model.evaluate(x, y)\n\nmain()\n"
    )
    result = Converter(Settings(select=("NPU105",))).convert(script.encode())
    assert result.new is not None and b"close_session(npu_keras_sess)" not in result.new
    assert any("stays open" in each.message for each in result.diagnostics)


@pytest.mark.parametrize(("user", "codes"), [("test_model.py", []), ("train.py", ["NPU105"])])
def test_a_module_of_tests_gets_no_session_of_keras(user: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    script = (
        "import tensorflow as tf\ntf.compat.v1.disable_v2_behavior()\n\ndef check(x):\n    model = tf.keras.Sequential()\n"
        "    model.compile('adam', 'mse')\n    model.fit(x)\n"
    )
    (tmp_path / "checks.py").write_text(script)
    (tmp_path / user).write_text("from checks import check\n")
    project = Project([str(tmp_path / "checks.py"), str(tmp_path / user)])
    converter = Converter(Settings(select=("NPU105",)), project)
    result = converter.convert(script.encode(), str(tmp_path / "checks.py"))
    assert [each.code for each in result.diagnostics] == codes


CONFIG = "import tensorflow as tf\nconfig = tf.compat.v1.ConfigProto()\n"
SESSION = CONFIG + "s = tf.compat.v1.Session(config=config)\n"
BARE = "import tensorflow as tf\ns = tf.compat.v1.Session()\n"
INTERACTIVE = CONFIG + "s = tf.compat.v1.InteractiveSession(config=config)\n"
SET = "tf.compat.v1.keras.backend.set_session(s)\n"
FIT = "m = tf.keras.models.load_model('m')\nm.fit(x, y)\n"
STEP = "@tf.function\ndef step(x):\n    return x\n"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (SESSION + FIT, ["NPU279", "NPU121"]),
        (SESSION + "s.close()\n" + FIT, ["NPU279", "NPU121"]),
        (CONFIG + "tf.compat.v1.Session(config=config)\n" + FIT, ["NPU279", "NPU121"]),
        (BARE + FIT, ["NPU279", "NPU121"]),
        (INTERACTIVE + STEP + FIT, ["NPU279", "NPU121"]),
        (SESSION + SET + STEP + FIT, ["NPU279", "NPU121"]),
        # Keras takes these sessions in graph mode, and nothing shows that there is none.
        (SESSION + SET + FIT, ["NPU101", "NPU121"]),
        (INTERACTIVE + FIT, ["NPU101", "NPU121"]),
        # The program runs them.
        (SESSION + "s.run(y)\n" + FIT, ["NPU101", "NPU105"]),
        (BARE + "s.run(y)\n" + FIT, ["NPU101", "NPU105"]),
        (INTERACTIVE + "y.eval()\n" + FIT, ["NPU101", "NPU105"]),
        (CONFIG + "with tf.compat.v1.Session(config=config):\n    run()\n" + FIT, ["NPU101", "NPU105"]),
        (CONFIG + "s = tf.compat.v1.Session(graph=g, config=config)\n" + FIT, ["NPU101", "NPU105"]),
        (SESSION + "keep(s)\n" + FIT, ["NPU101", "NPU105"]),
        (SESSION + "tf.compat.v1.disable_eager_execution()\n" + FIT, ["NPU101", "NPU105"]),
    ],
)
def test_sessions_for_the_memory_of_gpus(text: str, codes: list[str]) -> None:
    """A session that nothing runs shows no version. Eager code needs no configuration of it."""
    settings = Settings(select=("NPU101", "NPU105", "NPU121", "NPU279"))
    result = Converter(settings).convert(text.encode())
    assert sorted(each.code for each in result.diagnostics) == sorted(codes)
    again = Converter(settings).convert(result.new or b"")
    assert again.new is None


@pytest.mark.parametrize(
    ("user", "codes"),
    [
        ("from setup_gpu import s\nimport tensorflow as tf\ns.run(y)\n", ["NPU101"]),
        ("from setup_gpu import *\ns.run(y)\n", ["NPU101"]),
        ("from setup_gpu import *\n" + FIT, ["NPU279"]),
    ],
    ids=["by its name", "with all names", "with all names, and not used"],
)
def test_a_session_that_another_file_uses_is_in_use(user: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    (tmp_path / "setup_gpu.py").write_text(SESSION)
    (tmp_path / "train.py").write_text(user)
    project = Project([str(tmp_path / "setup_gpu.py"), str(tmp_path / "train.py")])
    found = Converter(project=project).convert(SESSION.encode(), str(tmp_path / "setup_gpu.py")).diagnostics
    assert [each.code for each in found] == codes
