
def f(a):
    estimator = tf.estimator.Estimator(model_fn=model_fn)
    import tensorflow as tf

estimator = tf.estimator.Estimator(model_fn=model_fn)