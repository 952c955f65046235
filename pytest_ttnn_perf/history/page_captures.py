"""Which capture the ops of a test come from: a record has sums of them, a capture has each op."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf.analysis.captures.detect import DATABASE, OP_TABLES, kind_of, op_table_of
from pytest_ttnn_perf.analysis.captures.device_metrics import gated_ops
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.records.baseline import ops_path
from pytest_ttnn_perf.records.ops import CALLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.records.observation import Observation
    from pytest_ttnn_perf.records.ops import OpGroups, OpTable

#: So many files are read for a page: each takes a moment.
_MOST_FILES: Final = 50
_gated: Final = once_per_table(gated_ops)
#: What ttnn-visualizer needs beside the database.
_CONFIG: Final = "config.json"


@dataclass(slots=True)
class CaptureSearch:
    """Finds the capture of a test among files; each is read once.

    ``folder`` is where tests ran, ``replay`` where captures of them were recorded, ``artifacts``
    where runs keep theirs. ``given`` are captures that were read already.
    """

    folder: Path
    artifacts: Path
    replay: Path | None = None
    given: tuple[OpTable, ...] = ()
    #: Tests that were not looked for, as too many files were read already.
    skipped: int = 0
    _read: dict[Path, OpTable | None] = field(default_factory=dict)

    def table_of(self, observation: Observation) -> OpTable | None:
        """Return the capture whose ops a test has; None where none is there any more."""
        ops = observation.ops
        if ops is None or ops.kernel_time == CALLS:
            return None
        for table in self.given:
            if is_of(ops, table):
                return table
        for file in self._files(observation):
            if file not in self._read and len(self._read) >= _MOST_FILES:
                self.skipped += 1
                return None
            found = self._table(file)
            if found is not None and is_of(ops, found):
                return found
        return None

    def _files(self, observation: Observation) -> Iterator[Path]:
        yield from (self.folder / name for name in observation.attached)
        if self.replay is not None:
            from pytest_ttnn_perf.observe.artifacts import recorded_files

            for name in dict.fromkeys(filter(None, (observation.test, observation.node_id))):
                yield from recorded_files(self.replay, name)

    def _table(self, file: Path) -> OpTable | None:
        if file not in self._read:
            try:
                has_ops = file.is_file() and kind_of(file) in OP_TABLES
                self._read[file] = op_table_of(file) if has_ops else None
            except TtnnPerfError:  # gone or changed since: the timeline is all that is lost
                self._read[file] = None
        return self._read[file]

    def report_folder(self, observation: Observation) -> Path | None:
        """Return the report of a test that ttnn-visualizer can open; None where there is none."""
        attached = (self.folder / name for name in observation.attached)
        folders = [file.parent for file in attached if file.name == DATABASE]
        folders.append(self.artifacts / "reports" / ops_path(observation.test).with_suffix(""))
        return next(filter(is_report_folder, folders), None)


def is_report_folder(folder: Path) -> bool:
    """Tell whether ttnn-visualizer can open a folder."""
    return (folder / DATABASE).is_file() and (folder / _CONFIG).is_file()


def is_of(ops: OpGroups, table: OpTable) -> bool:
    """Tell whether the ops of a test are those of a capture: all its regions, with all times."""
    whole = _gated(table)
    if whole is None:
        return False
    return all(_times(ops.of(region)) == _times(whole.of(region)) for region in ops.regions)


def _times(ops: OpGroups) -> Mapping[tuple[str, int, float], int]:
    return Counter((group.signature.op, group.count, group.total_ns) for group in ops.groups)
