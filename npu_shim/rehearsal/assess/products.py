"""Figures of products for a bound on the time of a step, each with its public source."""

from __future__ import annotations

from typing import NamedTuple

from npu_shim.options.near import did_you_mean


class Product(NamedTuple):
    """A processor.

    Attributes:
        name: as given with ``--product``.
        flops: operations a second of the matrix unit in float16.
        bandwidth: bytes a second of the device's memory.
        memory: bytes of the device's memory; 0 if they are not known.
        source: of the figures.
    """

    name: str
    flops: float
    bandwidth: float
    memory: float
    source: str


PRODUCTS: dict[str, Product] = {
    product.name: product
    for product in (
        Product(
            "ascend910",
            256e12,
            1.2e12,
            32e9,
            "Huawei at Hot Chips 31 (2019) and H. Liao et al., HPCA 2021: Ascend 910, 256 TFLOPS in float16, "
            "HBM 1.2 TB/s",
        ),
        Product(
            "atlas-a3",
            376e12,
            1.6e12,
            64e9,
            "Huawei, Serving Large Language Models on CloudMatrix384, arXiv 2506.12708: one die of Ascend 910C, "
            "376 TFLOPS in bfloat16 and float16, HBM 64 GB at 1.6 TB/s",
        ),
    )
}


def parse_product(text: str) -> Product:
    """Return a product by its name, or by figures of another data sheet: ``TFLOPS,GB/s``, like ``320,1600``.

    Raises:
        ValueError: there is no such product.
    """
    if text in PRODUCTS:
        return PRODUCTS[text]
    parts = text.split(",")
    try:
        flops, bandwidth = (float(part) for part in parts)
    except ValueError:
        flops = bandwidth = 0.0
    if len(parts) == 2 and flops > 0 and bandwidth > 0:
        return Product(text, flops * 1e12, bandwidth * 1e9, 0, "given with --product")
    raise ValueError(
        f"--product {text}: no such product.{did_you_mean(text, list(PRODUCTS))} There are {', '.join(PRODUCTS)}. For "
        "another one, give the TFLOPS in float16 and the GB/s of its data sheet: --product 320,1600"
    )
