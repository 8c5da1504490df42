"""Compare dumps of the NPU with what TensorFlow computes, and explain overflow dumps.

``compare`` names the first operator whose output departs; ``overflow`` the first that overflowed, and whether that is
normal.
"""

from __future__ import annotations

import argparse

from npu_shim.cli import NUMBERS, USAGE_ERROR, parser_of, print_output
from npu_shim.cli._lines import print_error
from npu_shim.cli._paths import check_folder, check_output_folder
from npu_shim.cli._values import add_options, integer_parser, parse_positive

GROUP = NUMBERS
EXAMPLE = "npu-shim dumps compare card_dumps cpu_dumps"

_OF_COMPARE = """
--step N  compare this step only
--tolerance FACTOR  of all limits (default: 1)
"""
_OF_OVERFLOW = """
--loss-scale NUMBER|FILE  a fixed scale, or a file with STEP,SCALE on each line
"""
_OF_BOTH = """
-r --report DIR  write the whole result to DIR
--graph DIR  folder with graph files of the engine
"""
_DEPARTS = 1


def main(arguments: list[str]) -> int:
    """Compare dumps, or explain overflows.

    Args:
        arguments: "compare" or "overflow", folders and options.
    Returns:
        0 if all pairs agree or all overflows are normal, 1 if one does not, 2 if there is nothing to compare.
    """
    args = _parser().parse_args(arguments)
    for folder in [args.device, *args.graph, *([args.reference] if args.verb == "compare" else [])]:
        check_folder(folder, "Give the dump_path of the run.")
    check_output_folder("--report", args.report)
    try:
        return _run_compare(args) if args.verb == "compare" else _run_overflow(args)
    except ValueError as error:
        return print_error(f"npu-shim dumps {args.verb}", str(error))


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("dumps", "Reads dumps of the NPU: npu-shim dumps compare, npu-shim dumps overflow.")
    verbs = parser.add_subparsers(dest="verb", metavar="compare | overflow")
    verbs.required = True
    compare = verbs.add_parser(
        "compare",
        help="compare dumps with a reference",
        description="Compares dumps with what TensorFlow computes, or with dumps of another run. "
        "Exit code: 0 all pairs agree, 1 one departs, 2 nothing comparable.",
    )
    compare.add_argument("device", metavar="CARD_DIR", help="the dump_path of the run on the NPU")
    compare.add_argument(
        "reference", metavar="CPU_DIR", help="folder of the reference, or the dump_path of another run"
    )
    add_options(
        compare, _OF_COMPARE, step={"type": integer_parser(0)}, tolerance={"type": parse_positive, "default": 1.0}
    )
    overflow = verbs.add_parser(
        "overflow",
        help="explain overflow dumps",
        description="Explains overflow dumps. Exit code: 0 all are normal, 1 one is not, 2 nothing to read.",
    )
    overflow.add_argument("device", metavar="DIR", help="the dump_path of the run")
    add_options(overflow, _OF_OVERFLOW)
    for verb in (compare, overflow):
        add_options(verb, _OF_BOTH, graph={"action": "append", "default": []})
    return parser


def _run_compare(args: argparse.Namespace) -> int:
    from npu_shim.dumps import dump_comparison, reports
    from npu_shim.dumps.reports.comparison_text import to_text
    from npu_shim.rehearsal.reports import write_reports

    compared = dump_comparison.compare_dumps(args.device, args.reference, args.graph, args.step, args.tolerance)
    if args.report:
        write_reports(compared, args.report, reports.WRITERS)
    written = f"reports: {args.report}\n" if args.report else ""
    departs = compared.verdict == dump_comparison.DEPARTS
    return print_output((to_text(compared) + written).rstrip("\n"), _DEPARTS if departs else 0)


def _run_overflow(args: argparse.Namespace) -> int:
    from npu_shim.dumps import device_overflows
    from npu_shim.dumps.reports.overflows import WRITERS, to_text
    from npu_shim.rehearsal.reports import write_reports

    scale = None if args.loss_scale is None else device_overflows.parse_loss_scale(args.loss_scale)
    explained = device_overflows.find_overflows(args.device, args.graph, scale)
    if args.report:
        write_reports(explained, args.report, WRITERS)
    code = _DEPARTS if explained.verdict == device_overflows.NOT_NORMAL else 0
    return print_output(to_text(explained).rstrip("\n"), code if explained.overflows else USAGE_ERROR)
