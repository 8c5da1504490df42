"""The migration of one program in one go: observe, convert with facts, verify, take back what departs.

``plan`` has the order of the steps, ``program`` converts the files of the script, ``bisection`` finds the rewrites to
take back, ``migration`` is the result as data, and ``reports`` shows it.
"""
