#!/usr/bin/env python
import os, horovod.tensorflow as hvd
import tensorflow as tf

compression = hvd.Compression.fp16 if FLAGS.half else hvd.Compression.tf
opt = hvd.DistributedOptimizer(opt, compression=compression, op=hvd.Average)
total = hvd.allreduce(loss, average=False)
mean = hvd.allreduce(tensor=loss, name='loss')
first = hvd.broadcast(tf.nn.dropout(x, 0.5), root_rank=0)
with tfSession() as sess:
  sess.run(hvd.broadcast_global_variables(0))
