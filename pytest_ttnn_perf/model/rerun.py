"""How a user runs one test again."""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rerun:
    """How a user runs one test again from where they stand.

    ``folder`` leads from there to the folder that test ids start from; ``options`` are those of
    this run that the next one needs too; ``selection`` is what it was asked to run, if anything.
    """

    folder: str = ""
    options: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()

    def command(self, test: str) -> str:
        """Return the command, up to the bare update option."""
        words = ["pytest", posixpath.join(self.folder, test), *self.options]
        return f"{shlex.join(words)} --ttnn-perf-update"

    def accept_all(self) -> str:
        """Return the command that accepts the results of all tests."""
        selection = self.selection or ((self.folder,) if self.folder else ())
        words = ["pytest", *selection, *self.options]
        return f'{shlex.join(words)} --ttnn-perf-update=all --ttnn-perf-reason "why"'
