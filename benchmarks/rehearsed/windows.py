"""Trains in windows: the benchmark asks for steps, by a line on standard input, and gets their times and losses."""

import json
import re
import resource
import sys
import time

import tensorflow.compat.v1 as tf

# The arithmetic that neither an allocator nor a fused kernel saves, as traces name it
ARITHMETIC = re.compile(r"(Conv2D|MatMul)")


def train(sess, loss, train_op):
    """Trains in the windows of standard input; the word trace asks for a share of the time instead."""
    weights = sum(variable.shape.num_elements() for variable in tf.trainable_variables())
    asked = windows(weights, lambda: arithmetic_share(sess, [loss, train_op]))
    next(asked)
    while True:
        try:
            asked.send(float(sess.run([loss, train_op])[0]))
        except StopIteration:
            return


def windows(weights, share=None):
    """A generator that says how many weights the model has, takes the loss of each step, and ends with standard input.

    It reads how many steps a window has from a line, and answers with a line of JSON.
    """
    print(json.dumps({"weights": weights}), flush=True)  # ready
    for line in sys.stdin:
        if line.strip() == "trace":
            answer = {"share": share()}
        else:
            begin, processor = time.perf_counter(), time.process_time()
            losses = []
            for _ in range(int(line)):
                losses.append((yield))
            answer = {
                "seconds": (time.perf_counter() - begin) / len(losses),
                "cpu_seconds": (time.process_time() - processor) / len(losses),
                "losses": losses,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        print(json.dumps(answer), flush=True)


def arithmetic_share(sess, fetches):
    """The share of convolutions and matrix products in the time of all kernels of a step."""
    options, trace = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
    sess.run(fetches, options=options, run_metadata=trace)
    kernels = [node for device in trace.step_stats.dev_stats for node in device.node_stats]
    micros = [node.op_end_rel_micros - node.op_start_rel_micros for node in kernels]
    arithmetic = [ARITHMETIC.search(node.timeline_label) is not None for node in kernels]
    return sum(time for time, counts in zip(micros, arithmetic) if counts) / sum(micros)
