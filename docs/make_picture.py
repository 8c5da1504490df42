"""Draw the picture of the README: the terminal of ``npu-shim migrate`` on a public program of the record.

``python docs/make_picture.py`` needs the TensorFlow of that program, and the package rich, which draws. The run is
real: its lines come from the command, and only their colours from here.
"""

from __future__ import annotations

import os
import sys
import tempfile

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import verified  # noqa: E402
from record_list import read_programs  # noqa: E402

PICTURE = os.path.join(HERE, "images", "migrate.svg")
_PROGRAM = "hwalsuklee/tensorflow-mnist-VAE/run_main.py@1.15"
_COLUMNS = 108
_COLOURS = {  # by regular expression
    r"(?m)^\$ .*": "bold white",
    r"(?m)^npu-shim migrate:": "bright_black",
    r"(?m)^.* agree\.$": "bold green",
    r"NPU\d{3}": "cyan",
    r"\b\d+ rewrites, \d+ \w+ .*": "green",
    r"to change by hand, .*|To change by hand: .*": "yellow",
}
# The picture of rich without the fonts that it loads from elsewhere
_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


def run() -> list[str]:
    """Migrate the program. Return the command and the lines that it prints."""
    program = next(program for program in read_programs() if program.name == _PROGRAM)
    command = [
        "migrate",
        program.script,
        "-o",
        "migrated",
        "--steps",
        str(program.steps),
        "--",
        *program.arguments.split(),
    ]
    verified.use_stand_ins()
    with tempfile.TemporaryDirectory() as folder:
        project = os.path.join(folder, program.repository.split("/")[-1])
        verified.project(program, verified.SOURCES, project)
        output = verified.run(["-m", "npu_shim", *command], os.path.join(project, program.start), codes=(0,))
    return [f"$ npu-shim {' '.join(command)}", *output.splitlines()]


def draw(lines: list[str]) -> str:
    """Return the picture of a terminal as SVG."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=_COLUMNS, file=nowhere, force_terminal=True, highlight=False)
        text = Text("\n".join(lines))
        for pattern, colour in _COLOURS.items():
            text.highlight_regex(pattern, colour)
        console.print(text)
        return console.export_svg(title=_PROGRAM, theme=MONOKAI, code_format=_FORMAT, unique_id="terminal")


if __name__ == "__main__":
    picture = draw(run())
    os.makedirs(os.path.dirname(PICTURE), exist_ok=True)
    with open(PICTURE, "w", encoding="utf-8") as stream:
        stream.write(picture)
