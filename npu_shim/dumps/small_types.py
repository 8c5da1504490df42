"""The device's types that NumPy lacks: what their bits stand for.

A float of 8 bits is 2**(exponent - bias) * (1 + mantissa), without the 1 for the exponent 0. float8_e5m2 has Inf and
NaN, float8_e4m3fn NaN alone. The bits behind the sign of hifloat8 say how many its exponent has, 0 to 4; codes below 8
are powers of two, and the one of -0 is NaN.
"""

from __future__ import annotations

import numpy as np

STORED = {"bfloat16": "uint16", "complex32": "uint32"}  # as NumPy reads them
STORED.update(dict.fromkeys(("int4", "hifloat8", "float8_e5m2", "float8_e4m3fn", "float8_e8m0"), "uint8"))


def decode_numbers(name: str, raw: np.ndarray) -> np.ndarray:
    """Return the numbers that a row of stored ones stands for; the last of int4 may be padding."""
    if name == "bfloat16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    if name == "complex32":
        return raw.view(np.float16).astype(np.float32).view(np.complex64)
    if name == "int4":  # the lower bits first
        return (np.stack([raw & 15, raw >> 4], -1).reshape(-1) ^ 8).astype(np.int8) - np.int8(8)
    return _float_values(name)[raw] if name in STORED else raw


def _float_values(name: str) -> np.ndarray:
    """Return the values of the 256 codes of a float."""
    codes = np.arange(128)
    if name == "float8_e8m0":
        return np.append(2.0 ** (np.arange(255) - 127), np.nan).astype(np.float32)
    if name == "hifloat8":
        values = np.array(list(map(_decode_hifloat8, codes)))
    else:
        bits, bias, odd = (2, 15, [np.inf] + 3 * [np.nan]) if name == "float8_e5m2" else (3, 7, [np.nan])
        exponent, mantissa = np.divmod(codes, 1 << bits)
        values = np.ldexp(mantissa / (1 << bits) + (exponent > 0), np.maximum(exponent, 1) - bias)
        values[-len(odd) :] = odd
    table = np.concatenate([values, -values]).astype(np.float32)
    table[128] = np.nan if name == "hifloat8" else table[128]
    return table


def _decode_hifloat8(code: int) -> float:
    if code < 8 or code == 0x6F:
        return 0.0 if code == 0 else np.inf if code > 8 else 2.0 ** (code - 23)
    length = (int(code) >> 3).bit_length() - (code < 96)  # of the exponent: its sign, and a number without its first 1
    bits = min(3, 5 - length)
    exponent, first = (code >> bits) & ((1 << length) - 1), 1 << length >> 1
    size = exponent | first
    return float((1 + (code & ((1 << bits) - 1)) / (1 << bits)) * 2.0 ** (-size if exponent & first else size))
