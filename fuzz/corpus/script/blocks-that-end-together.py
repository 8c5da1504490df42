import tensorflow as tf
import horovod.tensorflow as hvd
hvd.init()
if x:
    
    hvd.init()