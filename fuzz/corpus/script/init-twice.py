hvd.init()
print(hvd.rank(), hvd.size())
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
print(hvd.rank(), hvd.size())
