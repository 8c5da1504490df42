"""Types of expressions, inferred from what makes the values."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.project.project import Project
from convert_tf2npu.semantics.module_index import AnyType, Instance
from convert_tf2npu.semantics.tf_types import Type

HEAD = "import tensorflow as tf\n"


def type_of_probe(text: str, path: str = "", project: Project | None = None) -> AnyType | None:
    """The type of x in the call of probe(x)."""
    module = (project or Project()).understand((HEAD + text).encode(), path)
    call = next(c for c in module.names.calls if getattr(c.node.func, "id", "") == "probe")
    return module.types.type_of(call.node.args[0], call.where)


LOAD = "import tensorflow_datasets as tfds\n"
MADE = {
    Type.DATASETS: [LOAD + "probe(tfds.load('mnist'))", LOAD + "d, i = tfds.load('mnist', with_info=True)\nprobe(d)"],
    Type.DATASET: [
        LOAD + "probe(tfds.load('mnist', split='train'))",
        LOAD + "probe(tfds.builder('mnist').as_dataset(split='train'))",
        LOAD + "d, e = tfds.load('mnist', split=['train', 'test'])\nprobe(e)",
        LOAD + "d, i = tfds.load('mnist', split='train', with_info=True)\nprobe(d)",
        "probe(tf.data.TFRecordDataset(f))",
        "d = tf.data.Dataset.range(3).map(f)\nprobe(d)",
        "d = tf.data.Dataset.range(3)\nfor f in fs:\n    d = d.map(f)\nprobe(d)",
        "d = tf.data.Dataset.range(3)\nwhile a:\n    if b:\n        d = d.map(f)\n    else:\n"
        "        d = d.shuffle(3)\nprobe(d)",
        "if a:\n    d = tf.data.Dataset.range(3)\nelse:\n    d = tf.data.TextLineDataset(f)\nprobe(d)",
        "d = None\nif a:\n    d = tf.data.Dataset.range(3)\nprobe(d)",
        "d = tf.data.Dataset.range(3) if a else tf.data.TextLineDataset(f)\nprobe(d)",
        "probe(tf.data.Dataset.range(3).apply(tf.data.experimental.shuffle_and_repeat(8)))",
        "probe(load().apply(tf.data.experimental.unbatch()).shuffle(8))",
        "from tensorflow.contrib.data import shuffle_and_repeat as s\nprobe(load().apply(s(8)))",
        "def read():\n    return tf.data.Dataset.range(3)\nprobe(read())",
        "def read(n):\n    if n:\n        return read(n - 1).repeat()\n    return tf.data.Dataset.range(3)\nprobe(read(1))",
        "def read():\n    return tf.data.Dataset.range(3), 3\nd, n = read()\nprobe(d)",
        "def read():\n    a = tf.data.Dataset.range(3)\n    return (a, a.take(1)), 3\n(d, e), n = read()\nprobe(e)",
        "def f(d: tf.data.Dataset):\n    probe(d)",
        "from typing import Optional\ndef f(d: Optional[tf.data.Dataset] = None):\n    probe(d)",
        'def f(d: "tf.data.Dataset"):\n    probe(d)',
        "def f(d):\n    d = d.map(g)\n    i = d.make_one_shot_iterator()\n    probe(d)",
        "def f(d):\n    d.shard(2, 0)\n    probe(d)",
        "def f(d):\n    probe(d)\n    return d.map(g).interleave(h)",
        "def f(d):\n    probe(d)\nf(tf.data.Dataset.range(3))\nf(d=tf.data.TextLineDataset(p))",
        "def f(d=None):\n    probe(d)\nf(tf.data.Dataset.range(3))\nf()",
        "class A:\n    def __init__(self):\n        self.d = tf.data.Dataset.range(3)\n    def f(self):\n"
        "        probe(self.d)",
        "class A:\n    def make(self):\n        return tf.data.Dataset.range(3)\n    def f(self):\n"
        "        probe(self.make())",
        "class A:\n    def make(self):\n        return tf.data.Dataset.range(3)\na = A()\nprobe(a.make().batch(2))",
    ],
    Type.MODEL: [
        "probe(tf.keras.Sequential([]))",
        "from typing import Callable\ndef f(make: Callable[..., tf.keras.Model]):\n    model = make()\n    probe(model)",
        "i = tf.keras.Input([3])\nprobe(tf.keras.Model(i, tf.keras.layers.Dense(1)(i)))",
        "from tensorflow.keras.models import Model\nprobe(Model(inputs=i, outputs=o))",
        "from tensorflow.python.keras.models import Sequential\nprobe(Sequential())",
        "from tensorflow.keras.applications.resnet50 import ResNet50\nprobe(ResNet50(weights=None))",
        "class Net(tf.keras.Model):\n    pass\nprobe(Net())",
        "tf.model = tf.keras.Sequential()\nprobe(tf.model)",
        "class A:\n    pass\na = A()\na.net = tf.keras.Sequential()\ndef f():\n    probe(a.net)",
        "class Net(tf.keras.Model):\n    def f(self):\n        probe(self)",
        "class Base(tf.keras.Model):\n    pass\nclass Net(Base):\n    pass\nprobe(Net())",
        "def build(n):\n    m = tf.keras.Sequential()\n    m.add(n)\n    return m\nm = build(3)\nprobe(m)",
        "class T:\n    def __init__(self):\n        self.model = None\n    def build(self):\n"
        "        self.model = tf.keras.Sequential()\n    def f(self):\n        probe(self.model)",
        "class T:\n    def __init__(self):\n        self.model = tf.keras.Sequential()\nt = T()\nprobe(t.model)",
        "def build():\n    return tf.keras.Sequential(), tf.keras.optimizers.Adam()\nm, o = build()\nprobe(m)",
        "class T:\n    def build(self):\n        self.model, self.n = make()\n    def f(self):\n"
        "        probe(self.model)\ndef make():\n    return tf.keras.Sequential(), 3",
        "def train(model):\n    probe(model)\ntrain(tf.keras.Sequential())",
        "probe(tf.keras.models.load_model(p))",
    ],
    Type.KERAS_OPTIMIZER: [
        "probe(tf.keras.optimizers.Adam(0.1))",
        "from tensorflow.keras.optimizers import SGD\no = SGD()\nprobe(o)",
    ],
    Type.OPTIMIZER: [
        "probe(tf.train.AdamOptimizer(0.1))",
        "probe(tf.contrib.opt.LazyAdamOptimizer())",
        "class Lamb(tf.train.Optimizer):\n    pass\nprobe(Lamb(0.1))",
        "if a:\n    o = tf.train.AdamOptimizer(0.1)\nelse:\n    o = tf.train.MomentumOptimizer(1, 0.9)\nprobe(o)",
    ],
    Type.ESTIMATOR: [
        "probe(tf.estimator.Estimator(f))",
        "probe(tf.estimator.DNNClassifier([3], c))",
        "class E(tf.estimator.Estimator):\n    pass\nprobe(E(f))",
        "probe(tf.keras.estimator.model_to_estimator(m))",
        "probe(tf.contrib.tpu.TPUEstimator(f))",
    ],
    Type.RUN_CONFIG: [
        "probe(tf.estimator.RunConfig())",
        "probe(tf.contrib.learn.RunConfig())",
        "c = tf.contrib.tpu.RunConfig()\nprobe(c.replace(model_dir=d))",
        "class C(tf.estimator.RunConfig):\n    pass\nprobe(C())",
    ],
    Type.PREPARED_RUN_CONFIG: ["from npu_shim.npu_init import *\nprobe(npu_run_config_init(run_config=c))"],
    Type.GRAPH: [
        "probe(tf.Graph())",
        "with tf.Graph().as_default() as g:\n    probe(g)",
        "probe(tf.get_default_graph())",
        "sess = tf.Session()\nprobe(sess.graph)",
        "with tf.Session() as sess:\n    probe(sess.graph)",
        "class A:\n    def __init__(self):\n        self.graph = tf.Graph()\n    def f(self):\n"
        "        with self.graph.as_default():\n            probe(self.graph)",
    ],
    Type.SESSION: [
        "probe(tf.Session())",
        "class S(tf.Session):\n    pass\nprobe(S())",
        "with tf.Session() as sess:\n    probe(sess)",
    ],
    Type.SUPERVISOR: ["probe(tf.train.Supervisor())"],
    Type.SESSION_MANAGER: ["sv = tf.train.Supervisor()\nprobe(sv.session_manager)"],
    Type.TEST_CASE: ["class T(tf.test.TestCase):\n    def test(self):\n        probe(self)"],
}
UNKNOWN = [
    "from typing import List\ndef f(models: List[tf.keras.Model]):\n    probe(models())",
    "if a:\n    d = tf.data.Dataset.range(3)\nelse:\n    d = load()\nprobe(d)",
    "def f(d):\n    probe(d)",
    "def f(d):\n    probe(d)\nf(tf.data.Dataset.range(3))\nf(load())",
    "def f(d):\n    probe(d)\nf(tf.data.Dataset.range(3))\nrun(f)",
    "def f(d):\n    probe(d)\nf(*arguments)",
    "def f(d):\n    d.batch(3)\n    probe(d)",
    "probe(load().apply(tf.data.experimental.cardinality(d)))",
    "probe(load().apply(f))",
    "def read():\n    return tf.data.Dataset.range(3), 3\nd = read()\nprobe(d)",
    "class A:\n    def f(self, m):\n        self.model = m\n        probe(self.model)",
    "class A:\n    def f(self):\n        self.model = tf.keras.Sequential()\n        self.model = load()\n"
    "        probe(self.model)",
    "class A:\n    def f(self):\n        self.m = tf.keras.Sequential()\nclass B:\n    def f(self):\n"
    "        probe(self.m)",
    "probe(tf.data.Dataset.range(3).make_one_shot_iterator())",
    "probe(tf.keras.layers.Dense(3))",
    "class A(A):\n    pass\nprobe(A().x)",
    "x = x\nprobe(x)",
]
CASES = [(text, kind) for kind, texts in MADE.items() for text in texts]


@pytest.mark.parametrize("text,kind", CASES)
def test_the_type_is_known(text: str, kind: Type) -> None:
    assert type_of_probe(text) is kind


@pytest.mark.parametrize("text", UNKNOWN)
def test_an_uncertain_expression_has_no_type(text: str) -> None:
    assert type_of_probe(text) is None


def test_an_object_of_a_class_of_the_project_has_its_class() -> None:
    found = type_of_probe("class Trainer:\n    pass\nprobe(Trainer())")
    assert isinstance(found, Instance) and found.owner.name == "Trainer"


ACROSS: dict[str, tuple[Type, dict[str, str]]] = {
    "a model of a helper": (
        Type.MODEL,
        {
            "nets.py": "def build():\n    m = tf.keras.Sequential()\n    return m, 3\n",
            "use.py": "import nets\nm, n = nets.build()\nprobe(m)\n",
        },
    ),
    "a model of a trainer": (
        Type.MODEL,
        {
            "base.py": "class Trainer:\n    def __init__(self):\n        self.model = self.build()\n    def build(self):\n"
            "        return tf.keras.Sequential()\n",
            "use.py": "from base import Trainer\nt = Trainer()\nprobe(t.model)\n",
        },
    ),
    "a model of a class made from one made from Model": (
        Type.MODEL,
        {
            "a.py": "class A(tf.keras.Model):\n    pass\n",
            "b.py": "import a\nclass B(a.A):\n    pass\n",
            "use.py": "from b import B\nprobe(B())\n",
        },
    ),
    "a model of a variable of a module": (
        Type.MODEL,
        {
            "nets.py": "model = tf.keras.Sequential()\n",
            "use.py": "from nets import model\nprobe(model)\n",
        },
    ),
    "a model of an attribute of a module": (
        Type.MODEL,
        {
            "nets.py": "model = tf.keras.Sequential()\n",
            "use.py": "import nets\nprobe(nets.model)\n",
        },
    ),
    "a model of a base class": (
        Type.MODEL,
        {
            "base.py": "class Base:\n    def __init__(self):\n        self.model = tf.keras.Sequential()\n",
            "use.py": "from base import Base\nclass T(Base):\n    def f(self):\n        probe(self.model)\n",
        },
    ),
    "a dataset that another file hands over": (
        Type.DATASET,
        {
            "main.py": "import use\nuse.train(tf.data.Dataset.range(3))\n",
            "use.py": "def train(d):\n    probe(d)\n",
        },
    ),
    "a dataset that another file hands over, past a package": (
        Type.DATASET,
        {
            "pkg/__init__.py": "from .use import train\n",
            "main.py": "from pkg import train\ntrain(d=tf.data.Dataset.range(3))\n",
            "pkg/use.py": "def train(d):\n    probe(d)\n",
        },
    ),
}


def project_of(folder: pathlib.Path, files: dict[str, str]) -> Project:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text)
    return Project([str(folder / name) for name in files])


@pytest.mark.parametrize("case", list(ACROSS))
def test_the_type_is_known_across_files(case: str, tmp_path: pathlib.Path) -> None:
    kind, files = ACROSS[case]
    project = project_of(tmp_path, files)
    path = str(tmp_path / list(files)[-1])
    assert type_of_probe(list(files.values())[-1], path, project) is kind


@pytest.mark.parametrize(
    "other",
    [
        "import use\nuse.train(load())\n",
        "import use\nrun(use.train)\n",
        "from use import *\ntrain(load())\n",
        "import use\nx.train(3)\n",
    ],
    ids=["something else", "the function itself", "by a star", "perhaps"],
)
def test_arguments_from_other_files_count(other: str, tmp_path: pathlib.Path) -> None:
    files = {
        "main.py": "from use import train\ntrain(tf.data.Dataset.range(3))\n",
        "other.py": other,
        "use.py": "def train(d):\n    probe(d)\n",
    }
    project = project_of(tmp_path, files)
    assert type_of_probe(files["use.py"], str(tmp_path / "use.py"), project) is None
