"""Compare two recordings: match their values by name, measure differences, find the first that departs.

* ``read_recording`` reads the file of a run. ``ranks`` joins those of several ranks. ``matching`` pairs their streams.
* ``tolerances`` states which difference is allowed. ``comparison`` compares; ``seeds`` compares several pairs of runs.
"""

# Relative, for float32: 80 units of the last place. A cast of one tensor to float16 rounds by 2e-4, bfloat16 by 2e-3.
TOLERANCE = 1e-5
# Versions and devices compute the bias correction of Adam with a relative difference of 7e-6.
ELSEWHERE = 1e-4
