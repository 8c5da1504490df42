"""The report of ``npu-shim doctor --log``: the first cause in logs, then the other errors."""

from __future__ import annotations

import json
import time
from typing import TextIO

from npu_shim._host import host_env
from npu_shim.distributed.ranktable.model import count_text
from npu_shim.troubles.logs import Explanation, Sighting
from npu_shim.troubles.table import CAUSE, CONSEQUENCE, HINT, WAITS

_HEADS = {
    CAUSE: "First cause:",
    HINT: "Possible cause:",
    WAITS: "A rank lost another one. The cause is in the logs of the other ranks; give all of them:",
    CONSEQUENCE: "The logs show only consequences; read the lines above the first one:",
}
_PARTS = ("symptom", "cause", "fix")
_MORE = 20  # sightings behind the first one
_WAIT_S, _STEP_S = 3.0, 1.0  # until progress is shown, and between two updates


class ReadProgress:
    """The amount of logs that was read, on one line of a terminal. Other streams get nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._size, self._is_shown = stream, 0, False
        self._can_draw = stream.isatty() and host_env.process_environ().get("TERM", "dumb") != "dumb"
        self._next_s = time.monotonic() + _WAIT_S

    def count_bytes(self, size: int) -> None:
        """Count bytes that were read, and draw the line unless it was drawn a moment ago."""
        self._size += size
        if self._can_draw and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _STEP_S
            self._stream.write(f"\rreading logs: {self._size / 1e9:.1f} GB")
            self._stream.flush()
            self._is_shown = True

    def remove_line(self) -> None:
        """Remove the line."""
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def to_text(explanation: Explanation) -> str:
    """Return the report as text."""
    sightings, paths, problems = explanation
    lines = [f"note: {path} was not read to its end: {problem}" for path, problem in problems.items()]
    if not sightings and problems:
        return "\n".join([*lines, "No known error in what was read."])
    if not sightings:
        return "\n".join([*lines, f"No known error in {count_text(len(paths), 'file')}."])
    first, *others = _first_sighting_of_each(sightings)
    lines.append(_HEADS[first.trouble.kind])
    lines += [f"  {_place_text(first)}", f"    {first.text}"]
    lines += [f"  {part}: {getattr(first.trouble, part).en.replace('`', '')}" for part in _PARTS]
    if others:
        lines += ["", "Also found, causes first:"]
    for sighting in others[:_MORE]:
        lines += [f"  {_place_text(sighting)}", f"    {sighting.trouble.symptom.en}".replace("`", "")]
    if others[_MORE:]:
        lines.append(f"  and {len(others) - _MORE} more; --json lists them")
    return "\n".join(lines)


def to_json(explanation: Explanation) -> str:
    """Return the report as JSON."""
    rows = [
        {
            "id": trouble.id,
            "kind": trouble.kind,
            "file": path,
            "line": line,
            "time": time or None,
            "text": shown,
            **{part: getattr(trouble, part).en for part in _PARTS},
        }
        for trouble, path, line, time, shown in explanation.sightings
    ]
    return json.dumps({"troubles": rows, "files": explanation.paths, "problems": explanation.problems}, indent=2)


def _first_sighting_of_each(sightings: list[Sighting]) -> list[Sighting]:
    """Return the first sighting of each trouble: ranks repeat each other."""
    return list({sighting.trouble.id: sighting for sighting in reversed(sightings)}.values())[::-1]


def _place_text(sighting: Sighting) -> str:
    return f"{sighting.path}:{sighting.line}" + (f", {sighting.time[:-3]}" if sighting.time else "")
