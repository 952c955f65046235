"""A run that is killed keeps what it has: its journal reads like a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import End, EndKind, MetricObservation, Observation, Run
from pytest_ttnn_perf.gate.record import Journal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return the journal of three tests, as a run leaves it until it ends."""
    metric = Metric("wall_time", "ns")
    journal = Journal(tmp_path / ".ttnn_perf" / "runs" / "a.jsonl")
    journal.open(Run(Hardware("host", "x86_64"), {}, label="é"))
    for name in ("a", "b\u2028", "c"):
        observed = MetricObservation(metric, (1.0, 2.0))
        observation = Observation(f"test_é.py::{name}", {metric.name: observed})
        observation = replace(observation, ended=End(EndKind.RAISED, "line 1\nline 2"))
        journal.add(observation.test, encode(observation))
    text = journal.file.read_text()
    journal.close()
    copied = tmp_path / "journal.jsonl"
    copied.write_text(text)
    return copied


def test_a_journal_cut_anywhere_in_its_tests_holds_the_whole_ones(journal: Path) -> None:
    content = journal.read_bytes()
    heading, *lines = content.splitlines(keepends=True)
    # A line is whole without its newline, too.
    ends = [sum(map(len, lines[: n + 1])) - 1 for n in range(len(lines))]
    around = {end + offset for end in ends for offset in (-1, 0, 1)}
    for length in sorted({*range(0, ends[-1], 7), *around}):
        journal.write_bytes(content[: len(heading) + length])
        assert len(read_run(journal).tests) == sum(end <= length for end in ends)


def test_a_journal_cut_in_its_heading_is_refused(journal: Path) -> None:
    content = journal.read_bytes()
    for length in range(content.index(b"\n")):
        journal.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"journal\.jsonl:1: "):
            read_run(journal)


def test_a_damaged_line_within_a_journal_is_refused_by_its_number(journal: Path) -> None:
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], lines[1], lines[2][:-9], lines[3]]))
    with pytest.raises(InputError, match=r"journal\.jsonl:3: expected one test"):
        read_run(journal)
