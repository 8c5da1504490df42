"""A project that needs no change, so that --check exits with 0."""

import sys

print(sys.argv)
