"""The vendor's interface for TensorFlow 2: ``import npu_shim.npu_device as npu``.

``npu.open().as_default()`` makes the device the default of eager code, tf.function and Keras, and on the CPU does the
same for a rehearsal::

    import npu_shim.npu_device as npu

    npu.global_options().precision_mode = "allow_mix_precision"
    npu.open().as_default()

Modules and names are those of the vendor's package ``npu_device``. Where that package serves a card, it does the work.
"""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "npu_shim.npu_device.npu_device": (
            "close gen_npu_ops global_npu_ctx global_options is_inf_nan_enabled npu_compat_function npu_run_context "
            "open set_device_sat_mode set_npu_loop_size"
        ),
        "npu_shim.npu_device.utils.scope": "keep_dtype_scope npu_recompute_scope",
        "npu_shim.npu_device.compat": "compat",
        "npu_shim.npu_device.configs": "configs",
        "npu_shim.npu_device.distribute": "distribute",
        "npu_shim.npu_device.ops": "ops",
        "npu_shim.npu_device.train": "train",
    },
)
