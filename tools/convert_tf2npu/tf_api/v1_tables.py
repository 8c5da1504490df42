"""The fate of the names of TensorFlow 1.15.5 in TensorFlow 2.6.5, 2.15.1, 2.21.0.

Made by tools/make_v1_names.py; do not edit. Names have no root. A module stands for all of its names.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, Tuple

# TensorFlow 2 has them under tf.compat.v1 only.
MISSING: FrozenSet[str] = frozenset('''
AUTO_REUSE AttrValue COMPILER_VERSION CXX11_ABI_FLAG ConditionalAccumulator ConditionalAccumulatorBase ConfigProto
Dimension Event FIFOQueue FixedLenFeature FixedLenSequenceFeature FixedLengthRecordReader GIT_VERSION GPUOptions
GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER GraphDef GraphKeys GraphOptions
HistogramProto IdentityReader InteractiveSession LMDBReader LogMessage MONOLITHIC_BUILD MetaGraphDef NameAttrList
NoGradient NodeDef NotDifferentiable OpError OptimizerOptions PaddingFIFOQueue Print PriorityQueue QUANTIZED_DTYPES
QueueBase RandomShuffleQueue ReaderBase RunMetadata RunOptions Session SessionLog SparseConditionalAccumulator
SparseFeature SparseTensorValue Summary SummaryMetadata TFRecordReader TensorInfo TextLineReader VERSION VarLenFeature
VariableScope WholeFileReader accumulate_n add_check_numerics_ops add_to_collection add_to_collections all_variables
angle app arg_max arg_min assert_greater_equal assert_integer assert_less_equal assert_near assert_negative
assert_non_negative assert_non_positive assert_none_equal assert_positive assert_proper_iterable assert_rank_at_least
assert_rank_in assert_same_float_dtype assert_scalar assert_type assert_variables_initialized assign assign_add
assign_sub batch_gather batch_scatter_update batch_to_space_nd betainc bincount ceil check_numerics cholesky
cholesky_solve clip_by_average_norm colocate_with confusion_matrix conj container control_flow_v2_enabled
convert_to_tensor_or_indexed_slices convert_to_tensor_or_sparse_tensor count_nonzero count_up_to
create_partitioned_variables cross cumprod data.experimental.DatasetStructure data.experimental.OptionalStructure
data.experimental.RaggedTensorStructure data.experimental.SparseTensorStructure data.experimental.Structure
data.experimental.TensorArrayStructure data.experimental.TensorStructure
data.experimental.map_and_batch_with_legacy_function data.get_output_classes data.get_output_shapes
data.get_output_types data.make_initializable_iterator data.make_one_shot_iterator debugging.is_finite
debugging.is_inf debugging.is_nan debugging.is_non_decreasing debugging.is_strictly_increasing decode_base64
decode_compressed decode_csv decode_json_example decode_raw delete_session_tensor depth_to_space dequantize
deserialize_many_sparse diag diag_part digamma dimension_at_index dimension_value disable_control_flow_v2
disable_eager_execution disable_resource_variables disable_tensor_equality disable_v2_behavior disable_v2_tensorshape
distribute.get_loss_reduction distributions div div_no_nan dtypes.as_string enable_control_flow_v2
enable_eager_execution enable_resource_variables enable_tensor_equality enable_v2_behavior enable_v2_tensorshape
encode_base64 erf erfc errors.error_code_from_exception_type errors.exception_type_from_error_code
errors.raise_exception_on_not_ok_status estimator.experimental.KMeans estimator.experimental.dnn_logit_fn_builder
estimator.experimental.linear_logit_fn_builder estimator.inputs estimator.tpu experimental.function_executor_type
experimental.output_all_intermediates expm1 extract_image_patches fake_quant_with_min_max_args
fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient
fake_quant_with_min_max_vars_per_channel fake_quant_with_min_max_vars_per_channel_gradient feature_column.input_layer
feature_column.linear_model feature_column.shared_embedding_columns fft fft2d fft3d fixed_size_partitioner flags
floor_div floordiv floormod get_collection get_collection_ref get_default_graph get_default_session get_local_variable
get_seed get_session_handle get_session_tensor get_variable get_variable_scope gfile global_norm global_variables
global_variables_initializer glorot_normal_initializer glorot_uniform_initializer
graph_util.convert_variables_to_constants graph_util.extract_sub_graph graph_util.must_run_on_cpu
graph_util.remove_training_nodes graph_util.tensor_shape_from_node_def_name ifft ifft2d ifft3d igamma igammac imag
image.extract_image_patches image.resize_area image.resize_bicubic image.resize_bilinear
image.resize_image_with_crop_or_pad image.resize_image_with_pad image.resize_images image.resize_nearest_neighbor
image.transpose_image initialize_all_tables initialize_all_variables initialize_local_variables initialize_variables
initializers.global_variables initializers.local_variables initializers.tables_initializer
initializers.uniform_unit_scaling initializers.variables invert_permutation io.PaddingFIFOQueue io.PriorityQueue
io.QueueBase io.RandomShuffleQueue io.TFRecordCompressionType io.tf_record_iterator is_finite is_inf is_nan
is_non_decreasing is_numeric_tensor is_strictly_increasing is_variable_initialized keras.backend.get_session
keras.backend.set_session keras.initializers.normal keras.initializers.uniform keras.layers.CuDNNGRU
keras.layers.CuDNNLSTM keras.losses.cosine keras.losses.cosine_proximity keras.metrics.cosine
keras.metrics.cosine_proximity keras.optimizers.schedules.ExponentialDecay keras.optimizers.schedules.InverseTimeDecay
keras.optimizers.schedules.LearningRateSchedule keras.optimizers.schedules.PiecewiseConstantDecay
keras.optimizers.schedules.PolynomialDecay keras.optimizers.schedules.deserialize keras.optimizers.schedules.serialize
layers lbeta lgamma lin_space linalg.transpose lite.OpHint lite.TocoConverter lite.constants
lite.experimental.convert_op_hints_to_stubs lite.toco_convert load_file_system_library local_variables
local_variables_initializer log log1p log_sigmoid logging logical_xor losses.absolute_difference losses.add_loss
losses.compute_weighted_loss losses.cosine_distance losses.get_losses losses.get_regularization_loss
losses.get_regularization_losses losses.get_total_loss losses.hinge_loss losses.huber_loss losses.log_loss
losses.mean_pairwise_squared_error losses.sigmoid_cross_entropy losses.softmax_cross_entropy
losses.sparse_softmax_cross_entropy make_template manip matching_files matrix_band_part matrix_determinant matrix_diag
matrix_diag_part matrix_inverse matrix_set_diag matrix_solve matrix_solve_ls matrix_transpose matrix_triangular_solve
metrics.accuracy metrics.auc metrics.average_precision_at_k metrics.false_negatives
metrics.false_negatives_at_thresholds metrics.false_positives metrics.false_positives_at_thresholds metrics.mean
metrics.mean_cosine_distance metrics.mean_iou metrics.mean_per_class_accuracy metrics.mean_relative_error
metrics.mean_tensor metrics.percentage_below metrics.precision metrics.precision_at_k metrics.precision_at_thresholds
metrics.precision_at_top_k metrics.recall metrics.recall_at_k metrics.recall_at_thresholds metrics.recall_at_top_k
metrics.root_mean_squared_error metrics.sensitivity_at_specificity metrics.sparse_average_precision_at_k
metrics.sparse_precision_at_k metrics.specificity_at_sensitivity metrics.true_negatives
metrics.true_negatives_at_thresholds metrics.true_positives metrics.true_positives_at_thresholds
min_max_variable_partitioner mod model_variables moving_average_variables multinomial nn.avg_pool_v2
nn.bidirectional_dynamic_rnn nn.conv2d_backprop_filter nn.conv2d_backprop_input nn.conv3d_backprop_filter
nn.conv3d_backprop_filter_v2 nn.ctc_beam_search_decoder_v2 nn.ctc_loss_v2 nn.depthwise_conv2d_native
nn.depthwise_conv2d_native_backprop_filter nn.depthwise_conv2d_native_backprop_input nn.dynamic_rnn
nn.fused_batch_norm nn.log_uniform_candidate_sampler nn.max_pool_v2 nn.quantized_avg_pool nn.quantized_conv2d
nn.quantized_max_pool nn.quantized_relu_x nn.raw_rnn nn.relu_layer nn.rnn_cell nn.softmax_cross_entropy_with_logits_v2
nn.static_bidirectional_rnn nn.static_rnn nn.static_state_saving_rnn nn.uniform_candidate_sampler nn.xw_plus_b
no_regularizer op_scope orthogonal_initializer parse_example parse_single_example parse_single_sequence_example
parse_tensor placeholder placeholder_with_default polygamma profiler.AdviceProto profiler.GraphNodeProto
profiler.MultiGraphNodeProto profiler.OpLogProto profiler.ProfileOptionBuilder profiler.Profiler profiler.advise
profiler.profile profiler.write_op_log py_func python_io qr quantize quantize_v2 quantized_concat
ragged.RaggedTensorValue ragged.constant_value ragged.placeholder random.get_seed random.multinomial
random.set_random_seed random.stateless_multinomial random_crop random_gamma random_normal random_poisson
random_shuffle random_uniform read_file real reciprocal reduce_join regex_replace report_uninitialized_variables
reset_default_graph resource_loader resource_variables_enabled reverse_v2 rint rsqrt saved_model.Builder
saved_model.LEGACY_INIT_OP_KEY saved_model.MAIN_OP_KEY saved_model.build_signature_def saved_model.build_tensor_info
saved_model.builder saved_model.classification_signature_def saved_model.constants saved_model.experimental.save
saved_model.get_tensor_from_tensor_info saved_model.is_valid_signature saved_model.load_v2 saved_model.loader
saved_model.main_op saved_model.main_op_with_restore saved_model.maybe_saved_model_directory
saved_model.predict_signature_def saved_model.regression_signature_def saved_model.signature_constants
saved_model.signature_def_utils saved_model.simple_save saved_model.tag_constants saved_model.utils scatter_add
scatter_div scatter_max scatter_min scatter_mul scatter_nd_add scatter_nd_sub scatter_nd_update scatter_sub
scatter_update segment_max segment_mean segment_min segment_prod segment_sum self_adjoint_eig self_adjoint_eigvals
serialize_many_sparse serialize_sparse serialize_tensor set_random_seed setdiff1d sets.set_difference
sets.set_intersection sets.set_size sets.set_union space_to_depth sparse.SparseConditionalAccumulator sparse.matmul
sparse.merge sparse.placeholder sparse.reduce_max_sparse sparse.reduce_sum_sparse sparse_add sparse_concat
sparse_fill_empty_rows sparse_mask sparse_matmul sparse_maximum sparse_merge sparse_minimum sparse_placeholder
sparse_reduce_max sparse_reduce_max_sparse sparse_reduce_sum sparse_reduce_sum_sparse sparse_reorder
sparse_reset_shape sparse_reshape sparse_retain sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum
sparse_slice sparse_softmax sparse_split sparse_tensor_dense_matmul sparse_tensor_to_dense sparse_to_dense
sparse_to_indicator sparse_transpose spectral squared_difference string_join string_split string_strip
string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong string_to_number substr summary.Event
summary.FileWriter summary.FileWriterCache summary.SessionLog summary.Summary summary.SummaryDescription
summary.TaggedRunMetadata summary.all_v2_summary_ops summary.get_summary_description summary.initialize summary.merge
summary.merge_all summary.tensor_summary svd tables_initializer tensor_scatter_add tensor_scatter_sub
tensor_scatter_update test.StubOutForTesting test.compute_gradient_error test.get_temp_dir test.mock
test.test_src_dir_path to_bfloat16 to_complex128 to_complex64 to_double to_float to_int32 to_int64
tpu.CrossShardOptimizer tpu.batch_parallel tpu.bfloat16_scope tpu.core tpu.cross_replica_sum
tpu.experimental.AdagradParameters tpu.experimental.AdamParameters
tpu.experimental.StochasticGradientDescentParameters tpu.experimental.embedding_column
tpu.experimental.shared_embedding_columns tpu.initialize_system tpu.outside_compilation tpu.replicate tpu.rewrite
tpu.shard tpu.shutdown_system trace train.AdadeltaOptimizer train.AdagradDAOptimizer train.AdagradOptimizer
train.AdamOptimizer train.CheckpointSaverHook train.CheckpointSaverListener train.ChiefSessionCreator train.FeedFnHook
train.FinalOpsHook train.FtrlOptimizer train.GlobalStepWaiterHook train.GradientDescentOptimizer
train.LoggingTensorHook train.LooperThread train.MomentumOptimizer train.MonitoredSession
train.MonitoredTrainingSession train.NanLossDuringTrainingError train.NanTensorHook train.NewCheckpointReader
train.Optimizer train.ProfilerHook train.ProximalAdagradOptimizer train.ProximalGradientDescentOptimizer
train.QueueRunner train.RMSPropOptimizer train.Saver train.SaverDef train.Scaffold train.SecondOrStepTimer
train.Server train.SessionCreator train.SessionManager train.SessionRunArgs train.SessionRunContext
train.SessionRunHook train.SessionRunValues train.SingularMonitoredSession train.StepCounterHook train.StopAtStepHook
train.SummarySaverHook train.Supervisor train.SyncReplicasOptimizer train.VocabInfo train.WorkerSessionCreator
train.add_queue_runner train.assert_global_step train.basic_train_loop train.batch train.batch_join
train.checkpoint_exists train.cosine_decay train.cosine_decay_restarts train.create_global_step
train.do_quantize_training_on_graphdef train.experimental.DynamicLossScale train.experimental.FixedLossScale
train.experimental.LossScale train.experimental.MixedPrecisionLossScaleOptimizer
train.experimental.disable_mixed_precision_graph_rewrite train.experimental.enable_mixed_precision_graph_rewrite
train.exponential_decay train.export_meta_graph train.generate_checkpoint_state_proto train.get_checkpoint_mtimes
train.get_global_step train.get_or_create_global_step train.global_step train.import_meta_graph
train.init_from_checkpoint train.input_producer train.inverse_time_decay train.limit_epochs train.linear_cosine_decay
train.match_filenames_once train.maybe_batch train.maybe_batch_join train.maybe_shuffle_batch
train.maybe_shuffle_batch_join train.natural_exp_decay train.noisy_linear_cosine_decay train.piecewise_constant
train.piecewise_constant_decay train.polynomial_decay train.queue_runner train.range_input_producer
train.remove_checkpoint train.replica_device_setter train.sdca_fprint train.sdca_optimizer train.sdca_shrink_l1
train.shuffle_batch train.shuffle_batch_join train.slice_input_producer train.start_queue_runners
train.string_input_producer train.summary_iterator train.update_checkpoint_state train.warm_start train.write_graph
trainable_variables truncated_normal truncated_normal_initializer uniform_unit_scaling_initializer
unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n
unsorted_segment_sum user_ops variable_axis_size_partitioner variable_op_scope variable_scope variables_initializer
variance_scaling_initializer verify_tensor_all_finite where_v2 wrap_function write_file zeta
'''.split())
# TensorFlow 2 has them under tf.compat.v1, and another object of the same name outside of it.
DIFFERENT: FrozenSet[str] = frozenset('''
DeviceSpec Variable VariableAggregation argmax argmin assert_equal assert_greater assert_less assert_rank
autograph.to_code autograph.to_graph batch_to_space boolean_mask case cond constant constant_initializer
convert_to_tensor data.Dataset data.FixedLengthRecordDataset data.Iterator data.TFRecordDataset data.TextLineDataset
data.experimental.Counter data.experimental.CsvDataset data.experimental.RandomDataset data.experimental.SqlDataset
data.experimental.choose_from_datasets data.experimental.make_batched_features_dataset
data.experimental.make_csv_dataset data.experimental.sample_from_datasets debugging.assert_all_finite
debugging.assert_equal debugging.assert_greater debugging.assert_greater_equal debugging.assert_integer
debugging.assert_less debugging.assert_less_equal debugging.assert_near debugging.assert_negative
debugging.assert_non_negative debugging.assert_non_positive debugging.assert_none_equal debugging.assert_positive
debugging.assert_rank debugging.assert_rank_at_least debugging.assert_rank_in debugging.assert_scalar
debugging.assert_shapes debugging.assert_type device distribute.MirroredStrategy distribute.OneDeviceStrategy
distribute.ReplicaContext distribute.Strategy distribute.StrategyExtended
distribute.experimental.CentralStorageStrategy distribute.experimental.MultiWorkerMirroredStrategy
distribute.experimental.ParameterServerStrategy distribute.experimental.TPUStrategy estimator.BaselineClassifier
estimator.BaselineEstimator estimator.BaselineRegressor estimator.DNNClassifier estimator.DNNEstimator
estimator.DNNLinearCombinedClassifier estimator.DNNLinearCombinedEstimator estimator.DNNLinearCombinedRegressor
estimator.DNNRegressor estimator.Estimator estimator.LinearClassifier estimator.LinearEstimator
estimator.LinearRegressor estimator.classifier_parse_example_spec estimator.regressor_parse_example_spec
executing_eagerly expand_dims feature_column.categorical_column_with_vocabulary_file
feature_column.make_parse_example_spec foldl foldr gather gather_nd gradients hessians image.ResizeMethod
image.crop_and_resize image.draw_bounding_boxes image.extract_glimpse image.resize image.sample_distorted_bounding_box
initializers.constant initializers.glorot_normal initializers.glorot_uniform initializers.he_normal
initializers.he_uniform initializers.identity initializers.lecun_normal initializers.lecun_uniform initializers.ones
initializers.orthogonal initializers.random_normal initializers.random_uniform initializers.truncated_normal
initializers.variance_scaling initializers.zeros io.decode_csv io.decode_raw io.parse_example io.parse_single_example
io.serialize_many_sparse io.serialize_sparse keras.backend.name_scope keras.callbacks.TensorBoard
keras.estimator.model_to_estimator keras.initializers.Constant keras.initializers.Identity keras.initializers.Ones
keras.initializers.Orthogonal keras.initializers.RandomNormal keras.initializers.RandomUniform
keras.initializers.TruncatedNormal keras.initializers.VarianceScaling keras.initializers.Zeros
keras.initializers.constant keras.initializers.glorot_normal keras.initializers.glorot_uniform
keras.initializers.he_normal keras.initializers.he_uniform keras.initializers.identity keras.initializers.lecun_normal
keras.initializers.lecun_uniform keras.initializers.ones keras.initializers.orthogonal
keras.initializers.random_normal keras.initializers.random_uniform keras.initializers.truncated_normal
keras.initializers.zeros keras.layers.BatchNormalization keras.layers.DenseFeatures keras.layers.GRU
keras.layers.GRUCell keras.layers.LSTM keras.layers.LSTMCell keras.optimizers.Adadelta keras.optimizers.Adagrad
keras.optimizers.Adam keras.optimizers.Adamax keras.optimizers.Ftrl keras.optimizers.Nadam keras.optimizers.Optimizer
keras.optimizers.RMSprop keras.optimizers.SGD linalg.norm lite.TFLiteConverter lookup.StaticHashTable
lookup.StaticVocabularyTable losses.Reduction losses.mean_squared_error map_fn math.argmax math.argmin math.bincount
math.confusion_matrix math.count_nonzero math.in_top_k math.log_softmax math.reduce_all math.reduce_any
math.reduce_logsumexp math.reduce_max math.reduce_mean math.reduce_min math.reduce_prod math.reduce_sum
math.scalar_mul math.softmax metrics.mean_absolute_error metrics.mean_squared_error name_scope nn.avg_pool
nn.avg_pool2d nn.batch_norm_with_global_normalization nn.conv1d nn.conv2d nn.conv2d_transpose nn.conv3d
nn.conv3d_transpose nn.convolution nn.crelu nn.ctc_beam_search_decoder nn.ctc_loss nn.depth_to_space
nn.depthwise_conv2d nn.dilation2d nn.dropout nn.embedding_lookup nn.embedding_lookup_sparse nn.erosion2d
nn.fractional_avg_pool nn.fractional_max_pool nn.in_top_k nn.log_softmax nn.max_pool nn.max_pool_with_argmax
nn.moments nn.nce_loss nn.pool nn.safe_embedding_lookup_sparse nn.sampled_softmax_loss nn.separable_conv2d
nn.sigmoid_cross_entropy_with_logits nn.softmax nn.softmax_cross_entropy_with_logits nn.space_to_batch
nn.space_to_depth nn.sparse_softmax_cross_entropy_with_logits nn.sufficient_statistics
nn.weighted_cross_entropy_with_logits nn.weighted_moments norm ones_initializer ones_like pad random.poisson
random_normal_initializer random_uniform_initializer reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean
reduce_min reduce_prod reduce_sum reverse_sequence saved_model.contains_saved_model saved_model.load scalar_mul scan
shape size space_to_batch sparse.add sparse.concat sparse.reduce_max sparse.reduce_sum sparse.segment_mean
sparse.segment_sqrt_n sparse.segment_sum sparse.split squeeze strings.length strings.reduce_join strings.split
strings.substr strings.to_hash_bucket strings.to_number summary.audio summary.histogram summary.image summary.scalar
summary.text test.assert_equal_graph_def test.compute_gradient train.Checkpoint transpose tuple variable_creator_scope
where while_loop zeros_initializer zeros_like
'''.split())
# TensorFlow 2 has them, but not under tf.compat.v1.
ONLY_IN_2: FrozenSet[str] = frozenset('''
autodiff config.experimental.enable_op_determinism data.IteratorSpec data.experimental.at data.experimental.load
data.experimental.save data.experimental.service.DispatchServer data.experimental.service.WorkerServer
distribute.DistributedDataset distribute.DistributedIterator distribute.DistributedValues distribute.InputOptions
distribute.MultiWorkerMirroredStrategy distribute.ParameterServerStrategy distribute.TPUStrategy
distribute.coordinator distribute.experimental.PreemptionCheckpointHandler distribute.experimental.PreemptionWatcher
distribute.experimental.TerminationConfig distribute.experimental.ValueContext distribute.experimental.coordinator
distribute.experimental.partitioners distribute.experimental.rpc eig eigvals errors.OperatorNotAllowedInGraphError
estimator.experimental.RNNClassifier estimator.experimental.RNNEstimator experimental.dlpack experimental.dtensor
experimental.numpy experimental.tensorrt feature_column.shared_embeddings get_current_name_scope image.resize_with_pad
image.stateless_random_brightness image.stateless_random_contrast image.stateless_random_crop
image.stateless_random_flip_left_right image.stateless_random_flip_up_down image.stateless_random_hue
image.stateless_random_jpeg_quality image.stateless_random_saturation image.stateless_sample_distorted_bounding_box
initializers.Constant initializers.GlorotNormal initializers.GlorotUniform initializers.HeNormal
initializers.HeUniform initializers.Identity initializers.Initializer initializers.LecunNormal
initializers.LecunUniform initializers.Ones initializers.Orthogonal initializers.RandomNormal
initializers.RandomUniform initializers.TruncatedNormal initializers.VarianceScaling initializers.Zeros
initializers.deserialize initializers.get initializers.serialize inside_function keras.activations.gelu
keras.backend.experimental keras.callbacks.BackupAndRestore keras.callbacks.experimental keras.dtensor
keras.experimental.SidecarEvaluator keras.initializers.GlorotNormal keras.initializers.GlorotUniform
keras.initializers.HeNormal keras.initializers.HeUniform keras.initializers.LecunNormal
keras.initializers.LecunUniform keras.initializers.variance_scaling keras.layers.GroupNormalization
keras.layers.HashedCrossing keras.layers.IntegerLookup keras.layers.RandomBrightness keras.layers.RandomContrast
keras.layers.RandomCrop keras.layers.RandomFlip keras.layers.RandomHeight keras.layers.RandomRotation
keras.layers.RandomTranslation keras.layers.RandomWidth keras.layers.RandomZoom keras.layers.SpectralNormalization
keras.layers.StringLookup keras.layers.TextVectorization keras.layers.UnitNormalization
keras.layers.experimental.SyncBatchNormalization keras.layers.experimental.preprocessing.HashedCrossing
keras.layers.experimental.preprocessing.IntegerLookup keras.layers.experimental.preprocessing.RandomContrast
keras.layers.experimental.preprocessing.RandomCrop keras.layers.experimental.preprocessing.RandomFlip
keras.layers.experimental.preprocessing.RandomHeight keras.layers.experimental.preprocessing.RandomRotation
keras.layers.experimental.preprocessing.RandomTranslation keras.layers.experimental.preprocessing.RandomWidth
keras.layers.experimental.preprocessing.RandomZoom keras.layers.experimental.preprocessing.StringLookup
keras.layers.experimental.preprocessing.TextVectorization keras.losses.Reduction keras.losses.huber
keras.metrics.experimental keras.mixed_precision.Policy keras.mixed_precision.experimental.get_layer_policy
keras.mixed_precision.global_policy keras.mixed_precision.set_global_policy keras.models.experimental
keras.optimizers.Adafactor keras.optimizers.AdamW keras.optimizers.Lion keras.optimizers.experimental
keras.preprocessing.image.smart_resize keras.preprocessing.image_dataset_from_directory
keras.preprocessing.text_dataset_from_directory keras.preprocessing.timeseries_dataset_from_array
keras.regularizers.OrthogonalRegularizer keras.regularizers.orthogonal_regularizer keras.utils.FeatureSpace
keras.utils.SidecarEvaluator keras.utils.TimedThread keras.utils.audio_dataset_from_directory keras.utils.experimental
keras.utils.image_dataset_from_directory keras.utils.pack_x_y_sample_weight keras.utils.set_random_seed
keras.utils.split_dataset keras.utils.text_dataset_from_directory keras.utils.timeseries_dataset_from_array
keras.utils.unpack_x_y_sample_weight linalg.banded_triangular_solve linalg.eig linalg.eigvals
losses.BinaryCrossentropy losses.BinaryFocalCrossentropy losses.CategoricalCrossentropy
losses.CategoricalFocalCrossentropy losses.CategoricalHinge losses.CosineSimilarity losses.Hinge losses.Huber
losses.KLD losses.KLDivergence losses.LogCosh losses.Loss losses.MAE losses.MAPE losses.MSE losses.MSLE
losses.MeanAbsoluteError losses.MeanAbsolutePercentageError losses.MeanSquaredError losses.MeanSquaredLogarithmicError
losses.Poisson losses.SparseCategoricalCrossentropy losses.SquaredHinge losses.binary_crossentropy
losses.binary_focal_crossentropy losses.categorical_crossentropy losses.categorical_focal_crossentropy
losses.categorical_hinge losses.cosine_similarity losses.deserialize losses.get losses.hinge losses.huber
losses.kl_divergence losses.kld losses.kullback_leibler_divergence losses.log_cosh losses.logcosh losses.mae
losses.mape losses.mean_absolute_error losses.mean_absolute_percentage_error losses.mean_squared_logarithmic_error
losses.mse losses.msle losses.poisson losses.serialize losses.sparse_categorical_crossentropy losses.squared_hinge
metrics.AUC metrics.Accuracy metrics.BinaryAccuracy metrics.BinaryCrossentropy metrics.BinaryIoU
metrics.CategoricalAccuracy metrics.CategoricalCrossentropy metrics.CategoricalHinge metrics.CosineSimilarity
metrics.F1Score metrics.FBetaScore metrics.FalseNegatives metrics.FalsePositives metrics.Hinge metrics.IoU metrics.KLD
metrics.KLDivergence metrics.LogCoshError metrics.MAE metrics.MAPE metrics.MSE metrics.MSLE metrics.Mean
metrics.MeanAbsoluteError metrics.MeanAbsolutePercentageError metrics.MeanIoU metrics.MeanMetricWrapper
metrics.MeanRelativeError metrics.MeanSquaredError metrics.MeanSquaredLogarithmicError metrics.MeanTensor
metrics.Metric metrics.OneHotIoU metrics.OneHotMeanIoU metrics.Poisson metrics.Precision metrics.PrecisionAtRecall
metrics.R2Score metrics.Recall metrics.RecallAtPrecision metrics.RootMeanSquaredError metrics.SensitivityAtSpecificity
metrics.SparseCategoricalAccuracy metrics.SparseCategoricalCrossentropy metrics.SparseTopKCategoricalAccuracy
metrics.SpecificityAtSensitivity metrics.SquaredHinge metrics.Sum metrics.TopKCategoricalAccuracy
metrics.TrueNegatives metrics.TruePositives metrics.binary_accuracy metrics.binary_crossentropy
metrics.binary_focal_crossentropy metrics.categorical_accuracy metrics.categorical_crossentropy
metrics.categorical_focal_crossentropy metrics.deserialize metrics.experimental metrics.get metrics.hinge
metrics.kl_divergence metrics.kld metrics.kullback_leibler_divergence metrics.log_cosh metrics.logcosh metrics.mae
metrics.mape metrics.mean_absolute_percentage_error metrics.mean_squared_logarithmic_error metrics.mse metrics.msle
metrics.poisson metrics.serialize metrics.sparse_categorical_accuracy metrics.sparse_categorical_crossentropy
metrics.sparse_top_k_categorical_accuracy metrics.squared_hinge metrics.top_k_categorical_accuracy
nn.RNNCellDeviceWrapper nn.RNNCellDropoutWrapper nn.RNNCellResidualWrapper nn.gelu nn.isotonic_regression optimizers
profiler.experimental random.set_seed saved_model.LoadOptions saved_model.experimental.Fingerprint
saved_model.experimental.read_fingerprint sparse.map_values sparse.sampled_addmm summary.SummaryWriter
summary.create_file_writer summary.create_noop_writer summary.experimental summary.flush summary.graph
summary.record_if summary.should_record_summaries summary.trace_export summary.trace_off summary.trace_on
summary.write train.CheckpointView train.TrackableView types.experimental.AtomicFunction types.experimental.Callable
types.experimental.ConcreteFunction types.experimental.GenericFunction types.experimental.PolymorphicFunction
types.experimental.SupportsTracingProtocol types.experimental.TraceType types.experimental.distributed
'''.split())
# A later version of TensorFlow removed them.
GONE: FrozenSet[str] = frozenset('''
config.experimental_list_devices data.experimental.MapVectorizationOptions data.experimental.StatsAggregator
data.experimental.StatsOptions data.experimental.bytes_produced_stats data.experimental.latency_stats
estimator.BoostedTreesClassifier estimator.BoostedTreesEstimator estimator.BoostedTreesRegressor keras.__version__
keras.experimental.LinearCosineDecay keras.experimental.NoisyLinearCosineDecay keras.experimental.PeepholeLSTMCell
keras.experimental.export_saved_model keras.experimental.load_from_saved_model
keras.experimental.terminate_keras_multiprocessing_pools keras.mixed_precision.experimental keras.utils.HDF5Matrix
keras.utils.convert_all_kernels_in_model keras.utils.multi_gpu_model keras.wrappers
lite.experimental.get_potentially_supported_ops lite.experimental.nn pywrap_tensorflow
'''.split())
# The modules below tensorflow.compat.v1 that can be imported in all versions.
MODULES: FrozenSet[str] = frozenset('''
audio autograph autograph.experimental bitwise compat config config.experimental config.optimizer config.threading
data data.experimental debugging distribute distribute.cluster_resolver distribute.experimental distributions dtypes
errors estimator estimator.experimental estimator.export estimator.inputs estimator.tpu estimator.tpu.experimental
experimental feature_column gfile graph_util image initializers io io.gfile keras keras.activations keras.applications
keras.applications.densenet keras.applications.imagenet_utils keras.applications.inception_resnet_v2
keras.applications.inception_v3 keras.applications.mobilenet keras.applications.mobilenet_v2 keras.applications.nasnet
keras.applications.resnet keras.applications.resnet50 keras.applications.resnet_v2 keras.applications.vgg16
keras.applications.vgg19 keras.applications.xception keras.backend keras.callbacks keras.constraints keras.datasets
keras.datasets.boston_housing keras.datasets.cifar10 keras.datasets.cifar100 keras.datasets.fashion_mnist
keras.datasets.imdb keras.datasets.mnist keras.datasets.reuters keras.estimator keras.experimental keras.initializers
keras.layers keras.losses keras.metrics keras.mixed_precision keras.models keras.optimizers keras.optimizers.schedules
keras.preprocessing keras.preprocessing.image keras.preprocessing.sequence keras.preprocessing.text keras.regularizers
keras.utils layers.experimental linalg lite lite.constants lite.experimental logging lookup lookup.experimental losses
manip math metrics nest nn nn.rnn_cell profiler python_io quantization queue ragged random random.experimental raw_ops
resource_loader saved_model saved_model.builder saved_model.constants saved_model.experimental saved_model.loader
saved_model.main_op saved_model.signature_constants saved_model.signature_def_utils saved_model.tag_constants
saved_model.utils sets signal sparse spectral strings summary sysconfig test tpu tpu.experimental train
train.experimental train.queue_runner user_ops version xla xla.experimental
'''.split())
# The number of arguments that may stay positional, and the removed argument names.
CHANGED: Dict[str, Tuple[int, str]] = {
    'OptionalSpec': (1, 'value_structure'),
    'RaggedTensor': (1, 'cached_nrows cached_row_lengths cached_value_rowids row_splits'),
    'autograph.experimental.set_loop_options': (1, 'back_prop'),
    'config.experimental.set_virtual_device_configuration': (1, 'virtual_devices'),
    'data.experimental.OptionalStructure': (1, 'value_structure'),
    'errors.UnknownError': (4, 'error_code'),
    'estimator.DNNLinearCombinedEstimator': (11, ''),
    'function': (3, ''),
    'image.adjust_jpeg_quality': (2, ''),
    'keras.experimental.PeepholeLSTMCell': (16, ''),
    'keras.layers.Conv1D': (6, ''),
    'keras.layers.Conv2D': (6, ''),
    'keras.layers.Conv3D': (6, ''),
    'keras.layers.Conv3DTranspose': (6, ''),
    'keras.layers.ConvLSTM2D': (21, ''),
    'keras.layers.Convolution1D': (6, ''),
    'keras.layers.Convolution2D': (6, ''),
    'keras.layers.Convolution3D': (6, ''),
    'keras.layers.Convolution3DTranspose': (6, ''),
    'keras.layers.DepthwiseConv2D': (5, ''),
    'keras.layers.GRU': (16, ''),
    'keras.layers.GRUCell': (15, ''),
    'keras.layers.LSTM': (17, ''),
    'keras.layers.LSTMCell': (16, ''),
    'keras.layers.LayerNormalization': (10, ''),
    'keras.losses.BinaryCrossentropy': (2, ''),
    'keras.losses.CategoricalCrossentropy': (2, ''),
    'keras.losses.SparseCategoricalCrossentropy': (1, ''),
    'keras.metrics.SensitivityAtSpecificity': (2, ''),
    'keras.metrics.SparseCategoricalCrossentropy': (3, ''),
    'keras.metrics.SpecificityAtSensitivity': (2, ''),
    'keras.mixed_precision.experimental.LossScaleOptimizer': (2, 'opt'),
    'keras.models.save_model': (3, ''),
    'keras.preprocessing.image.DirectoryIterator': (16, ''),
    'keras.preprocessing.image.ImageDataGenerator': (21, ''),
    'keras.preprocessing.image.NumpyArrayIterator': (12, ''),
    'keras.preprocessing.text.Tokenizer': (6, ''),
    'keras.preprocessing.text.one_hot': (0, 'text'),
    'keras.preprocessing.text.text_to_word_sequence': (4, 'text'),
    'keras.utils.GeneratorEnqueuer': (3, 'sequence'),
    'keras.utils.deserialize_keras_object': (0, ''),
    'keras.utils.model_to_dot': (2, ''),
    'keras.utils.plot_model': (3, ''),
    'keras.utils.serialize_keras_object': (1, 'instance'),
    'linalg.matmul': (8, ''),
    'manip.scatter_nd': (3, ''),
    'math.top_k': (3, ''),
    'matmul': (8, ''),
    'nn.top_k': (3, ''),
    'numpy_function': (3, ''),
    'random.experimental.create_rng_state': (1, 'algorithm'),
    'scatter_nd': (3, ''),
    'tensor_scatter_add': (3, ''),
    'tensor_scatter_nd_add': (3, ''),
    'tensor_scatter_nd_sub': (3, ''),
    'tensor_scatter_sub': (3, ''),
    'tpu.experimental.StochasticGradientDescentParameters': (1, ''),
}
# Names of tf.contrib for objects that TensorFlow's core has under another name.
CONTRIB: Dict[str, str] = {
    'autograph.Feature': 'autograph.experimental.Feature',
    'autograph.do_not_convert': 'autograph.experimental.do_not_convert',
    'autograph.set_loop_options': 'autograph.experimental.set_loop_options',
    'batching.batch_function': 'nondifferentiable_batch_function',
    'checkpoint.CheckpointManager': 'train.CheckpointManager',
    'checkpoint.PythonStateWrapper': 'train.experimental.PythonState',
    'cluster_resolver.ClusterResolver': 'distribute.cluster_resolver.ClusterResolver',
    'cluster_resolver.GCEClusterResolver': 'distribute.cluster_resolver.GCEClusterResolver',
    'cluster_resolver.KubernetesClusterResolver': 'distribute.cluster_resolver.KubernetesClusterResolver',
    'cluster_resolver.SimpleClusterResolver': 'distribute.cluster_resolver.SimpleClusterResolver',
    'cluster_resolver.SlurmClusterResolver': 'distribute.cluster_resolver.SlurmClusterResolver',
    'cluster_resolver.TFConfigClusterResolver': 'distribute.cluster_resolver.TFConfigClusterResolver',
    'cluster_resolver.TPUClusterResolver': 'distribute.cluster_resolver.TPUClusterResolver',
    'cluster_resolver.UnionClusterResolver': 'distribute.cluster_resolver.UnionResolver',
    'compiler.jit.experimental_jit_scope': 'xla.experimental.jit_scope',
    'compiler.xla.compile': 'xla.experimental.compile',
    'data.Optional': 'data.experimental.Optional',
    'data.get_next_as_optional': 'data.experimental.get_next_as_optional',
    'distribute.CrossDeviceOps': 'distribute.CrossDeviceOps',
    'distribute.DistributionStrategy': 'distribute.Strategy',
    'distribute.OneDeviceStrategy': 'distribute.OneDeviceStrategy',
    'distribute.ReplicaContext': 'distribute.ReplicaContext',
    'distribute.TPUStrategy': 'distribute.experimental.TPUStrategy',
    'distribute.get_distribution_strategy': 'distribute.get_strategy',
    'distribute.get_loss_reduction': 'distribute.get_loss_reduction',
    'distribute.get_replica_context': 'distribute.get_replica_context',
    'distribute.get_strategy': 'distribute.get_strategy',
    'distribute.has_distribution_strategy': 'distribute.has_strategy',
    'distribute.has_strategy': 'distribute.has_strategy',
    'distribute.in_cross_replica_context': 'distribute.in_cross_replica_context',
    'distribute.initialize_tpu_system': 'tpu.experimental.initialize_tpu_system',
    'distributions.Bernoulli': 'distributions.Bernoulli',
    'distributions.Beta': 'distributions.Beta',
    'distributions.Categorical': 'distributions.Categorical',
    'distributions.Dirichlet': 'distributions.Dirichlet',
    'distributions.DirichletMultinomial': 'distributions.DirichletMultinomial',
    'distributions.Distribution': 'distributions.Distribution',
    'distributions.Exponential': 'distributions.Exponential',
    'distributions.FULLY_REPARAMETERIZED': 'distributions.FULLY_REPARAMETERIZED',
    'distributions.Gamma': 'distributions.Gamma',
    'distributions.Laplace': 'distributions.Laplace',
    'distributions.Multinomial': 'distributions.Multinomial',
    'distributions.NOT_REPARAMETERIZED': 'distributions.NOT_REPARAMETERIZED',
    'distributions.Normal': 'distributions.Normal',
    'distributions.RegisterKL': 'distributions.RegisterKL',
    'distributions.ReparameterizationType': 'distributions.ReparameterizationType',
    'distributions.StudentT': 'distributions.StudentT',
    'distributions.Uniform': 'distributions.Uniform',
    'distributions.kl_divergence': 'distributions.kl_divergence',
    'eager.Checkpoint': 'train.Checkpoint',
    'eager.GradientTape': 'GradientTape',
    'eager.TensorSpec': 'TensorSpec',
    'eager.connect_to_remote_host': 'config.experimental_connect_to_host',
    'eager.custom_gradient': 'custom_gradient',
    'eager.enable_eager_execution': 'enable_eager_execution',
    'eager.executing_eagerly': 'executing_eagerly',
    'eager.function': 'function',
    'eager.in_eager_mode': 'executing_eagerly',
    'eager.py_func': 'py_function',
    'estimator.build_raw_supervised_input_receiver_fn':
        'estimator.experimental.build_raw_supervised_input_receiver_fn',
    'estimator.dnn_logit_fn_builder': 'estimator.experimental.dnn_logit_fn_builder',
    'estimator.linear_logit_fn_builder': 'estimator.experimental.linear_logit_fn_builder',
    'framework.TensorSpec': 'TensorSpec',
    'framework.argsort': 'argsort',
    'framework.assert_same_float_dtype': 'assert_same_float_dtype',
    'framework.assert_scalar': 'assert_scalar',
    'framework.convert_to_tensor_or_sparse_tensor': 'convert_to_tensor_or_sparse_tensor',
    'framework.is_tensor': 'is_tensor',
    'framework.sort': 'sort',
    'hooks.ProfilerHook': 'estimator.ProfilerHook',
    'lookup.KeyValueTensorInitializer': 'lookup.KeyValueTensorInitializer',
    'lookup.MutableDenseHashTable': 'lookup.experimental.DenseHashTable',
    'lookup.TextFileIndex': 'lookup.TextFileIndex',
    'lookup.TextFileInitializer': 'lookup.TextFileInitializer',
    'metrics.set_difference': 'sets.set_difference',
    'metrics.set_intersection': 'sets.set_intersection',
    'metrics.set_size': 'sets.set_size',
    'metrics.set_union': 'sets.set_union',
    'nn.conv1d_transpose': 'nn.conv1d_transpose',
    'proto.decode_proto': 'io.decode_proto',
    'proto.encode_proto': 'io.encode_proto',
    'rnn.BasicLSTMCell': 'nn.rnn_cell.BasicLSTMCell',
    'rnn.BasicRNNCell': 'nn.rnn_cell.BasicRNNCell',
    'rnn.DeviceWrapper': 'nn.rnn_cell.DeviceWrapper',
    'rnn.DropoutWrapper': 'nn.rnn_cell.DropoutWrapper',
    'rnn.GRUCell': 'nn.rnn_cell.GRUCell',
    'rnn.LSTMCell': 'nn.rnn_cell.LSTMCell',
    'rnn.LSTMStateTuple': 'nn.rnn_cell.LSTMStateTuple',
    'rnn.MultiRNNCell': 'nn.rnn_cell.MultiRNNCell',
    'rnn.RNNCell': 'nn.rnn_cell.RNNCell',
    'rnn.ResidualWrapper': 'nn.rnn_cell.ResidualWrapper',
    'rnn.static_bidirectional_rnn': 'nn.static_bidirectional_rnn',
    'rnn.static_rnn': 'nn.static_rnn',
    'rnn.static_state_saving_rnn': 'nn.static_state_saving_rnn',
    'signal.frame': 'signal.frame',
    'signal.hamming_window': 'signal.hamming_window',
    'signal.hann_window': 'signal.hann_window',
    'signal.inverse_stft': 'signal.inverse_stft',
    'signal.inverse_stft_window_fn': 'signal.inverse_stft_window_fn',
    'signal.linear_to_mel_weight_matrix': 'signal.linear_to_mel_weight_matrix',
    'signal.mfccs_from_log_mel_spectrograms': 'signal.mfccs_from_log_mel_spectrograms',
    'signal.overlap_and_add': 'signal.overlap_and_add',
    'signal.stft': 'signal.stft',
    'stateless.stateless_multinomial': 'random.stateless_multinomial',
    'stateless.stateless_random_normal': 'random.stateless_normal',
    'stateless.stateless_random_uniform': 'random.stateless_uniform',
    'stateless.stateless_truncated_normal': 'random.stateless_truncated_normal',
    'summary.all_summary_ops': 'summary.all_v2_summary_ops',
    'summary.initialize': 'summary.initialize',
    'tfprof.model_analyzer.Profiler': 'profiler.Profiler',
    'tpu.CrossShardOptimizer': 'tpu.CrossShardOptimizer',
    'tpu.DeviceAssignment': 'tpu.experimental.DeviceAssignment',
    'tpu.InputPipelineConfig': 'estimator.tpu.InputPipelineConfig',
    'tpu.RunConfig': 'estimator.tpu.RunConfig',
    'tpu.TPUConfig': 'estimator.tpu.TPUConfig',
    'tpu.TPUEstimator': 'estimator.tpu.TPUEstimator',
    'tpu.TPUEstimatorSpec': 'estimator.tpu.TPUEstimatorSpec',
    'tpu.batch_parallel': 'tpu.batch_parallel',
    'tpu.bfloat16_scope': 'tpu.bfloat16_scope',
    'tpu.cross_replica_sum': 'tpu.cross_replica_sum',
    'tpu.initialize_system': 'tpu.initialize_system',
    'tpu.outside_compilation': 'tpu.outside_compilation',
    'tpu.replicate': 'tpu.replicate',
    'tpu.rewrite': 'tpu.rewrite',
    'tpu.shard': 'tpu.shard',
    'tpu.shutdown_system': 'tpu.shutdown_system',
    'util.constant_value': 'get_static_value',
    'util.make_ndarray': 'make_ndarray',
    'util.make_tensor_proto': 'make_tensor_proto',
}
# Names removed from private modules, as name=public if there is a public name.
PRIVATE: Dict[str, str] = {
    'tensorflow.python.data.experimental.ops.distribute_options':
        'DistributeOptions=data.experimental.DistributeOptions',
    'tensorflow.python.data.experimental.ops.iterator_ops': 'CheckpointInputPipelineHook',
    'tensorflow.python.data.experimental.ops.optimization': 'assert_next model non_serializable optimize',
    'tensorflow.python.data.experimental.ops.optimization_options':
        'MapVectorizationOptions OptimizationOptions=data.experimental.OptimizationOptions',
    'tensorflow.python.data.experimental.ops.sleep': 'sleep',
    'tensorflow.python.data.experimental.ops.stats_aggregator': 'StatsAggregator StatsAggregatorV1 StatsAggregatorV2',
    'tensorflow.python.data.experimental.ops.stats_ops': 'bytes_produced_stats latency_stats set_stats_aggregator',
    'tensorflow.python.data.experimental.ops.stats_options': 'StatsOptions',
    'tensorflow.python.data.experimental.ops.threading_options':
        'ThreadingOptions=data.experimental.ThreadingOptions',
    'tensorflow.python.data.experimental.ops.threadpool': 'PrivateThreadPool override_threadpool',
    'tensorflow.python.data.ops.dataset_ops':
        'AutotuneAlgorithm CacheDataset ConcatenateDataset FilterDataset FlatMapDataset InterleaveDataset '
        'MapDataset Options=data.Options PaddedBatchDataset ParallelInterleaveDataset ParallelMapDataset '
        'RangeDataset ShardDataset SkipDataset SparseTensorSliceDataset TakeDataset TensorDataset '
        'TensorSliceDataset WindowDataset ZipDataset',
    'tensorflow.python.data.ops.iterator_ops': 'IteratorResourceDeleter IteratorV2',
    'tensorflow.python.data.ops.multi_device_iterator_ops':
        'MultiDeviceIteratorResourceDeleter MultiDeviceIteratorV2',
    'tensorflow.python.feature_column.dense_features': 'DenseFeatures',
    'tensorflow.python.feature_column.dense_features_v2': 'DenseFeatures',
    'tensorflow.python.feature_column.feature_column_v2': 'FeatureColumn LinearModel',
    'tensorflow.python.feature_column.sequence_feature_column': 'SequenceFeatures',
    'tensorflow.python.framework.c_api_util': 'ScopedTFGraph new_tf_operations tf_operations',
    'tensorflow.python.framework.common_shapes':
        'avg_pool_shape call_cpp_shape_fn conv2d_shape depthwise_conv2d_native_shape get2d_conv_output_size '
        'get_conv_output_size has_fully_defined_shape matmul_shape max_pool_shape no_outputs rank scalar_shape '
        'separable_conv2d_shape unchanged_shape unchanged_shape_with_rank unchanged_shape_with_rank_at_least '
        'unchanged_shape_with_rank_at_most unknown_shape',
    'tensorflow.python.framework.composite_tensor_utils':
        'append_composite_tensor get_shape is_composite_or_composite_value',
    'tensorflow.python.framework.config':
        'get_virtual_device_configuration=config.experimental.get_virtual_device_configuration '
        'set_virtual_device_configuration=config.experimental.set_virtual_device_configuration',
    'tensorflow.python.framework.error_interpolation': 'compute_field_dict interpolate traceback_files_common_prefix',
    'tensorflow.python.framework.fast_tensor_util':
        'AppendBFloat16ArrayToTensorProto AppendBoolArrayToTensorProto AppendComplex128ArrayToTensorProto '
        'AppendComplex64ArrayToTensorProto AppendFloat16ArrayToTensorProto AppendFloat32ArrayToTensorProto '
        'AppendFloat64ArrayToTensorProto AppendInt16ArrayToTensorProto AppendInt32ArrayToTensorProto '
        'AppendInt64ArrayToTensorProto AppendInt8ArrayToTensorProto AppendObjectArrayToTensorProto '
        'AppendUInt16ArrayToTensorProto AppendUInt32ArrayToTensorProto AppendUInt64ArrayToTensorProto '
        'AppendUInt8ArrayToTensorProto',
    'tensorflow.python.framework.func_graph': 'check_mutation maybe_captured',
    'tensorflow.python.framework.function': 'function_def_from_tf_function',
    'tensorflow.python.framework.graph_util_impl':
        'convert_variables_to_constants=graph_util.convert_variables_to_constants',
    'tensorflow.python.framework.op_callbacks': 'op_callback',
    'tensorflow.python.framework.op_def_library': 'OpDefLibrary',
    'tensorflow.python.framework.op_def_registry': 'get_registered_ops register_op_list',
    'tensorflow.python.framework.ops':
        'RegisterShape Tensor=Tensor convert_to_tensor_v2 default_session '
        'disable_tensor_equality=disable_tensor_equality enable_tensor_equality=enable_tensor_equality '
        'enter_eager_name_scope register_dense_tensor_like_type',
    'tensorflow.python.framework.tensor_shape': 'matrix scalar vector',
    'tensorflow.python.framework.tensor_util': 'maybe_set_static_shape shape_tensor',
    'tensorflow.python.layers.normalization': 'BatchNorm BatchNormalization batch_norm batch_normalization',
    'tensorflow.python.layers.utils': 'get_reachable_from_inputs object_list_uid static_shape',
    'tensorflow.python.ops.array_ops': 'stack=stack unstack=unstack',
    'tensorflow.python.ops.control_flow_ops':
        'Assert=Assert case=case case_v2 cond=cond cond_for_tf_v2 switch_case=switch_case while_loop=while_loop '
        'while_loop_v2',
    'tensorflow.python.ops.control_flow_state': 'ZerosLikeOutsideLoop',
    'tensorflow.python.ops.control_flow_v2_toggles': 'output_all_intermediates=experimental.output_all_intermediates',
    'tensorflow.python.ops.custom_gradient': 'copy_handle_data get_dependent_variables',
    'tensorflow.python.ops.distributions.transformed_distribution': 'TransformedDistribution',
    'tensorflow.python.ops.functional_ops': 'partitioned_call',
    'tensorflow.python.ops.gradients_util': 'IsTrainable',
    'tensorflow.python.ops.linalg.linear_operator_algebra':
        'RegisterAdjoint RegisterCholesky RegisterInverse RegisterMatmul RegisterSolve adjoint cholesky inverse '
        'matmul solve',
    'tensorflow.python.ops.linalg.linear_operator_util':
        'cholesky_solve_with_broadcast matrix_triangular_solve_with_broadcast',
    'tensorflow.python.ops.linalg.registrations_util':
        'combined_commuting_positive_definite_hint combined_commuting_self_adjoint_hint combined_non_singular_hint '
        'is_square',
    'tensorflow.python.ops.losses.loss_reduction': 'ReductionV2',
    'tensorflow.python.ops.math_ops': 'bincount_v1=bincount',
    'tensorflow.python.ops.nn_impl':
        'compute_average_loss=nn.compute_average_loss l2_normalize_v2 '
        'scale_regularization_loss=nn.scale_regularization_loss',
    'tensorflow.python.ops.parsing_ops': 'parse_single_example_v2_unoptimized',
    'tensorflow.python.ops.ragged.ragged_dispatch':
        'BinaryRaggedElementwiseDispatcher RaggedDispatcher UnaryRaggedElementwiseDispatcher register_dispatchers',
    'tensorflow.python.ops.random_ops': 'random_crop=random_crop',
    'tensorflow.python.ops.resource_variable_ops': 'variable_handle_from_shape_and_dtype',
    'tensorflow.python.ops.rnn_cell_wrapper_impl': 'DeviceWrapperBase DropoutWrapperBase ResidualWrapperBase',
    'tensorflow.python.ops.summary_ops_v2': 'NoopSummaryWriter ResourceSummaryWriter create_db_writer keras_model',
    'tensorflow.python.ops.tensor_forest_ops': 'ForestVariables TreeVariableSaveable tree_variable',
    'tensorflow.python.ops.variable_scope':
        'default_variable_creator default_variable_creator_v2 disable_resource_variables=disable_resource_variables '
        'enable_resource_variables=enable_resource_variables resource_variables_enabled=resource_variables_enabled',
    'tensorflow.python.ops.variables':
        'AbstractVariable AbstractVariableMetaclass RefVariable VariableV1=Variable '
        'is_variable_initialized=is_variable_initialized',
    'tensorflow.python.platform.status_bar': 'SetupStatusBarInsideGoogle',
    'tensorflow.python.saved_model.load': 'load_internal',
    'tensorflow.python.saved_model.nested_structure_coder': 'StructureCoder',
    'tensorflow.python.saved_model.utils_impl':
        'get_assets_dir get_or_create_assets_dir get_or_create_variables_dir get_variables_dir get_variables_path',
    'tensorflow.python.training.experimental.loss_scale': 'get_loss_scale_weights',
    'tensorflow.python.training.experimental.mixed_precision':
        'disable_mixed_precision_graph_rewrite enable_mixed_precision_graph_rewrite',
    'tensorflow.python.training.saving.functional_saver': 'MultiDeviceSaver sharded_filename',
    'tensorflow.python.training.tensorboard_logging':
        'debug error fatal get_verbosity info log set_summary_writer set_verbosity warn',
    'tensorflow.python.training.tracking.base':
        'CheckpointInitialValue CheckpointPosition NoRestoreSaveable PythonStateSaveable PythonStringStateSaveable '
        'Trackable TrackableReference no_automatic_dependency_tracking no_automatic_dependency_tracking_scope',
    'tensorflow.python.training.tracking.data_structures':
        'List ListWrapper Mapping NoDependency TrackableDataStructure sticky_attribute_assignment',
    'tensorflow.python.training.tracking.graph_view': 'ObjectGraphView',
    'tensorflow.python.training.tracking.layer_utils':
        'filter_empty_layer_containers gather_non_trainable_weights gather_trainable_weights has_weights is_layer',
    'tensorflow.python.training.tracking.python_state': 'PythonState=train.experimental.PythonState',
    'tensorflow.python.training.tracking.tracking':
        'AutoTrackable CapturableResource CapturableResourceDeleter NotTrackable ResourceTracker TrackableAsset '
        'TrackableResource cached_per_instance delete_tracking resource_tracker_scope',
    'tensorflow.python.training.tracking.util':
        'Checkpoint CheckpointLoadStatus CheckpointV1=train.Checkpoint InitializationOnlyStatus '
        'NameBasedSaverStatus TrackableSaver add_variable capture_dependencies frozen_saver gather_initializers '
        'get_session list_objects object_metadata saver_with_op_caching streaming_restore',
    'tensorflow.python.util.compat_internal': 'path_to_str',
    'tensorflow.python.util.memory': 'dismantle_ordered_dict',
    'tensorflow.python.util.tf_export': 'SymbolAlreadyExposedError',
    'tensorflow.python.util.tf_should_use': 'must_use_result_or_fatal',
    'tensorflow.python.util.tf_stack': 'convert_stack',
}
