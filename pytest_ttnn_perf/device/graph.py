"""A graph capture of one call: its report database exists on any build, without a profiler."""

from __future__ import annotations

import errno
import shutil
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._support.visible import text_of
from pytest_ttnn_perf.device.errors import cause_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_ttnn_perf.device.runtime import Runtime

_DATABASE: Final = "db.sqlite"
_RECORDING_OFF: Final = "disable_python_io_recording"
_ATTEMPTS: Final = 10
_TAKEN: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY})
_NEEDED: Final = ("begin_graph_capture", "end_graph_capture_to_file", "import_report")


@dataclass(slots=True)
class CapturedGraph:
    """What became of a capture: a database, or why there is none."""

    database: Path | None = None
    problem: str | None = None


@contextmanager
def captured_graph(runtime: Runtime, folder: Path) -> Iterator[CapturedGraph]:
    """Capture what runs meanwhile into a report database in ``folder``, which is nobody else's.

    A capture that fails costs the database alone: the model runs as it would without.
    """
    captured = CapturedGraph()
    graph = getattr(runtime.ttnn, "graph", None)
    missing = [name for name in _NEEDED if not hasattr(graph, name)]
    if missing:
        captured.problem = f"this ttnn has no graph.{missing[0]}"
        yield captured
        return
    assert graph is not None
    captured.problem = _begun(graph, folder)
    if captured.problem is not None:
        yield captured
        return
    try:
        yield captured
    except BaseException:
        _give_up(graph)  # the model's own error is what counts
        raise
    _end(graph, folder, captured)


def keep(folder: Path, place: Path) -> None:
    """Put the folder of a capture in its place; one that is there goes.

    A folder is moved whole: of captures that are kept at once, one stays.

    Raises:
        OSError: it cannot be moved.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    before = folder.with_name(f"{folder.name}-before")
    for attempt in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            place.rename(before)
        shutil.rmtree(before, ignore_errors=True)
        try:
            folder.rename(place)
        except OSError as error:  # another process was quicker
            if error.errno not in _TAKEN or attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _begun(graph: Any, folder: Path) -> str | None:
    """Begin a capture; return why there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _DATABASE).unlink(missing_ok=True)  # that of an earlier capture
        graph.begin_graph_capture(graph.RunMode.NORMAL)
    except Exception as error:  # noqa: BLE001 (whatever a release raises: no capture then)
        return _first_line(error)
    try:
        if "torch" not in sys.modules and hasattr(graph, _RECORDING_OFF):
            # Otherwise every op imports torch, which ttnn itself has loaded where there is one.
            getattr(graph, _RECORDING_OFF)()
    except Exception as error:  # noqa: BLE001
        _give_up(graph)
        return _first_line(error)
    return None


def _end(graph: Any, folder: Path, captured: CapturedGraph) -> None:
    report, database = folder / "graph_capture.json", folder / _DATABASE
    try:
        graph.end_graph_capture_to_file(str(report))
    except Exception as error:  # noqa: BLE001
        _give_up(graph)
        captured.problem = _first_line(error)
        return
    try:
        graph.import_report(str(report), str(folder))
    except Exception as error:  # noqa: BLE001
        captured.problem = _first_line(error)
        return
    if database.exists():
        captured.database = database
    else:
        captured.problem = "the capture was imported, but there is no db.sqlite"


def _give_up(graph: Any) -> None:
    with suppress(Exception):
        graph.end_graph_capture()


def _first_line(error: Exception) -> str:
    lines = cause_of(text_of(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
