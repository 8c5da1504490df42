"""First-run troubles of the vendor's stack: symptom, cause and fix. docs/on_a_card.md is made from the table."""

from __future__ import annotations

import re
from typing import NamedTuple


class Trouble(NamedTuple):
    """A row: ``pattern`` finds the symptom in the output of a process. An empty pattern never matches."""

    topic: str
    symptom: str
    pattern: str
    cause: str
    fix: str


_ENVIRONMENT, _DEVICE, _COMPILER, _MEMORY, _DATA, _NETWORK, _OTHER = (
    "Environment",
    "Driver and device",
    "Operators and compilation",
    "Memory",
    "Input data",
    "Several NPUs",
    "Other errors",
)
_TOOLKIT = "`source /usr/local/Ascend/ascend-toolkit/set_env.sh` in the shell that starts Python"
TABLE = (
    Trouble(
        _ENVIRONMENT,
        "`libascend_hal.so: cannot open shared object file`",
        r"libascend_hal\.so.*cannot open shared object",
        "The library belongs to the driver: the driver is missing, or its folder is not searched. In a container, the "
        "driver's folder is not mounted",
        "Install the driver, mount `/usr/local/Ascend/driver`, and add its `lib64/driver` and `lib64/common` to "
        "`LD_LIBRARY_PATH`",
    ),
    Trouble(
        _ENVIRONMENT,
        "`libascendcl.so` (or `libge_runner.so`, `libhccl.so` ...): `cannot open shared object file`",
        r"lib(ascendcl|ge_runner|ge_executor|graph|hccl|runtime|register|fmk_parser|aoe_tuning|indextransform|datatransfer)"
        r"\w*\.so.*cannot open shared object",
        "The toolkit's environment is not set in this shell",
        _TOOLKIT,
    ),
    Trouble(
        _ENVIRONMENT,
        "`No module named 'npu_bridge'` or `'npu_device'`",
        r"No module named '(npu_bridge|npu_device)'|npu_(bridge|device)( \(TensorFlow [\d.]+\))? is not installed",
        "The TensorFlow plugin is not installed for this Python, or its folder is not on `PYTHONPATH`",
        "Install the wheel of TF Adapter that has CANN's version (`pip install -t FOLDER npu_bridge-1.15.0-*.whl` or "
        "`npu_device-2.6.5-*.whl`) and `export PYTHONPATH=FOLDER:$PYTHONPATH`; for CANN before 8.0, run "
        "`Ascend-cann-tfplugin_*.run` and `source /usr/local/Ascend/tfplugin/set_env.sh`",
    ),
    Trouble(
        _ENVIRONMENT,
        "`No module named 'hccl'`, `'te'` or `'tbe'`",
        r"No module named '(hccl|te|tbe|topi|auto_tune)'",
        "The Python packages of the toolkit are not on `PYTHONPATH`",
        _TOOLKIT,
    ),
    Trouble(
        _ENVIRONMENT,
        "`No module named 'decorator'` (or `'sympy'`, `'attr'`, `'psutil'`, `'scipy'`)",
        r"No module named '(decorator|sympy|attr|attrs|psutil|scipy|cffi|yaml)'",
        "The operator compiler is Python code, and a package that it imports is missing",
        "`pip install attrs decorator sympy cffi pyyaml psutil scipy` for the Python that trains",
    ),
    Trouble(
        _ENVIRONMENT,
        "`undefined symbol: _ZN10tensorflow...`",
        r"undefined symbol: \S*tensorflow",
        "The plugin was built for another TensorFlow, or for another C++ ABI",
        "Use TensorFlow 1.15 with npu_bridge, or exactly 2.6.5 with npu_device; rebuild the plugin for a "
        "TensorFlow that you built yourself",
    ),
    Trouble(
        _ENVIRONMENT,
        "`Descriptors cannot be created directly`",
        r"Descriptors cannot",
        "protobuf is newer than this TensorFlow",
        "`pip install 'protobuf<3.21'`",
    ),
    Trouble(
        _DEVICE,
        "no `/dev/davinci0`",
        r"the driver shows no card",
        "The driver is not installed or not loaded, or a container does not have the device",
        "`npu-smi info` on the host must list the NPUs. Start the container with `--device /dev/davinci0 "
        "--device /dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc`, or with Ascend's container "
        "runtime",
    ),
    Trouble(
        _DEVICE,
        "`EL0007`, or `Permission denied` for `/dev/davinci0`",
        r"EL0007|Permission denied: '?/dev/davinci",
        "The user is not in the group of the device files, by default HwHiAiUser",
        "`usermod -a -G HwHiAiUser USER` and log in again, or install the driver with `--install-for-all`",
    ),
    Trouble(
        _DEVICE,
        "`EL0001`: device absent or abnormal",
        r"EL0001",
        "The NPU does not answer",
        "`npu-smi info` shows its health. Reset it (`npu-smi set -t reset -i ID -c 0`) or restart the host",
    ),
    Trouble(
        _DEVICE,
        "`EL0002` or `Set device failed, invalid device`",
        r"EL0002|Set device failed, invalid device",
        "`ASCEND_DEVICE_ID` is too large; in a container, NPUs are numbered anew from 0",
        "Export an `ASCEND_DEVICE_ID` that exists",
    ),
    Trouble(
        _DEVICE,
        "`EL0005`: resource busy; `the device is used`",
        r"EL0005|because the device is used",
        "Another process or container uses the NPU",
        "`npu-smi info` lists the processes. End them, or choose another `ASCEND_DEVICE_ID`",
    ),
    Trouble(
        _DEVICE,
        "operators are missing or the start fails after an update",
        "",
        "Driver, firmware, toolkit, operator package and plugin have different versions",
        "`npu-shim doctor` shows them. Toolkit, operator package and plugin must be of one version of CANN, and the "
        "driver one that its release page lists",
    ),
    Trouble(
        _COMPILER,
        "`EZ3002`, `EZ3003`, `EZ9010`: unsupported operator",
        r"EZ3002|EZ3003|EZ9010|E10501|E13002|E19010",
        "The operator package has no kernel for this operator, type or shape, or `ASCEND_OPP_PATH` is wrong",
        "Check `ASCEND_OPP_PATH`. Keep the op on the host with `npu_scope.without_npu_compile_scope()` and "
        "`mix_compile_mode=True`, or rewrite it; `npu-shim` reports such ops when it migrates a script (NPU2xx)",
    ),
    Trouble(
        _COMPILER,
        "`E40021` or `Failed to compile Op`",
        r"E40021|E40024|Failed to compile Op",
        "The operator compiler failed: a Python package is missing, the disk is full, or a process was killed",
        "Read the first error of the log in `~/ascend/log/debug/plog`. Empty `kernel_meta` and the folder of "
        "`op_compiler_cache_dir`. On a host with little memory, `export TE_PARALLEL_COMPILER=1`",
    ),
    Trouble(
        _COMPILER,
        "`is v1 control operator, which is not supported`",
        r"v1 control operator",
        "A graph with dynamic shapes has loops or conditions of TensorFlow 1",
        "`tf.enable_control_flow_v2()` and `tf.enable_resource_variables()` after the import, or "
        "`export ENABLE_FORCE_V2_CONTROL=1`",
    ),
    Trouble(
        _COMPILER,
        "the first step takes minutes, or each step compiles again",
        "",
        "The NPU compiles each new graph and each new shape",
        "Wait for the first step; then make shapes static ([static-shapes.md](static-shapes.md)) and keep "
        '`op_compiler_cache_mode="enable"`',
    ),
    Trouble(
        _MEMORY,
        "`EL0004`, `EL0019`, `halMemAlloc failed` or `out of memory`",
        r"EL0004|EL0019|EI0007|EI0011|halMemAlloc failed|out of memory",
        "The NPU has not enough free memory: another process uses it, or the graph needs more",
        "`npu-smi info` shows what is used. Reduce the batch size, use mixed precision, or change the shares "
        "`graph_memory_max_size` and `variable_memory_max_size`",
    ),
    Trouble(
        _DATA,
        "`E30008`: AI CPU operator execution time out, at GetNext",
        r"E30008|aicpu timeout",
        "The input pipeline on the host is slower than the time limit, often because of a large shuffle buffer",
        "Reduce `shuffle(buffer_size)`, prefetch, raise `op_execute_timeout`, or set `enable_data_pre_proc=False`",
    ),
    Trouble(
        _NETWORK,
        "`get rank id error` or `Call hcom_bind_model failed`",
        r"get rank id error|hcom_bind_model failed",
        "A function of hccl.manage.api was called before HCCL started",
        "Call `init_resource()` or `npu.open()` first",
    ),
    Trouble(
        _NETWORK,
        "`EI0001`: invalid environment variable",
        r"EI0001",
        "A variable of HCCL has a value that is not allowed",
        "`npu-shim doctor` lists the variables that are set",
    ),
    Trouble(
        _NETWORK,
        "`EI0004`: invalid rank table",
        r"EI0004",
        "The rank table is not JSON, lacks a rank, or does not match `RANK_SIZE`",
        "`npu-shim ranktable check $RANK_TABLE_FILE`",
    ),
    Trouble(
        _NETWORK,
        "`EI0014` or `EI0017`: invalid value, or missing key, in the rank table",
        r"EI0014|EI0017",
        "The rank table has the version of another product (910 and A2: 1.0, A3: 1.2 or 1.0, A5: 2.0), or a value that "
        "does not match the NPU",
        "`npu-shim ranktable check --product A5 $RANK_TABLE_FILE`, with your product; `npu-shim doctor` recognizes it",
    ),
    Trouble(
        _NETWORK,
        "`EJ0004`, `ra rdev init failed, ret [-17]` or `ranktable is inconsistent with the IP`",
        r"EJ0004|ra rdev init failed|ranktable is inconsistent with the IP",
        "`device_ip` in the rank table is not the address of the NPU",
        "Compare with `/etc/hccn.conf` or `hccn_tool -i ID -ip -g`; `npu-shim ranktable make` reads hccn.conf",
    ),
    Trouble(
        _NETWORK,
        "no `/etc/hccn.conf`, or it lacks an NPU",
        r"hccn\.conf",
        "The network ports of the NPUs have no addresses. In a container, the file is not mounted",
        "`hccn_tool -i ID -ip -s address A netmask M` for each NPU as root, or mount the file",
    ),
    Trouble(
        _NETWORK,
        "`EI0006` or `wait socket establish timeout`",
        r"EI0006|EI0015|socket establish timeout|get socket timeout",
        "A rank did not start within `HCCL_CONNECT_TIMEOUT` (120 s), failed earlier, or cannot be reached",
        "Look for the first error among all ranks. Raise `HCCL_CONNECT_TIMEOUT` if some ranks start later; check "
        "the links with `hccn_tool -i ID -ping -g address A`, and that all hosts have the same TLS setting "
        "(`hccn_tool -i ID -tls -g`)",
    ),
    Trouble(
        _NETWORK,
        "`EI0002`: the execution of a collective times out",
        r"EI0002",
        "Another rank failed, is slower than `HCCL_EXEC_TIMEOUT`, or has fewer steps",
        "Look for the first error among all ranks. Give each rank the same number of batches (`drop_remainder=True`)",
    ),
    Trouble(
        _NETWORK,
        "`EI0005`: inconsistent arguments between ranks, or all ranks hang",
        r"EI0005",
        "Ranks build different graphs, such as a summary on rank 0 only",
        "Build the same graph on each rank. On the CPU, npu_shim names the ranks and ops that differ",
    ),
    Trouble(
        _NETWORK,
        "`EI0008`: inconsistent CANN versions",
        r"EI0008",
        "The servers have different versions of CANN",
        "Install one version on all servers",
    ),
    Trouble(
        _NETWORK,
        "`EJ0001`: failed to initialize the HCCP process",
        r"EJ0001",
        "A process of the last training still runs",
        "End it and wait ten seconds",
    ),
    Trouble(
        _OTHER,
        "`E19999`, `EE9999`, `EZ9999` ...: inner error",
        r"E[A-Z1]9999|E19999",
        "The code says only where the error was found",
        "Read the lines above it, and the first error in `~/ascend/log/debug/plog`; "
        "`export ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=1` shows more",
    ),
)


def explain(text: str) -> list[Trouble]:
    """Return the troubles whose symptoms the output of a process has, in the order of the table."""
    return [trouble for trouble in TABLE if trouble.pattern and re.search(trouble.pattern, text)]


def markdown() -> str:
    """Return the table as sections of Markdown."""
    lines: list[str] = []
    for topic in dict.fromkeys(trouble.topic for trouble in TABLE):
        lines += [f"### {topic}", "", "| symptom | cause | fix |", "| --- | --- | --- |"]
        lines += [
            f"| {trouble.symptom} | {trouble.cause} | {trouble.fix} |" for trouble in TABLE if trouble.topic == topic
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
