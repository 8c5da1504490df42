"""The settings that decide which rules act."""

from __future__ import annotations

from typing import NamedTuple

from ..facts.facts import Facts
from ..project.said_versions import SaidVersions


class Settings(NamedTuple):
    """The rules that act, and what they do.

    Attributes:
        select: codes or their beginnings; an empty tuple selects every rule.
        ignore: codes or their beginnings of rules that do not act.
        distributed: the distributed training that the rules convert: ``horovod``, ``tf_strategy``, ``auto`` for
            that of each program, or nothing.
        compat_v1: lift scripts of TensorFlow 1 to tf.compat.v1.
        main: the path of the entry script, or nothing.
        tf: the version of TensorFlow that the programs speak, ``1`` or ``2``, or nothing to find out.
        tf_files: the versions of single files.
        facts: what observed runs of the program saw; None without them.
        no_facts_for: the codes, or their beginnings, of rules that use no facts.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    distributed: str = ""
    compat_v1: bool = False
    main: str = ""
    tf: str = ""
    tf_files: SaidVersions = SaidVersions()
    facts: Facts | None = None
    no_facts_for: tuple[str, ...] = ()

    def enabled(self, code: str) -> bool:
        """Return True if the rule acts."""
        return (not self.select or code.startswith(self.select)) and not (self.ignore and code.startswith(self.ignore))
