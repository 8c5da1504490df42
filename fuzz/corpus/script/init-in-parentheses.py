import horovod.tensorflow as hvd

(hvd.init())