"""A change of baselines that is shown first and made after: what all such commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.report.edits import edits_listing
from pytest_ttnn_perf.workflow.edits import written_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pytest_ttnn_perf.model.edit import Edits

#: The shape in which lines may follow what was printed; the others are one document.
_TABLE = "table"


@dataclass(frozen=True, slots=True)
class Changing:
    """How a command is to go about it: only show it, in which shape, seen from where."""

    dry_run: bool
    shape: str
    here: Path


def shown_then_done(
    edits: Edits, asked: Changing, write: Callable[[], Iterable[str]], *, failed: bool = False
) -> Result:
    """Return the result that shows a change, and makes it once it is out.

    ``write`` returns what could not be written; an error that it raises is one of those.
    """
    text = edits_listing(edits, dry_run=asked.dry_run).text(asked.shape)
    if asked.dry_run:
        return Result(text)
    if not edits.tests:
        return Result(text, failed=failed)

    def then() -> Result:
        try:
            refused = list(write())
        except TtnnPerfError as error:
            refused = [str(error)]
        errors = "".join(f"ttnn-perf: not written: {each}\n" for each in refused)
        done = "" if refused or asked.shape != _TABLE else written_text(edits.files)
        return Result(done, failed=bool(refused), errors=errors)

    return Result(text, failed=failed, then=then)
