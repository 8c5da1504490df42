"""Say what a card would make of a script's graph, without training.

The script runs with its own arguments until its first training step. That step does not run; its graph is taken and
assessed: support of its operators, partition, shapes, types, variables, memory, work and mixed precision.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from npu_shim._host.process_settings import decode_settings, encode_settings
from npu_shim.cli import MIGRATE, parser_of, print_output
from npu_shim.cli._guard import leave, need_tensorflow
from npu_shim.cli._lines import print_error
from npu_shim.cli._paths import check_file, check_output_file
from npu_shim.cli._values import MOST_RANKS, add_options, integer_parser, split_at_dashes
from npu_shim.distributed.world import world
from npu_shim.import_hook import tool

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Value
    from npu_shim.rehearsal.assess.assessment import Assessment
    from npu_shim.rehearsal.assess.capture import Capture
    from npu_shim.rehearsal.assess.of_capture import Settings

GROUP = MIGRATE
EXAMPLE = "npu-shim assess train.py -- --batch_size 64"

_COMMAND = "npu-shim assess"
_OPTIONS = """
--opp FILE  list of an installed CANN: npu_supported_ops.json or aic-*-ops-info*.json; may be given several times
--mixlist FILE  changes of the mixed-precision lists, as for modify_mixlist
--product NAME  bound the time of a step for {}, or for TFLOPS,GB/s of a data sheet, like 320,1600
--predict  predict the time of a training step on the card of --processor
--processor NAME  card of the prediction, such as {}
--rank-table FILE  rank table of the predicted job
--apply  print the options that the prediction proposes as an edit of the configuration
--json FILE  write the assessment as JSON; - prints it (docs/assess.md)
--html FILE  write it as one HTML page
--strict  return 1 if something would not run on the card
--ranks N  run the script on N ranks and report rank 0's step; with --predict, predict a job of N ranks
--alias  serve npu_bridge, npu_device and horovod from npu_shim
"""
_OF_RANK = "rank_{}"  # the assessment of a rank


def main(arguments: list[str]) -> int:
    """Assess a script.

    Args:
        arguments: options, the script, and after ``--`` its own arguments.
    Returns:
        0, or 1 with ``--strict`` if something would not run on the card, or 2 for wrong usage and for a script that
        ends without a training step in a graph.
    """
    own, rest = split_at_dashes(arguments)
    args = _parser().parse_args(own)
    check_file(args.script, "Give a Python script.")
    if args.rank_table:
        check_file(args.rank_table, "Give a rank table.")
    check_output_file("--json", args.json)
    check_output_file("--html", args.html)
    need_tensorflow()
    try:
        tool.make_importable()
        settings = _assess_settings(args)
    except ValueError as error:
        return print_error(_COMMAND, str(error))
    if args.ranks and not args.of_rank and settings.processor is None:
        return _assess_ranks(args, own, rest)
    from npu_shim.rehearsal.assess import until_stop
    from npu_shim.rehearsal.assess.capture import Capture

    capture = Capture(settings.folder, settings.processor is not None, _device_options)
    with until_stop.run_until_stop(capture, args.script, rest, args.alias):
        if not capture.graphs:
            return print_error(_COMMAND, _no_step_text(capture, args.script))
        from npu_shim.rehearsal.assess.of_capture import assess_capture

        gc.disable()  # a third of the time for large graphs, and the process ends soon
        assessed = assess_capture(capture, settings, args.script, rest)
    if args.of_rank:
        with open(os.path.join(args.of_rank, _OF_RANK.format(world().rank)), "w", encoding="utf-8") as stream:
            stream.write(encode_settings(assessed))
        return leave(print_output("", 0))
    return _print_and_exit(_write_report(assessed, args), assessed, args.strict)


def _assess_ranks(args: argparse.Namespace, own: list[str], rest: list[str]) -> int:
    """Assess the step of each rank of a job, and report that of rank 0."""
    from npu_shim.rehearsal.assess.assessment import Assessment, job_assessment

    with tempfile.TemporaryDirectory(prefix="npu_shim_assess_") as folder:
        launch = ["-m", "npu_shim", "launch", "--ranks", str(args.ranks), "--log-dir", folder]
        command = [sys.executable, *launch, "-m", "npu_shim", "assess", *own, "--of-rank", folder, "--"]
        code = subprocess.run([*command, *rest], stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
        paths = [os.path.join(folder, _OF_RANK.format(rank)) for rank in range(args.ranks)]
        if code or not all(map(os.path.exists, paths)):
            return print_error(
                _COMMAND, f"not all of the {args.ranks} ranks reached a training step. Their output is above"
            )
        ranks = []
        for path in paths:
            with open(path, encoding="utf-8") as stream:
                ranks.append(decode_settings(stream.read(), Assessment))
    assessed = job_assessment(ranks)
    return _print_and_exit(_write_report(assessed, args), assessed, args.strict)


def _parser() -> argparse.ArgumentParser:
    from npu_shim.rehearsal.assess.products import PRODUCTS
    from npu_shim.rehearsal.predict.op_times import DEFAULT_PROCESSOR

    parser = parser_of(
        "assess",
        "Runs a script until its first training step, and assesses the graph of that step: what a card "
        "runs of it, which shapes change, and how much memory and work it takes. Nothing is trained; no file stays.",
        usage="%(prog)s [options] script.py [-- ARGS]",
    )
    parser.add_argument("script", help="the script; its own arguments follow --")
    add_options(
        parser,
        _OPTIONS.format(", ".join(PRODUCTS), DEFAULT_PROCESSOR),
        opp={"action": "append"},
        ranks={"type": integer_parser(2, MOST_RANKS), "default": 0},
    )
    parser.add_argument("--of-rank", metavar="FOLDER", help=argparse.SUPPRESS)
    return parser


def _assess_settings(args: argparse.Namespace) -> Settings:
    from npu_shim.distributed.ranktable import reader
    from npu_shim.rehearsal.assess import operators, products
    from npu_shim.rehearsal.predict import op_times

    lists = operators.read_cann_lists(args.opp) if args.opp else operators.built_in_lists()
    if args.mixlist:
        lists = operators.with_mixlist_changes(lists, args.mixlist)
    product = products.parse_product(args.product) if args.product else None
    is_predicted = args.predict or args.processor or args.rank_table or args.apply
    processor = op_times.processor(args.processor or op_times.DEFAULT_PROCESSOR) if is_predicted else None
    from npu_shim.rehearsal.assess.of_capture import Settings

    table = reader.read_table(args.rank_table) if args.rank_table else None
    if table is not None and args.ranks not in (0, table.size):
        raise ValueError(f"--ranks {args.ranks}: {args.rank_table} has {table.size}. Leave one of the two out")
    ranks = table.size if table is not None else args.ranks or 1
    return Settings(lists, product, os.path.dirname(os.path.abspath(args.script)), processor, ranks, table)


def _device_options() -> dict[str, Value]:
    """Return the NPU options that the script has set in npu.global_options()."""
    from npu_shim.config.device_options import session_options
    from npu_shim.npu_device.settings import as_own_options, global_options

    return {name: value for name, value in session_options(as_own_options(global_options())).items() if value}


def _no_step_text(capture: Capture, path: str) -> str:
    if capture.eager_line:
        return (
            f"{path} trains in eager mode, at {capture.eager_line}, so there is no graph of a step. Put the step "
            "into a tf.function, or compile the model without run_eagerly=True"
        )
    if capture.failure:
        return (
            f"{path} did not reach a training step: {capture.failure}. Give the arguments with which it trains after --"
        )
    return (
        f"{path} ended without a training step: no session run, tf.function or Keras training that updates variables "
        "by gradients. Give the script that trains, and its arguments after --"
    )


def _write_report(assessed: Assessment, args: argparse.Namespace) -> str:
    from npu_shim.rehearsal.assess import report

    if args.html:
        pathlib.Path(args.html).write_text(report.to_html(assessed), encoding="utf-8")
    text = json.dumps(assessed.to_json(), indent=2)
    if args.json and args.json != "-":
        pathlib.Path(args.json).write_text(text + "\n", encoding="utf-8")
    plans = [(graph, graph.prediction.edit) for graph in assessed.graphs if graph.prediction and args.apply]
    edits = [line for graph, edit in plans for line in (f"# {graph.name}, {graph.line}", *edit) if edit]
    shown = ["", "the proposed options as an edit:", *edits] if edits else []
    return text if args.json == "-" else "\n".join([report.to_text(assessed), *shown])


def _print_and_exit(text: str, assessed: Assessment, strict: bool) -> int:
    return leave(print_output(text, 1 if strict and assessed.problems else 0))
