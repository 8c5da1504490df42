"""The migration tool: TensorFlow training scripts to npu_shim, by meaning and not by spelling.

It needs nothing but the standard library of Python 3.7 or later and never imports TensorFlow.

* ``source``: a file as bytes, text and tree, and edits of the text;
* ``scopes``, ``names``: what binds each name and what a name is, by imports, aliases and scopes;
* ``infer``: what an expression evaluates to (a dataset, a Keras model, a run configuration);
* ``phase``: whether code feeds training, evaluation or prediction;
* ``registry``, ``rules``: the rules, one file each;
* ``convert``: one file's text through all rules; ``run``: files and folders; ``main``: the command;
* ``api_calls``, ``report``: what is called, what became of it, and the forms in which that is told.
"""

__version__ = "0.1.0"  # as of npu_shim, which this tool does not import
