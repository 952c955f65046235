"""What rules had promised of changes, beside what recorded runs measured of them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf._base.files import read_text
from pytest_ttnn_perf.analysis.captures.detect import read_run

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.records.finding import Prediction

#: How many records are looked at, the newest: a track record is of now.
_MOST_RECORDS: Final = 200
#: What a record has that holds some; most do not, and need not be decoded.
_MARK: Final = '"predictions"'


def predictions_in(folder: Path) -> tuple[Prediction, ...]:
    """Return the predictions of the newest run records of a folder, the oldest first.

    Files that cannot be read are passed over: other commands say what is wrong with them.
    """
    newest = sorted(folder.glob("*.json"))[-_MOST_RECORDS:]
    return tuple(chain.from_iterable(map(_predictions, newest)))


def _predictions(file: Path) -> tuple[Prediction, ...]:
    try:
        return read_run(file).predictions if _MARK in read_text(file) else ()
    except TtnnPerfError:
        return ()
