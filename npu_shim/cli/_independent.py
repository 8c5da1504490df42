"""The warning for a script of one device that is started on several ranks."""

from __future__ import annotations

import os
import shlex
from typing import Sequence

from npu_shim.import_hook import tool
from npu_shim.import_hook.project_files import project_root
from npu_shim.import_hook.rank_names import files_training_alone
from npu_shim.launching.preload import start_files


def independence_warning(target: Sequence[str], ranks: int) -> str | None:
    """Return the warning with the command that converts the script, None for a script that knows ranks.

    Args:
        target: the script, or ``-m`` and the module, with its arguments.
        ranks: of the job.
    """
    try:
        tool.make_importable()  # it reads imports
    except tool.ToolMissing:
        return None  # nor could it convert the script
    files = files_training_alone(*start_files(target)) if ranks > 1 else []
    if not files:
        return None
    if len(files) == 1 and target[0] != "-m":
        source = target[0]
        out = f"{os.path.splitext(os.path.basename(source))[0]}_{ranks}p"
    else:
        source = project_root(files[0])
        out = os.path.relpath(f"{source}_{ranks}p")
    command = ["convert_tf2npu", "-i", os.path.relpath(source), "-o", out, "-d", "tf_strategy"]
    return (
        f"warning: the {ranks} ranks train independent copies: the script neither asks for its rank nor averages "
        f"gradients. Convert it for several ranks: {' '.join(map(shlex.quote, command))}"
    )
