"""Export a trained model for inference, and prove that it computes what the source does.

The source becomes one frozen graph in its form for inference. That graph is written for a target, and run beside the
source on the same inputs.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
from typing import TYPE_CHECKING

from npu_shim._host.host_env import process_environ
from npu_shim._tensorflow.types import Graph, Value
from npu_shim.cli import EXPORT, parser_of, print_output
from npu_shim.cli._guard import leave, need_tensorflow
from npu_shim.cli._lines import print_error
from npu_shim.cli._paths import check_file, check_output_folder
from npu_shim.cli._values import integer_parser, parse_finite, split_at_dashes

if TYPE_CHECKING:
    from npu_shim.exporting.ports import Port
    from npu_shim.exporting.sources import Source

GROUP = EXPORT
EXAMPLE = "npu-shim export checkpoints -o exported --for serving"

TARGETS = ("tensorflow", "onnx", "serving", "npu", "atc")
_SOURCE = "a SavedModel, checkpoint, Keras file or frozen graph"
_DIFFERS = 1


def main(arguments: list[str]) -> int:
    """Export a model.

    Args:
        arguments: the source and options.
    Returns:
        0 if the exported model equals the source, 1 if it differs, 2 if there is no model to run.
    """
    parser = _parser()
    own, rest = split_at_dashes(arguments)
    args = parser.parse_args(own)
    args.arguments = rest
    missing = args.source and not os.path.exists(args.source) and not os.path.exists(args.source + ".index")
    batches, (low, high) = args.dynamic_batch, args.range
    for path, advice in ((args.script, "Give a Python script."), (args.data, "Give a file that numpy.savez wrote.")):
        if path:
            check_file(path, advice)
    check_output_folder("-o", args.out)
    for is_wrong, text in (
        (not args.script and not args.source, f"missing source. Give {_SOURCE}, or --script"),
        (missing, f"file not found: {args.source}. Give {_SOURCE}"),
        (not args.list and not args.out, "missing folder for the exported model. Give -o OUT, or --list"),
        (low >= high, f"--range {low:g} {high:g} is empty. Give the lower bound first"),
        (args.target == "atc" and not args.soc_version, "--for atc needs the processor. Give --soc-version NAME"),
        (len(batches) == 1, "--dynamic-batch needs two sizes or more"),
    ):
        if is_wrong:
            parser.error(text)
    need_tensorflow()
    process_environ().setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow warns of attributes that it has set itself
    from npu_shim._tensorflow import tf_api, tf_capture
    from npu_shim.exporting.graph_defs import ExportError

    tf_api.logging.set_verbosity(tf_api.logging.ERROR)
    try:
        source = _open_source(args)
        graph = tf_capture.import_into_new_graph(source.graph)
        return leave(_print_signatures(source, graph) if args.list else _export_model(args, source, graph))
    except (ExportError, tf_api.tf.errors.NotFoundError) as error:
        return print_error("npu-shim export", str(error))


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "export",
        "Writes a trained model in its form for inference, one frozen graph with named inputs and outputs, and runs "
        "source and export on the same inputs. Exit code: 0 equal, 1 different, 2 not exported.",
    )
    source = "SavedModel, checkpoint with .meta or its folder, Keras file, frozen .pb; with --script only a checkpoint"
    parser.add_argument("source", nargs="?", help=source)
    parser.add_argument("--script", metavar="FILE", help="run this until it predicts; its own arguments follow --")
    parser.add_argument("--alias", action="store_true", help="serve npu_bridge, npu_device and horovod to the script")
    parser.add_argument("-o", "--out", metavar="OUT", help="folder for the exported model")
    parser.add_argument("--for", dest="target", choices=TARGETS, default=TARGETS[0], help="default: %(default)s")
    parser.add_argument("--force", action="store_true", help="overwrite files of this name in OUT")
    parser.add_argument("--list", action="store_true", help="print signatures and candidates for inputs and outputs")
    port = "[KEY=]TENSOR[:SHAPE]"
    parser.add_argument("--inputs", nargs="+", default=[], metavar=port, help="like images:8,224,224,3; ? for any size")
    parser.add_argument("--outputs", nargs="+", default=[], metavar="[KEY=]TENSOR", help="like prob")
    parser.add_argument("--signature", metavar="NAME", help="signature of the source (default: serving_default)")
    parser.add_argument("--tags", default="serve", help="tags of the SavedModel, with commas (default: %(default)s)")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="constants in place of placeholders")
    parser.add_argument("--name", default="model", help="name of the files (default: %(default)s)")
    parser.add_argument(
        "--data", metavar="FILE.npz", help="inputs of the proof, an array for each; else they are drawn"
    )
    parser.add_argument(
        "--range", nargs=2, type=parse_finite, default=(0.0, 1.0), metavar=("LOW", "HIGH"), help="of inputs"
    )
    parser.add_argument(
        "--opset", type=integer_parser(1), metavar="N", help="version of ONNX's operators (default: that of tf2onnx)"
    )
    card = parser.add_argument_group("--for atc, npu, serving")
    card.add_argument("--soc-version", metavar="NAME", help="processor of the device, as npu-smi info shows it")
    precision = "of the operators on the device (default: %(default)s)"
    card.add_argument("--precision-mode", default="force_fp16", metavar="MODE", help=precision)
    batches = "batch sizes of an input with ? as its batch"
    card.add_argument("--dynamic-batch", nargs="+", type=integer_parser(1), default=[], metavar="N", help=batches)
    card.add_argument("--aipp", action="store_true", help="write a file for preprocessing of images on the device")
    card.add_argument("--opp", metavar="FILE", action="append", default=[], help="list of an installed CANN")
    return parser


def _parse_constants(texts: list[str]) -> dict[str, Value]:
    from npu_shim.exporting.graph_defs import ExportError

    constants = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            constants[name.replace(":0", "")] = ast.literal_eval({"true": "True", "false": "False"}.get(value, value))
        except (ValueError, SyntaxError):
            raise ExportError(f"--set {text} is not allowed. Write NAME=VALUE, like keep_prob=1.0 or training=False.")
    return constants


def _open_source(args: argparse.Namespace) -> Source:
    from npu_shim.exporting import scripts, sources

    given = args.script, args.arguments, args.source, args.alias
    return scripts.open_script(*given) if args.script else sources.open_source(args.source, args.tags)


def _print_signatures(source: Source, graph: Graph) -> int:
    from npu_shim.exporting import ports

    lines = [f"{source.path}: {source.kind}"]
    for name in source.signatures:
        inputs, outputs = ports.choose_inputs_and_outputs(source, graph, name)
        lines += ["", f"signature {name}", *_port_lines("inputs", inputs), *_port_lines("outputs", outputs)]
    if not source.signatures:
        outputs = ports.candidate_outputs(graph)
        inputs = ports.candidate_inputs(source.graph, graph, [port.tensor for port in outputs])
        lines += ["", "candidates", *_port_lines("inputs", inputs), *_port_lines("outputs", outputs)]
    return print_output("\n".join(lines))


def _port_lines(title: str, ports: list[Port]) -> list[str]:
    return [f"  {title}", *(f"    {port.text()}" for port in ports)] if ports else [f"  {title}: none"]


def _export_model(args: argparse.Namespace, source: Source, graph: Graph) -> int:
    from npu_shim.exporting import inference_model, ports, proof
    from npu_shim.exporting.graph_defs import ExportError
    from npu_shim.rehearsal.files.taken_back import restoring_files

    asked_in = map(ports.parse_asked_input, args.inputs)
    asked_out = [ports.parse_asked_output(text) for text in args.outputs]
    constants = {**source.constants, **_parse_constants(args.set)}
    inputs, outputs = ports.choose_inputs_and_outputs(source, graph, args.signature, asked_in, asked_out, constants)
    outputs, dropped = ports.drop_string_outputs_and_note(outputs, bool(asked_out), args.target)
    try:
        exported = inference_model.make_inference_model(
            source, graph, inputs, outputs, constants, args.target == "onnx"
        )
    except ValueError as error:  # of TensorFlow, which infers shapes
        raise ExportError(f"the graph does not fit the inputs: {str(error).splitlines()[0]} Give other --inputs.")
    values = (
        proof.load_input_values(args.data, exported.inputs)
        if args.data
        else proof.random_inputs(exported.inputs, *args.range)
    )
    with restoring_files() as files:
        os.makedirs(args.out, exist_ok=True)
        written = importlib.import_module(f"npu_shim.exporting.targets.{args.target}").write(exported, args, values)
        expected = proof.run_graph(exported.reference, exported.values, exported.inputs, exported.outputs, values)
        differences, most = proof.output_differences(expected, written.outputs), proof.output_tolerance(exported)
        equal = all(difference.largest <= most for difference in differences)
        changed = [] if args.force or not equal else files.changed_files()
        if changed:
            there = os.path.relpath(changed[0])
            raise ExportError(f"{there} is another export. Give --force to overwrite it, or another -o or --name.")
        files.stays = equal
    lines = [f"{source.path}: {source.kind}, {len(exported.graph.node)} nodes", *_port_lines("inputs", exported.inputs)]
    lines += [
        *_port_lines("outputs", exported.outputs),
        *(f"  {note}" for note in dropped + exported.notes + written.lines),
    ]
    lines += [f"  wrote {path}" for path in written.files if equal]
    lines += [f"  {difference.text()}" for difference in differences]
    differs = f"differs from the source by more than {most:g}: no file was written"
    lines.append("equal to the source" if equal else differs)
    return print_output("\n".join(lines), 0 if equal else _DIFFERS)
