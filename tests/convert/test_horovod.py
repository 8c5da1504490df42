"""Horovod is turned over whole, with -d horovod, or not at all."""
from __future__ import annotations

import ast

import pytest

from convert_tf2npu.config import Settings
from convert_tf2npu.convert import Converter

HEAD = 'import tensorflow as tf\nimport horovod.tensorflow as hvd\n'
WITH = Converter(Settings(distributed='horovod'))
CONVERTED = {
    'nested uses': ('opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.1 * hvd.size()))\n',
                    'opt = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(0.1 * get_npu_rank_size()))\n'),
    'a rank that is handed on': ('report(hvd.rank)\n', 'report(get_npu_rank_id)\n'),
    'arguments by keyword': (
        "opt = hvd.DistributedOptimizer(name='d', optimizer=opt, sparse_as_dense=True)\n",
        'opt = npu_distributed_optimizer_wrapper(opt)\n'),
    'a compression': ('opt = hvd.DistributedOptimizer(opt, compression=hvd.Compression.fp16)\n',
                      'opt = npu_distributed_optimizer_wrapper(opt)\n'),
    'a start in the main guard': (
        "if __name__ == '__main__':\n    hvd.init()\n    train()\n",
        "if __name__ == '__main__':\n    npu_sess, npu_shutdown = init_resource()\n    train()\n"
        '    shutdown_resource(npu_sess, npu_shutdown)\n    close_session(npu_sess)\n'),
    'a mean': ('loss = hvd.allreduce(loss)\n',
               "loss = (hccl_ops.allreduce(loss, 'sum') / get_npu_rank_size())\n"),
}


@pytest.mark.parametrize('text,part', list(CONVERTED.values()), ids=list(CONVERTED))
def test_converts(text: str, part: str) -> None:
    new = WITH.convert((HEAD + text).encode()).new
    assert new is not None and part in new.decode()
    assert 'hvd' not in new.decode() and 'horovod' not in new.decode()
    assert WITH.convert(new).new is None
    ast.parse(new)


@pytest.mark.parametrize('text', [
    'opt = hvd.DistributedOptimizer(opt, op=hvd.Adasum)\n',
    'hvd.init(comm)\n',
    'f = hvd.broadcast_variables\n',
    'hvd.allreduce(x, average=flag)\n',
    'hvd.rank()\nx = hvd.Compression.fp16\n',
    'opt = hvd.DistributedOptimizer(*a)\n',
    'opt = hvd.DistributedOptimizer(opt,  # the optimizer\n    name="a")\n',
])
def test_one_use_without_a_counterpart_keeps_the_whole_file(text: str) -> None:
    result = WITH.convert((HEAD + text).encode())
    assert result.new is None
    assert any('Horovod stays in this file' in d.message for d in result.diagnostics)


@pytest.mark.parametrize('text', [t for t, _ in CONVERTED.values()], ids=list(CONVERTED))
def test_without_the_option_horovod_stays(text: str) -> None:
    assert Converter().convert((HEAD + text).encode()).new is None
