"""Numbers of reports with units that fit."""

from __future__ import annotations


def amount_text(number: float, unit: str, base: int = 1000) -> str:
    """Return a number with a prefix: ``amount_text(3.2e9, "FLOP")`` is "3.20 GFLOP"."""
    for prefix in ("", "K" if base == 1024 else "k", "M", "G", "T", "P"):
        if abs(number) < base or prefix == "P":
            break
        number /= base
    infix = "i" if base == 1024 and prefix else ""
    return f"{number:.0f} {unit}" if not prefix else f"{number:.2f} {prefix}{infix}{unit}"


def duration_text(seconds: float) -> str:
    """Return seconds in a unit that fits."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.2f} us" if seconds >= 1e-8 or not seconds else "less than 0.01 us"
