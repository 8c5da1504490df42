"""The facts that ``npu-shim observe`` saw in runs of a program: read, merged and looked up.

A fact belongs to an expression of a file: its kind, in how many runs and how often the expression was evaluated, and
for each attribute the values that it had. No data of the program is among them: sizes, types, names of devices, uses.
"""
