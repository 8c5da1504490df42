"""The types of the entries of acceptance_tf1.py and acceptance_tf2.py."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from public_paths import Edit


class Defect(NamedTuple):
    """A defect that is planted in the original before its conversion.

    Attributes:
        kind: for the table, as in "rate 2 % higher".
        edits: that plant it.
    """

    kind: str
    edits: Sequence[Edit]


class Script(NamedTuple):
    """A public script, and how it is run.

    Attributes:
        repository, commit: on GitHub.
        kind: of program, for the table.
        tensorflow: the version it runs with, as in "1.15".
        folder: of the project in the repository, which is copied; "" for all of it.
        script: in the folder where it starts.
        start: that folder, in the project.
        arguments: of the script.
        data: arguments of public_data.py; the folder is one of the project.
        links: symbolic links to make, and their targets.
        edits: that make the script small.
        defect: to plant, or None.
    """

    repository: str
    commit: str
    kind: str
    tensorflow: str
    folder: str
    script: str
    start: str = ""
    arguments: str = ""
    data: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()
    edits: Sequence[Edit] = ()
    defect: Defect | None = None

    @property
    def name(self) -> str:
        """The path of the script on GitHub without the commit, which names the entry."""
        return "/".join(each for each in (self.repository, self.folder, self.start, self.script) if each)
