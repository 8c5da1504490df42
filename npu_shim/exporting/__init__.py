"""Trained models in their form for inference, for other runtimes than the training that made them.

* ``sources`` opens a SavedModel, checkpoint, Keras file or frozen graph. ``ports`` chooses its inputs and outputs.
* ``graph_defs`` edits graph definitions. ``numbers`` finds what constants tell, such as a rate or a predicate.
* ``inference`` removes what belongs to training. ``plain_ops`` writes the ops of npu_shim with TensorFlow's own.
* ``freezing`` makes variables constants. ``inference_model`` joins these steps.
* ``proof`` runs model and source on the same inputs. ``targets`` writes the model, a target a file.
"""
