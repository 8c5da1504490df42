"""The vendor's module paths: the table, its generator, and ``modules``, which Python imports from npu_shim."""
