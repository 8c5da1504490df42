"""The kinds of questions about an expression, and the attributes of the answers.

``npu_shim.rehearsal.observing`` has a function for each kind, which notes the attributes.
"""

from __future__ import annotations

# A tensor, an array or a variable: "dtype"; "place": "graph", "eager", "data" for functions of tf.data, "numpy" or
# "python". Of float64 in a graph or in eager code: the number of its "region", of all that float64 connects, and if
# that is "mixed" with float64 that the tool does not ask about, "sums" up in a variable, or has "large" values, which
# float32 does not hold, or, in eager code, exponentials and products, of which it may not hold later ones.
DTYPE = "dtype"
# The same, and "rank"; "rows" and "last", of the first and last dimension. Of each of several in a tuple, and of the
# first in a named one.
ROWS = "rows"
# A condition or a number: "is", which is "python" for numbers of Python and NumPy, "tensor", "none" or "other"; of a
# tensor also "dtype"; of a sequence "length".
VALUE = "value"
# A function: "parameters", their names.
FUNCTION = "function"
# A dataset of batches. What it fed: "used", of training, evaluation, prediction, other; "trained_by", of keras,
# estimator, session, for, next, hand; "counted", if the script asked for its length or counts its batches. Its batches:
# "size" of a full one, "batch", the sizes that occurred, "partial", if a partial one came after full ones or alone,
# "lost", the same in training, "axis:I.J", the sizes of unknown dimension J of component I. Its source: "examples",
# their number; of each that trains "mixed", if each pass has another order, and "endless", if it repeats forever.
DATASET = "dataset"
# An array, or a placeholder: "shape", of the array or of what is fed. A number: "number". A list: its length as
# "shape", and "arrays", if its elements are arrays. A placeholder "changes", if runs that fetch and feed the same
# tensors fed it several shapes. An iterator of ImageDataGenerator in eager code: the number of images as "shape", the
# size of a full "batch", and "mixed", if each pass has another order.
SHAPE = "shape"
# What ops return: "in", where they were created: "eager", "graph", "function", or "data" for functions of tf.data. Of
# an assignment in a graph: "skips", if a run that makes it may skip another update of a variable.
OP = "op"
# A dropout layer, when it is called: "in", as of an op, and "training", True, False, None, or "tensor".
LAYER = "layer"
# What tf.nn.dynamic_rnn returns: "in", as of an op; the "dimensions" of its outputs, None for each that the graph does
# not know; "draws", if its time steps have random ops.
LOOP = "loop"
# A session, in each run: "trains", if an optimizer updates variables, "updates", if anything updates them; "python" and
# "tables", if it ran functions of Python or used lookup tables.
SESSION = "session"
# An object that is trained: "is", "keras" or "other"; "eager", if eager execution is on.
MODEL = "model"
# A function that computes a training step, when it is called: "eager"; what "arguments" and "returns" consist of, which
# is "tensor", "array", "none", "number", "object", one of TensorFlow and always the same, or "other"; "traces", if a
# trace of it works; "shapes", the types and shapes of its tensors and arrays as one text; "constant", if its numbers of
# Python were those of the first call; "numbers" and "objects", the names of the parameters that get some; "lists", the
# names of the lists and dictionaries that it reads from outside.
STEP = "step"
# The tape of a step in a loop: the same as of a function of its statements, which the question has; "narrowed", the
# names of its arguments that are arrays of float64, if it can be traced only if they are float32.
BLOCK = "block"
# A function or an object that is called: "is", "library" if it and all layers and metrics in it are of TensorFlow,
# "layer" if calls of the others have no effects in Python, or "other"; "reads", the attributes that those calls read,
# and "lists", those of them that are lists or dictionaries.
CALLEE = "callee"
KINDS = frozenset({DTYPE, ROWS, VALUE, FUNCTION, DATASET, SHAPE, OP, LAYER, LOOP, SESSION, MODEL, STEP, BLOCK, CALLEE})
