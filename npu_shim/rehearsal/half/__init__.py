"""Rehearse half precision: the ops of the mixed-precision list round to 16 bits on the CPU.

* ``modes`` decides which ops compute in 16 bits. ``rounding`` rounds their inputs and outputs.
* ``half_precision`` has the function that users call.
"""
