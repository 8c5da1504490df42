"""Towers: the number of GPUs, the flag that sets it, and loops that are no towers."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

TF = "import tensorflow as tf\n"
LOOP = "for {} in {}:\n    with tf.device({}):\n        towers.append(optimizer.compute_gradients(loss_of(parts)))\n"
NUMBER = "'/gpu:%d' % i"


def found(text: str, code: str = "NPU256", **settings: str) -> list[str]:
    result = Converter(Settings(select=(code,), **settings)).convert((TF + text).encode())
    return [each.message for each in result.diagnostics if each.kind == "finding"]


@pytest.mark.parametrize(
    "before,target,iterated,device,advice",
    [
        ("tf.flags.DEFINE_integer('num_gpus', 4, '')\n", "i", "range(FLAGS.num_gpus)", NUMBER, "Run with --num_gpus=1"),
        ("p.add_argument('-n', '--nr-gpu', type=int)\n", "i", "range(args.nr_gpu)", NUMBER, "Run with --nr-gpu=1"),
        (
            "tf.flags.DEFINE_string('gpus', '0,1', '')\nids = FLAGS.gpus.split(',')\n",
            "i, gpu",
            "enumerate(ids)",
            "'/gpu:' + gpu",
            "Name one device in --gpus",
        ),
        ("GPUS = 2\n", "i", "range(GPUS)", NUMBER, "Set GPUS to 1"),
        ("", "i", "range(self.gpus)", NUMBER, "Set self.gpus to 1"),
        ("", "d", "config.devices", "d", "Keep one element in config.devices"),
        ("", "d", "['/gpu:0', '/gpu:1']", "d", "Build one tower"),
        (
            "tf.flags.DEFINE_integer('shards', 4, '')\nxs = [tf.split(x, FLAGS.shards) for x in xs]\n",
            "i, x",
            "enumerate(zip(*xs))",
            "assign_to_gpu(i, '/gpu:0')",
            "Run with --shards=1",
        ),
    ],
)
def test_the_advice_names_what_sets_the_number_of_gpus(
    before: str, target: str, iterated: str, device: str, advice: str
) -> None:
    [message] = found(before + LOOP.format(target, iterated, device))
    assert f". {advice}, and start one rank per device" in message


def test_the_flag_may_be_defined_in_another_file(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deploy.py").write_text(
        TF
        + "def build(config):\n    "
        + "    ".join(LOOP.format("i", "range(config.num_clones)", "config.device(i)").splitlines(True))
    )
    (tmp_path / "train.py").write_text(TF + "import deploy\ntf.app.flags.DEFINE_integer('num_clones', 1, '')\n")
    (tmp_path / "other.py").write_text("parser.add_argument('--num-clones')\n")
    main(["-i", str(tmp_path), "--select", "NPU256", "--check"])
    assert "Run with --num_clones=1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "GPUS = 1\n" + LOOP.format("i", "range(GPUS)", NUMBER),
        LOOP.format("i", "range(1)", NUMBER),
        LOOP.format("i", "range(layers)", "'/gpu:%d' % (i % gpus)"),
        "for i in range(layers):\n    with tf.device('/gpu:%d' % i):\n        cells.append(tf.nn.rnn_cell.LSTMCell(8))\n",
        "for i, part in enumerate(parts):\n    with tf.device('/gpu:%d' % FLAGS.gpu):\n        losses.append(loss_of(part))\n",
        "for i, grads in enumerate(zip(*all_grads)):\n    with tf.device(devices[i]):\n"
        "        ops.append(optimizer.apply_gradients(grads))\n",
        "class TowerTest(tf.test.TestCase):\n    def test(self):\n        "
        + "        ".join(LOOP.format("i", "range(4)", NUMBER).splitlines(True)),
    ],
)
def test_one_tower_and_other_loops_are_not_reported(text: str) -> None:
    assert found(text) == []


def test_each_tower_has_its_own_all_reduce() -> None:
    text = LOOP.format("i", "range(4)", NUMBER)
    assert "its own all-reduce" in found(text, distributed="tf_strategy")[0]
    assert "its own all-reduce" not in found(text)[0]


MEAN = "def mean(towers):\n    return [(sum(g for g, _ in s) / len(s), s[0][1]) for s in zip(*towers)]\n"
ADAM = MEAN + "opt = tf.train.AdamOptimizer(0.1)\n"
WRAPPED, ONCE = "npu_distributed_optimizer_wrapper(", "opt.apply_gradients([(npu_allreduce(g), v) for g, v in "


def converted(text: str) -> str:
    converter = Converter(Settings(distributed="tf_strategy"))
    new = converter.convert((TF + text).encode()).new
    assert new is not None and converter.convert(new).new is None
    return new.decode()


@pytest.mark.parametrize(
    "text,pairs",
    [
        (
            "towers = [opt.compute_gradients(f(i)) for i in range(2)]\nopt.apply_gradients(mean(towers))\n",
            "mean(towers)",
        ),
        (
            "def tower(i):\n    return opt.compute_gradients(f(i))\n"
            "opt.apply_gradients(mean([tower(i) for i in range(2)]), step)\n",
            "mean([tower(i) for i in range(2)])",
        ),
        (
            "towers = []\nfor i in range(2):\n    pairs = opt.compute_gradients(f(i))\n"
            "    towers.append([(tf.clip_by_norm(g, 1.0), v) for g, v in pairs])\n"
            "opt.apply_gradients(global_step=step, grads_and_vars=mean(towers))\n",
            "mean(towers)",
        ),
        (
            "towers = []\nfor i in range(2):\n    towers.append(tf.gradients(f(i), vs))\n"
            "means = [tf.add_n(same) / 2 for same in zip(*towers)]\nopt.apply_gradients(zip(means, vs))\n",
            "zip(means, vs)",
        ),
    ],
)
def test_gradients_of_towers_are_averaged_once_where_they_are_applied(text: str, pairs: str) -> None:
    new = converted(ADAM + text)
    assert WRAPPED not in new and new.count("npu_allreduce") == 1
    assert ONCE.split("(", 1)[1] + pairs + "]" in new


@pytest.mark.parametrize(
    "text",
    [
        "opt.apply_gradients(opt.compute_gradients(f(0)))\n",
        "for i in range(2):\n    opt.apply_gradients(opt.compute_gradients(f(i)))\n",
        # clipped behind the average of the towers
        "towers = [opt.compute_gradients(f(i)) for i in range(2)]\n"
        "opt.apply_gradients([(tf.clip_by_norm(g, 1.0), v) for g, v in mean(towers)])\n",
        "towers = [opt.compute_gradients(f(i)) for i in range(2)]\nopt.apply_gradients(mean(towers))\nopt.minimize(f(2))\n",
        "towers = [opt.compute_gradients(f(i)) for i in range(2)]\nopt.apply_gradients(mean(towers))\n"
        "tf.train.AdamOptimizer().apply_gradients(towers[0])\n",
        "towers = [opt.compute_gradients(f(i)) for i in range(2)]\n"
        "opt.apply_gradients((g, v) for g, v in mean(towers))\n",
    ],
)
def test_other_optimizers_average_what_they_compute(text: str) -> None:
    new = converted(ADAM + text)
    assert WRAPPED in new and "npu_allreduce" not in new


UPDATES = "vs = tf.trainable_variables()\ngs = {}\nop = [tf.assign_sub(v, g) for g, v in zip(gs, vs)]\n"


@pytest.mark.parametrize(
    "text,count",
    [
        (UPDATES.format("tf.gradients(loss, vs)"), 1),
        (UPDATES.format("npu_allreduce(tf.gradients(loss, vs))"), 0),
        (UPDATES.format("tf.gradients(loss, vs)") + "more = tf.gradients(gs, vs)\n", 1),  # the second ones
        (UPDATES.format("tf.gradients(loss, vs)") + "tf.train.AdamOptimizer().minimize(loss)\n", 0),
        (UPDATES.format("tf.gradients(loss, vs)").replace("tf.trainable_variables()", "[images]"), 0),
    ],
)
def test_gradients_that_no_optimizer_applies_are_reported(text: str, count: int) -> None:
    text = "from npu_shim.npu_init import *\n" + text
    assert len(found(text, "NPU305", distributed="tf_strategy")) == count


def test_towers_without_an_optimizer_have_no_all_reduce() -> None:
    text = LOOP.format("i", "range(4)", NUMBER).replace("optimizer.compute_gradients(", "tf.gradients(vs, ")
    assert "its own all-reduce" not in found(text, distributed="tf_strategy")[0]


def test_a_scope_for_each_tower_is_a_tower() -> None:
    text = "with tf.device('/cpu:0'):\n    pass\nfor i in range(len(self.devices)):\n"
    text += "    with tf.name_scope('tower_%d' % i):\n        results.append(self.forward_pass(i))\n"
    assert "Keep one element in self.devices" in found(text)[0]


@pytest.mark.parametrize(
    "guard,count", [("if args.gpus > 1:", 1), ("if len(gpus) > 1:", 0), ("if K.gpu_count > 1:", 0)]
)
def test_a_multi_gpu_model_under_a_flag_is_reported(guard: str, count: int) -> None:
    text = "parser.add_argument('--gpus', type=int)\ngpus = tf.config.list_physical_devices('GPU')\n"
    text += guard + "\n    model = tf.keras.utils.multi_gpu_model(model, 2)\n"
    assert len(found(text, "NPU212")) == count


@pytest.mark.parametrize(
    "text,fix",
    [
        ("if data_format is None:\n    data_format = CHOICE\n", "Run with --data_format=channels_first"),
        ("data_format = CHOICE\n", "Set it to 'channels_first'"),
    ],
)
def test_the_flag_of_a_data_format_helps_only_where_the_script_asks_without_it(text: str, fix: str) -> None:
    choice = "'channels_first' if tf.test.is_gpu_available() else 'channels_last'"
    [message] = found("tf.flags.DEFINE_enum('data_format', None, [], '')\n" + text.replace("CHOICE", choice), "NPU219")
    assert message.endswith(fix)


@pytest.mark.parametrize("test", ["gpus", "len(gpus) > 0", "not gpus", "bool(gpus) and amp"])
def test_gpu_tests(test: str) -> None:
    text = "gpus = tf.config.experimental.list_physical_devices('GPU')\n"
    branches = ("'float32'", "'float16'") if test.startswith("not") else ("'float16'", "'float32'")
    assert len(found(text + f"dtype = {branches[0]} if {test} else {branches[1]}\n", "NPU219")) == 1
    assert found(text + f"dtype = {branches[1]} if {test} else {branches[0]}\n", "NPU219") == []


@pytest.mark.parametrize(
    "text,subjects",
    [
        ("import os\nos.environ['TF_CUDNN_DETERMINISTIC'] = 'true'\n", ["TF_CUDNN_DETERMINISTIC"]),
        ("import os\nos.environ.setdefault('NCCL_DEBUG', 'INFO')\n", ["NCCL_DEBUG"]),
        ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = os.environ['TF_GPU_ALLOCATOR'] = '0'\n", []),
        ("import os\nos.system('nvidia-smi -q')\nos.popen('/usr/bin/nvidia-smi')\n", ["nvidia-smi"]),
        ("import subprocess\nsubprocess.run(['grep', 'nvidia-smi'])\n", []),
        ("import nvtx.plugins.tf as nvtx\nfrom nvidia.dali import ops\n", ["nvtx", "nvidia.dali"]),
        ("try:\n    import GPUtil\nexcept ImportError:\n    GPUtil = None\n", []),
    ],
)
def test_tools_for_gpus(text: str, subjects: list[str]) -> None:
    assert [message.split()[0] for message in found(text, "NPU249")] == subjects


@pytest.mark.parametrize(
    "test", ["tf.test.gpu_device_name() != '/device:GPU:0'", "not tf.test.is_gpu_available()", "not found_gpu"]
)
def test_scripts_that_end_without_a_gpu(test: str) -> None:
    text = f"found_gpu = tf.test.is_built_with_cuda()\nif {test}:\n    raise SystemError('no GPU')\n"
    assert found(text, "NPU120") == ["the script ends without a GPU. Remove this test"]
