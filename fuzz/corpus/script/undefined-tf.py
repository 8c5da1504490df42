from tensorflow.contrib.mixed_precision import FixedLossScaleManager as Fixed, LossScaleOptimizer

opt = LossScaleOptimizer(opt, Fixed(1024))
other = tf.train.experimental.MixedPrecisionLossScaleOptimizer(other, 128)
other = tf.train.experimental.MixedPrecisionLossScaleOptimizer(other, 128()
)