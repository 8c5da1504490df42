"""The public names of TensorFlow 2.15.1, and of Keras in 2.21.0, that 2.6.5 lacks.

Made by tools/make_names_after_26.py; do not edit. Names have no root. A name stands for all names below it.
"""
from __future__ import annotations

from typing import Dict, FrozenSet

NAMES: FrozenSet[str] = frozenset('''
approx_top_k config.experimental.enable_op_determinism conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2
data.Dataset.choose_from_datasets data.Dataset.counter data.Dataset.ignore_errors data.Dataset.load
data.Dataset.ragged_batch data.Dataset.rebatch data.Dataset.rejection_resample data.Dataset.sample_from_datasets
data.Dataset.save data.Dataset.sparse_batch data.NumpyIterator data.experimental.AutotuneAlgorithm
data.experimental.AutotuneOptions data.experimental.at data.experimental.from_list
data.experimental.pad_to_cardinality data.experimental.service.CrossTrainerCache
data.experimental.service.ShardingPolicy debugging.disable_traceback_filtering debugging.enable_traceback_filtering
debugging.is_traceback_filtering_enabled distribute.ParameterServerStrategy distribute.coordinator
distribute.experimental.PreemptionCheckpointHandler distribute.experimental.PreemptionWatcher
distribute.experimental.TerminationConfig distribute.experimental.rpc dtensor dtypes.experimental
experimental.BatchableExtensionType experimental.DynamicRaggedShape experimental.ExtensionType
experimental.ExtensionTypeBatchEncoder experimental.ExtensionTypeSpec experimental.RowPartition
experimental.StructuredTensor experimental.dispatch_for_api experimental.dispatch_for_binary_elementwise_apis
experimental.dispatch_for_binary_elementwise_assert_apis experimental.dispatch_for_unary_elementwise_apis
experimental.dtensor experimental.enable_strict_mode experimental.extension_type experimental.float8_e4m3fn
experimental.float8_e5m2 experimental.int4 experimental.numpy.flatten experimental.uint4
experimental.unregister_dispatch_for fftnd ifftnd io.gfile.get_registered_schemes io.gfile.join irfftnd
is_symbolic_tensor keras.DTypePolicy keras.FloatDTypePolicy keras.Function keras.Initializer keras.InputSpec
keras.KerasTensor keras.Layer keras.Loss keras.Metric keras.Model.autotune_steps_per_execution
keras.Model.build_from_config keras.Model.compile_from_config keras.Model.compute_loss keras.Model.compute_metrics
keras.Model.distribute_reduction_method keras.Model.export keras.Model.get_build_config keras.Model.get_compile_config
keras.Model.get_metrics_result keras.Model.get_weight_paths keras.Model.jit_compile keras.Model.load_own_variables
keras.Model.save_own_variables keras.Model.steps_per_execution keras.Operation keras.Optimizer keras.Quantizer
keras.Regularizer keras.RematScope keras.StatelessScope keras.SymbolicScope keras.Variable keras.activations.celu
keras.activations.glu keras.activations.hard_shrink keras.activations.hard_silu keras.activations.hard_swish
keras.activations.hard_tanh keras.activations.leaky_relu keras.activations.log_sigmoid keras.activations.log_softmax
keras.activations.mish keras.activations.relu6 keras.activations.silu keras.activations.soft_shrink
keras.activations.sparse_plus keras.activations.sparse_sigmoid keras.activations.sparsemax
keras.activations.squareplus keras.activations.tanh_shrink keras.activations.threshold keras.applications.ConvNeXtBase
keras.applications.ConvNeXtLarge keras.applications.ConvNeXtSmall keras.applications.ConvNeXtTiny
keras.applications.ConvNeXtXLarge keras.applications.EfficientNetV2B0 keras.applications.EfficientNetV2B1
keras.applications.EfficientNetV2B2 keras.applications.EfficientNetV2B3 keras.applications.EfficientNetV2L
keras.applications.EfficientNetV2M keras.applications.EfficientNetV2S keras.applications.RegNetX002
keras.applications.RegNetX004 keras.applications.RegNetX006 keras.applications.RegNetX008
keras.applications.RegNetX016 keras.applications.RegNetX032 keras.applications.RegNetX040
keras.applications.RegNetX064 keras.applications.RegNetX080 keras.applications.RegNetX120
keras.applications.RegNetX160 keras.applications.RegNetX320 keras.applications.RegNetY002
keras.applications.RegNetY004 keras.applications.RegNetY006 keras.applications.RegNetY008
keras.applications.RegNetY016 keras.applications.RegNetY032 keras.applications.RegNetY040
keras.applications.RegNetY064 keras.applications.RegNetY080 keras.applications.RegNetY120
keras.applications.RegNetY160 keras.applications.RegNetY320 keras.applications.ResNetRS101
keras.applications.ResNetRS152 keras.applications.ResNetRS200 keras.applications.ResNetRS270
keras.applications.ResNetRS350 keras.applications.ResNetRS420 keras.applications.ResNetRS50
keras.applications.convnext keras.applications.efficientnet_v2 keras.applications.regnet keras.applications.resnet_rs
keras.backend.binary_focal_crossentropy keras.backend.categorical_focal_crossentropy keras.backend.experimental
keras.backend.is_float_dtype keras.backend.is_int_dtype keras.backend.result_type keras.backend.standardize_dtype
keras.callbacks.BackupAndRestore keras.callbacks.OrbaxCheckpoint keras.callbacks.SidecarEvaluatorModelExport
keras.callbacks.SwapEMAWeights keras.config keras.datasets.california_housing keras.datasets.reuters.get_label_names
keras.device keras.distillation keras.distribution keras.dtensor keras.dtype_policies keras.export
keras.initializers.IdentityInitializer keras.initializers.OrthogonalInitializer keras.initializers.STFT
keras.initializers.STFTInitializer keras.initializers.stft keras.layers.AdaptiveAveragePooling1D
keras.layers.AdaptiveAveragePooling2D keras.layers.AdaptiveAveragePooling3D keras.layers.AdaptiveMaxPooling1D
keras.layers.AdaptiveMaxPooling2D keras.layers.AdaptiveMaxPooling3D keras.layers.AugMix keras.layers.AutoContrast
keras.layers.ContrastLimitedAdaptiveHistogramEqualization keras.layers.CutMix keras.layers.DepthwiseConv1D
keras.layers.EinsumDense keras.layers.Equalization keras.layers.FlaxLayer keras.layers.GroupNormalization
keras.layers.GroupQueryAttention keras.layers.HashedCrossing keras.layers.Identity keras.layers.JaxLayer
keras.layers.MaxNumBoundingBoxes keras.layers.MelSpectrogram keras.layers.MixUp keras.layers.Pipeline
keras.layers.RMSNormalization keras.layers.RandAugment keras.layers.RandomBrightness
keras.layers.RandomColorDegeneration keras.layers.RandomColorJitter keras.layers.RandomElasticTransform
keras.layers.RandomErasing keras.layers.RandomGaussianBlur keras.layers.RandomGrayscale keras.layers.RandomHue
keras.layers.RandomInvert keras.layers.RandomPerspective keras.layers.RandomPosterization
keras.layers.RandomSaturation keras.layers.RandomSharpness keras.layers.RandomShear keras.layers.ReversibleEmbedding
keras.layers.STFTSpectrogram keras.layers.Solarization keras.layers.SpectralNormalization keras.layers.TFSMLayer
keras.layers.TorchModuleWrapper keras.layers.UnitNormalization keras.layers.experimental.preprocessing.HashedCrossing
keras.legacy keras.losses.BinaryFocalCrossentropy keras.losses.CTC keras.losses.CategoricalFocalCrossentropy
keras.losses.CategoricalGeneralizedCrossEntropy keras.losses.Circle keras.losses.Dice keras.losses.Tversky
keras.losses.binary_focal_crossentropy keras.losses.categorical_focal_crossentropy
keras.losses.categorical_generalized_cross_entropy keras.losses.circle keras.losses.ctc keras.losses.dice
keras.losses.tversky keras.metrics.BinaryIoU keras.metrics.ConcordanceCorrelation keras.metrics.F1Score
keras.metrics.FBetaScore keras.metrics.IoU keras.metrics.OneHotIoU keras.metrics.OneHotMeanIoU
keras.metrics.PearsonCorrelation keras.metrics.R2Score keras.metrics.binary_focal_crossentropy
keras.metrics.categorical_focal_crossentropy keras.metrics.categorical_hinge keras.metrics.concordance_correlation
keras.metrics.experimental keras.metrics.huber keras.metrics.pearson_correlation keras.mixed_precision.DTypePolicy
keras.mixed_precision.dtype_policy keras.mixed_precision.set_dtype_policy keras.models.experimental keras.name_scope
keras.ops keras.optimizers.Adafactor keras.optimizers.AdamW keras.optimizers.Lamb keras.optimizers.Lion
keras.optimizers.LossScaleOptimizer keras.optimizers.MultiOptimizer keras.optimizers.Muon
keras.optimizers.OptimizerMap keras.optimizers.ScheduleFreeAdamW keras.optimizers.experimental keras.optimizers.legacy
keras.quantizers keras.random keras.regularizers.OrthogonalRegularizer keras.regularizers.orthogonal_regularizer
keras.remat keras.saving keras.tree keras.utils.Config keras.utils.FeatureSpace keras.utils.PyDataset
keras.utils.SidecarEvaluator keras.utils.StepsPerExecutionTuner keras.utils.TimedThread
keras.utils.audio_dataset_from_directory keras.utils.bounding_boxes keras.utils.clear_session
keras.utils.disable_interactive_logging keras.utils.enable_interactive_logging
keras.utils.is_interactive_logging_enabled keras.utils.is_keras_tensor keras.utils.legacy keras.utils.pad_sequences
keras.utils.set_random_seed keras.utils.split_dataset keras.utils.standardize_dtype keras.utils.to_ordinal
keras.utils.warmstart_embedding_matrix keras.version keras.visualization keras.wrappers.SKLearnClassifier
keras.wrappers.SKLearnRegressor keras.wrappers.SKLearnTransformer losses.BinaryFocalCrossentropy
losses.CategoricalFocalCrossentropy losses.binary_focal_crossentropy losses.categorical_focal_crossentropy
math.approx_max_k math.approx_min_k metrics.BinaryIoU metrics.F1Score metrics.FBetaScore metrics.IoU metrics.OneHotIoU
metrics.OneHotMeanIoU metrics.R2Score metrics.binary_focal_crossentropy metrics.categorical_focal_crossentropy
metrics.experimental mlir.experimental.convert_saved_model mlir.experimental.convert_saved_model_v1
mlir.experimental.run_pass_pipeline mlir.experimental.tflite_to_tosa_bytecode mlir.experimental.write_bytecode
nn.approx_max_k nn.approx_min_k nn.experimental optimizers.Adafactor optimizers.AdamW optimizers.Lion
optimizers.experimental optimizers.legacy quantization.experimental ragged_fill_empty_rows ragged_fill_empty_rows_grad
random.experimental.index_shuffle random.experimental.stateless_shuffle random.fold_in random.split
random_index_shuffle rfftnd saved_model.experimental.Fingerprint saved_model.experimental.read_fingerprint security
signal.fftnd signal.ifftnd signal.irfftnd signal.rfftnd sysconfig.CXX_VERSION train.CheckpointView train.TrackableView
tsl types.experimental.AtomicFunction types.experimental.FunctionType types.experimental.PolymorphicFunction
types.experimental.SupportsTracingProtocol types.experimental.TraceType types.experimental.distributed
'''.split())
# The arguments that functions and constructors got later.
ARGUMENTS: Dict[str, str] = {
    'config.LogicalDeviceConfiguration': 'experimental_device_ordinal',
    'config.experimental.VirtualDeviceConfiguration': 'experimental_device_ordinal',
    'constant_initializer': 'support_partition',
    'data.FixedLengthRecordDataset': 'name',
    'data.TFRecordDataset': 'name',
    'data.TextLineDataset': 'name',
    'data.experimental.RandomDataset': 'name rerandomize_each_iteration',
    'data.experimental.make_csv_dataset': 'encoding',
    'data.experimental.save': 'checkpoint_args',
    'data.experimental.service.DispatcherConfig': 'worker_addresses worker_max_concurrent_snapshots worker_timeout_ms',
    'data.experimental.service.WorkerConfig': 'data_transfer_address data_transfer_protocol',
    'data.experimental.service.distribute': 'cross_trainer_cache',
    'data.experimental.service.from_dataset_id': 'cross_trainer_cache',
    'data.experimental.service.register_dataset': 'compression dataset_id',
    'distribute.TPUStrategy': 'experimental_spmd_xla_partitioning',
    'experimental.numpy.experimental_enable_numpy_behavior': 'dtype_conversion_mode',
    'experimental.tensorrt.Converter': 'allow_build_at_runtime max_workspace_size_bytes maximum_cached_engines minimum_segment_size precision_mode use_calibration',
    'fill': 'layout',
    'function': 'experimental_attributes reduce_retracing',
    'image.ssim': 'return_index_map',
    'initializers.deserialize': 'use_legacy_format',
    'initializers.serialize': 'use_legacy_format',
    'keras.activations.deserialize': 'use_legacy_format',
    'keras.activations.serialize': 'use_legacy_format',
    'keras.applications.DenseNet121': 'classifier_activation',
    'keras.applications.DenseNet169': 'classifier_activation',
    'keras.applications.DenseNet201': 'classifier_activation',
    'keras.applications.NASNetLarge': 'classifier_activation',
    'keras.applications.NASNetMobile': 'classifier_activation',
    'keras.applications.densenet.DenseNet121': 'classifier_activation',
    'keras.applications.densenet.DenseNet169': 'classifier_activation',
    'keras.applications.densenet.DenseNet201': 'classifier_activation',
    'keras.applications.nasnet.NASNetLarge': 'classifier_activation',
    'keras.applications.nasnet.NASNetMobile': 'classifier_activation',
    'keras.backend.rnn': 'return_all_outputs',
    'keras.backend.sparse_categorical_crossentropy': 'ignore_class',
    'keras.callbacks.EarlyStopping': 'start_from_epoch',
    'keras.constraints.deserialize': 'use_legacy_format',
    'keras.constraints.serialize': 'use_legacy_format',
    'keras.experimental.CosineDecay': 'warmup_steps warmup_target',
    'keras.initializers.deserialize': 'use_legacy_format',
    'keras.initializers.serialize': 'use_legacy_format',
    'keras.layers.deserialize': 'use_legacy_format',
    'keras.layers.serialize': 'use_legacy_format',
    'keras.losses.SparseCategoricalCrossentropy': 'ignore_class',
    'keras.losses.deserialize': 'use_legacy_format',
    'keras.losses.serialize': 'use_legacy_format',
    'keras.losses.sparse_categorical_crossentropy': 'ignore_class',
    'keras.metrics.CategoricalCrossentropy': 'axis',
    'keras.metrics.MeanIoU': 'axis ignore_class sparse_y_pred sparse_y_true',
    'keras.metrics.SparseCategoricalCrossentropy': 'ignore_class',
    'keras.metrics.deserialize': 'use_legacy_format',
    'keras.metrics.serialize': 'use_legacy_format',
    'keras.metrics.sparse_categorical_crossentropy': 'ignore_class',
    'keras.optimizers.schedules.CosineDecay': 'warmup_steps warmup_target',
    'keras.optimizers.schedules.deserialize': 'use_legacy_format',
    'keras.optimizers.schedules.serialize': 'use_legacy_format',
    'keras.optimizers.serialize': 'use_legacy_format',
    'keras.preprocessing.image.DirectoryIterator': 'keep_aspect_ratio',
    'keras.preprocessing.image.ImageDataGenerator': 'interpolation_order',
    'keras.preprocessing.image.NumpyArrayIterator': 'ignore_class_split',
    'keras.preprocessing.image.apply_brightness_shift': 'scale',
    'keras.preprocessing.image.load_img': 'keep_aspect_ratio',
    'keras.preprocessing.image.random_brightness': 'scale',
    'keras.preprocessing.text.hashing_trick': 'analyzer',
    'keras.preprocessing.text.one_hot': 'analyzer',
    'keras.regularizers.deserialize': 'use_legacy_format',
    'keras.regularizers.serialize': 'use_legacy_format',
    'keras.utils.load_img': 'keep_aspect_ratio',
    'keras.utils.model_to_dot': 'show_layer_activations show_trainable',
    'keras.utils.plot_model': 'show_layer_activations show_trainable',
    'keras.utils.serialize_keras_object': 'obj',
    'losses.SparseCategoricalCrossentropy': 'ignore_class',
    'losses.deserialize': 'use_legacy_format',
    'losses.serialize': 'use_legacy_format',
    'losses.sparse_categorical_crossentropy': 'ignore_class',
    'math.top_k': 'index_type',
    'metrics.CategoricalCrossentropy': 'axis',
    'metrics.MeanIoU': 'axis ignore_class sparse_y_pred sparse_y_true',
    'metrics.SparseCategoricalCrossentropy': 'ignore_class',
    'metrics.deserialize': 'use_legacy_format',
    'metrics.serialize': 'use_legacy_format',
    'metrics.sparse_categorical_crossentropy': 'ignore_class',
    'nn.embedding_lookup_sparse': 'allow_fast_lookup',
    'nn.safe_embedding_lookup_sparse': 'allow_fast_lookup',
    'nn.silu': 'beta',
    'nn.swish': 'beta',
    'nn.top_k': 'index_type',
    'numpy_function': 'stateful',
    'ones': 'layout',
    'ones_like': 'layout',
    'optimizers.serialize': 'use_legacy_format',
    'random.experimental.stateless_fold_in': 'alg',
    'random.experimental.stateless_split': 'alg',
    'random.stateless_normal': 'alg',
    'random.stateless_truncated_normal': 'alg',
    'random.stateless_uniform': 'alg',
    'saved_model.LoadOptions': 'experimental_load_function_aliases experimental_variable_policy',
    'saved_model.SaveOptions': 'experimental_image_format experimental_skip_saver',
    'sparse.segment_mean': 'sparse_gradient',
    'sparse.segment_sqrt_n': 'sparse_gradient',
    'sparse.segment_sum': 'sparse_gradient',
    'train.CheckpointOptions': 'enable_async experimental_enable_async_checkpoint experimental_write_callbacks',
    'vectorized_map': 'warn',
    'zeros': 'layout',
    'zeros_like': 'layout',
}
