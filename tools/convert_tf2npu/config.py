"""What the user chose: which rules act."""
from __future__ import annotations

from typing import NamedTuple, Tuple


class Settings(NamedTuple):
    """Which rules act: codes or their beginnings; an empty ``select`` means all."""
    select: Tuple[str, ...] = ()
    ignore: Tuple[str, ...] = ()

    def enabled(self, code: str) -> bool:
        """Whether a rule acts."""
        return (not self.select or code.startswith(self.select)) and not (
            self.ignore and code.startswith(self.ignore))
