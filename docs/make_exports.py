"""Export public models to all targets, for the table of docs/public-models.md.

``python docs/make_exports.py`` takes the models of exported_models.py that run with the TensorFlow of this Python,
trains them, exports them with ``npu-shim export`` for tensorflow, onnx and atc, and writes the result to
exports.tsv. ``--help`` has the options. With TensorFlow 2.15 one of them needs keras_applications.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from exported_models import MODELS, ZOO, Model  # noqa: E402
from verified import Kept, check_only, checkout, edit, folder_of, git, markdown, parser, put, read, run  # noqa: E402

PAGE = os.path.join(HERE, "public-models.md")
_BEGIN, _END = "<!-- made by docs/make_exports.py -->\n", "<!-- end of exports -->\n"
_TARGETS = ("tensorflow", "onnx", "atc")
_COLUMNS = ("model", "source", "TensorFlow", "nodes", "tensorflow", "onnx", "atc", "line of atc in the README")


class Result(NamedTuple):
    """The result of a model.

    Attributes:
        name: of the entry.
        nodes: of the exported graph.
        tensorflow, onnx, atc: the largest relative difference from what the model itself predicts, or the error.
        line: in what the vendor's line of atc agrees, "" without such a line.
    """

    name: str
    nodes: int
    tensorflow: str
    onnx: str
    atc: str
    line: str


def export(folder: str, target: str) -> tuple[str, str]:
    """Export a model; return what the command prints, and the largest difference or the error.

    Args:
        folder: with what exported_models.py wrote.
        target: of the option ``--for``.
    """
    from npu_shim.cli import export as cli

    ports = read(os.path.join(folder, "ports.json"))
    command = [os.path.join(folder, ports["source"]), "-o", os.path.join(folder, target), "--for", target]
    command += ["--data", os.path.join(folder, "data.npz")]
    command += ["--soc-version", "Ascend310"] if target == "atc" else []
    for option in ("inputs", "outputs", "set"):
        command += ["--" + option, *ports[option]] if ports[option] else []
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = cli.main(command)
    if code:
        last = (errors if code == 2 else out).getvalue().strip().splitlines()[-1]
        return out.getvalue(), re.split(r"\. (?=[A-Z])", last.replace("npu-shim export: error: ", ""))[0]
    return out.getvalue(), f"{difference(folder, target):.0e}"


def difference(folder: str, target: str) -> float:
    """Return the largest difference between what the model itself predicted and its export."""
    ports = read(os.path.join(folder, "tensorflow", "model.json"))
    with np.load(os.path.join(folder, "data.npz")) as data, np.load(os.path.join(folder, "expected.npz")) as expected:
        inputs = {key: data[key].astype(each["dtype"]) for key, each in ports["inputs"].items()}
        wanted = dict(zip(ports["outputs"], [expected[key] for key in expected.files]))
    if target == "onnx":
        got = _run_onnx(os.path.join(folder, target, "model.onnx"), inputs, list(wanted))
    else:
        got = _run_frozen(os.path.join(folder, target, "model.pb"), ports, inputs)
    from npu_shim.exporting import proof  # imports TensorFlow

    return max(each.largest for each in proof.output_differences(wanted, got))


def _run_frozen(path: str, ports: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    import tensorflow.compat.v1 as tf

    definition = tf.GraphDef()
    with open(path, "rb") as stream:
        definition.ParseFromString(stream.read())
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.remapping = 2  # off, as in the proof of the command
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        tf.import_graph_def(definition, name="")
        feeds = {each["tensor"]: inputs[key] for key, each in ports["inputs"].items()}
        return dict(session.run({key: each["tensor"] for key, each in ports["outputs"].items()}, feeds))


def _run_onnx(path: str, inputs: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip(keys, session.run(list(keys), dict(inputs))))


def arguments(text: str) -> dict[str, str]:
    """Return the options of the first line of atc in a page or in the output of the command."""
    text = re.sub(r"\\\s*\n", " ", text)
    line = re.search(r"^.*\batc\b.*--model.*$", text, re.M)
    if line is None:
        return {}
    words = re.findall(r"'--[^']*'|--\w+[= ]\s*(?:\"[^\"]*\"|'[^']*'|[^\s`]+)", line.group())
    pairs = (re.split(r"[= ]\s*", word.strip("'").lstrip("-"), maxsplit=1) for word in words)
    return {name: value.strip("\"'") for name, value in pairs}


def agreement(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """Return in what two lines of atc agree, with both values where they do not."""
    said = []
    for option, word in (("input_shape", "inputs and shapes"), ("out_nodes", "outputs")):
        if option not in theirs:
            continue
        one, two = (sorted(each[option].replace(" ", "").split(";")) for each in (theirs, ours))
        said.append(f"same {word}" if one == two else f"{word} differ: `{theirs[option]}`, here `{ours[option]}`")
    return "; ".join(said)


def measure(name: str, model: Model, sources: str, work: str) -> Result:
    """Train a model, export it, and compare.

    Args:
        name, model: which.
        sources: the folder of the clones.
        work: an empty folder.
    """
    project, folder = os.path.join(work, "project"), os.path.join(work, "made")
    os.makedirs(project)
    checkout(model.repository, model.commit, model.folder, sources, project)
    start = os.path.join(project, model.folder)
    edit(start, model.edits)
    run([os.path.join(HERE, "exported_models.py"), name, folder], start, codes=(0,))
    made = {target: export(folder, target) for target in _TARGETS}
    nodes = re.search(r"(\d+) nodes", made["tensorflow"][0])
    line = ""
    if model.readme:
        page = git(ZOO[0], sources, "show", f"{ZOO[1]}:{model.readme}").decode("utf-8", "replace")
        theirs, ours = arguments(page), arguments(made["atc"][0])
        line = agreement(theirs, ours) if theirs and ours else "none"
    return Result(name, int(nodes.group(1)) if nodes else 0, *(made[target][1] for target in _TARGETS), line)


def kept() -> Kept:
    """Return the results."""
    return Kept("exports.tsv", Result, list(MODELS))


def table() -> str:
    """Return the table of all results, with a line that counts them."""
    made = [(MODELS[name], result) for name, result in kept().read().items()]
    equal = [sum(_is_equal(getattr(result, target)) for _, result in made) for target in _TARGETS]
    counts = ", ".join(f"{number} for {target}" for number, target in zip(equal, _TARGETS))
    rows = []
    for model, result in made:
        address = f"https://github.com/{model.repository}/tree/{model.commit}/{model.folder}".replace(" ", "%20")
        rows.append((f"[{result.name}]({address})", model.kind, model.tensorflow, *result[1:]))
    held_out = sum("held out" in model.kind for model, _ in made)
    return (
        f"{len(made)} models, {held_out} of them held out. Exported and equal: {counts}.\n\n{markdown(_COLUMNS, rows)}"
    )


def _is_equal(text: str) -> bool:
    return re.fullmatch(r"\de[+-]\d+", text) is not None and float(text) <= 1e-5


def main(arguments: Sequence[str] | None = None) -> int:
    """Export the models that run with this TensorFlow, and write the table."""
    options_parser = parser(__doc__)
    options = options_parser.parse_args(arguments)
    check_only(options_parser, options.only, MODELS)
    if not options.table:
        import tensorflow as tf

        for name, model in MODELS.items():
            if not tf.__version__.startswith(model.tensorflow + ".") or not re.search(options.only, name):
                continue
            if options.missing and name in kept().read():
                continue
            try:
                with folder_of(name, options.keep) as work:
                    made = measure(name, model, options.sources, work)
            except RuntimeError as error:
                print(name, error, sep="\n    ", file=sys.stderr, flush=True)
                continue
            print(*made, sep="\n    ", file=sys.stderr, flush=True)
            kept().add(made)
    put(table(), _BEGIN, _END, [PAGE])
    return 0


if __name__ == "__main__":
    sys.exit(main())
