"""One process per rank: what ``npu-shim launch`` starts, watches and ends. Nothing here imports TensorFlow."""
