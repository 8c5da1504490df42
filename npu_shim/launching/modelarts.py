"""Jobs of ModelArts: the rank table that the platform writes, and the place of this process in it.

Source: the pages "Managing Environment Variables of a Training Container" and "Starting a Preset Image's Boot File" of
ModelArts' user guide.
"""

from __future__ import annotations

import os
from typing import Mapping

TABLE = "/user/config/jobstart_hccl.json"


def is_training_container(environ: Mapping[str, str]) -> bool:
    """Return True in a training container of ModelArts.

    Args:
        environ: the variables of this process; so for all functions here.
    """
    return bool(environ.get("MA_JOB_DIR"))


def rank_table_path(environ: Mapping[str, str], path: str = TABLE) -> str:
    """Return the path of the rank table; an empty string if the platform writes none."""
    return environ.get("RANK_TABLE_FILE", "").strip() or (
        path if is_training_container(environ) and os.path.isfile(path) else ""
    )


def pod_name(environ: Mapping[str, str]) -> str:
    """Return the name of this pod, which is that of its host; an empty string if it is not known."""
    return environ.get("POD_NAME", "").strip() or (
        environ.get("HOSTNAME", "").strip() if is_training_container(environ) else ""
    )


def device_of_other_launcher(environ: Mapping[str, str]) -> str | None:
    """Return the device that this process was started for, if another one starts the ranks of the host.

    A preset image with NPUs starts its boot file once for each device.
    """
    device = environ.get("ASCEND_DEVICE_ID", "").strip()
    return device if is_training_container(environ) and environ.get("RANK_ID") and device not in ("", "0") else None
