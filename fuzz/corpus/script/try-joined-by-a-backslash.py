try: \
    import tensorflow as	 tf
 
finally:
 pass
config =( tf.estimator.RunConfig)(sams)