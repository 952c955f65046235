"""``ttnn-perf merge RUN.json...``: the records of several shards and systems, judged as one."""

from __future__ import annotations

import json
from dataclasses import field, replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.detect import read_run
from pytest_ttnn_perf.cli.gate import gate_of
from pytest_ttnn_perf.report.markdown import COMMENT_BYTES, code, prose
from pytest_ttnn_perf.report.numbers import Listing, Result, json_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.cli.gate import Gate, Gated
    from pytest_ttnn_perf.records.hardware import Environment, Hardware
    from pytest_ttnn_perf.records.observation import Coverage, JudgedTest, Run
    from pytest_ttnn_perf.report.layout import Block


@dataclass(slots=True)
class Part:
    """The shards of one run on one system: no test is in two of them."""

    hardware: Hardware
    first: Run
    tests: dict[str, JudgedTest] = field(default_factory=dict)
    records: list[Path] = field(default_factory=list)
    complete: bool = True
    coverage: Coverage | None = None
    environment: Environment | None = None

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"{self.hardware.key}, {self.first.label}" if self.first.label else self.hardware.key

    def takes(self, hardware: Hardware, run: Run, tests: dict[str, JudgedTest]) -> bool:
        """Return whether tests can be another shard of it."""
        same = self.hardware == hardware and self.first.label == run.label
        return same and self.tests.keys().isdisjoint(tests)

    def add(self, record: Path, run: Run, tests: dict[str, JudgedTest]) -> None:
        """Add a shard."""
        self.tests.update(tests)
        self.records.append(record)
        self.complete = self.complete and run.complete
        known = self.environment or run.environment
        self.environment = known.shared_with(run.environment)
        if run.coverage is not None:
            # What ran on another system is no loss of this one.
            elsewhere = tuple(test for test in run.tests if test not in tests)
            own = replace(run.coverage, unasked=(*run.coverage.unasked, *elsewhere))
            self.coverage = self.coverage.joined(own) if self.coverage else own

    def run(self) -> Run:
        """Return all of it as one run."""
        whole = replace(self.first, hardware=self.hardware, tests=self.tests)
        whole = replace(whole, environment=self.environment or whole.environment)
        return replace(whole, complete=self.complete, coverage=self.coverage)


def run(options: argparse.Namespace) -> Result:
    """Judge several records as one; of another number of shards than ``--expect`` says, fail.

    Raises:
        InputError: a record or a baseline is unreadable, or both define a metric differently.
        UsageError: a record is named twice.
    """
    records, expected, shape = options.records, options.expect, options.format
    twice = next((record for record in records if records.count(record) > 1), None)
    if twice is not None:
        message = f"{twice} is named twice: it would count as two records"
        raise UsageError(message)
    gate = gate_of(options)
    store = gate.store()
    runs = {record: read_run(record) for record in records}
    parts = parts_of(iter(runs.items()))
    judged = [(part, gate.judge(part.run(), store, records=part.records)) for part in parts]
    lacking = None
    # The tests of a shard that did not report would pass by not being there.
    again = repeated(runs)
    found = len(records) - len(again)
    if expected is not None and found != expected:
        tries = "".join(f"; {record} is {first} again" for record, first in again.items())
        lacking = f"failed: expected {counted(expected, 'shard')}, found {found}{tries}"
    failed = lacking is not None or not all(gated.passed for _, gated in judged)
    shifted = any(gated.is_slower for _, gated in judged)
    if shape == "markdown":
        text = _markdown(judged, gate, store, lacking)
    elif shape == "gitlab":
        from pytest_ttnn_perf.report.ci import gitlab_text

        texts = [gitlab_text(gate.ci_report(gated, store)) for _, gated in judged]
        text = json_text([issue for text in texts for issue in json.loads(text)])
    else:
        text = _listing(judged, failed=failed, shifted=shifted, lacking=lacking).text(shape)
    return Result(text, failed=failed, shifted=shifted)


def repeated(runs: Mapping[Path, Run]) -> dict[Path, Path]:
    """Return the records that are another copy or try of a shard, and the record that has it first.

    Shards of one name and label that have a test in common are the same one. Where shards have no
    names, one must have all tests of the other: a control may be in each of them.
    """
    found: dict[Path, Path] = {}
    tests = {
        record: {
            (judged.observation.hardware or run.hardware, name)
            for name, judged in run.tests.items()
        }
        for record, run in runs.items()
    }
    for record, run in runs.items():
        for first, other in runs.items():
            if first is record:
                break
            shard, ours, theirs = run.environment.shard, tests[record], tests[first]
            alike = (run.label, shard) == (other.label, other.environment.shard)
            common = ours & theirs
            again = bool(common) if shard is not None else common in (ours, theirs)
            same = run.id is not None and run.id == other.id
            if same or (alike and again):
                found[record] = found.get(first, first)
                break
    return found


def parts_of(runs: Iterator[tuple[Path, Run]]) -> list[Part]:
    """Group the tests of records by system and label; a test that comes twice starts a new part."""
    parts: list[Part] = []
    for record, run in runs:
        by_hardware: dict[Hardware, dict[str, JudgedTest]] = {}
        for name, judged in run.tests.items():
            hardware = judged.observation.hardware or run.hardware
            assert hardware is not None, f"{name} has no hardware"  # decoding refuses that
            by_hardware.setdefault(hardware, {})[name] = judged
        for hardware, tests in by_hardware.items():
            part = next((known for known in parts if known.takes(hardware, run, tests)), None)
            if part is None:
                part = Part(hardware, run)
                parts.append(part)
            part.add(record, run, tests)
    return sorted(parts, key=lambda part: part.name)


def _listing(
    judged: Sequence[tuple[Part, Gated]], *, failed: bool, shifted: bool, lacking: str | None
) -> Listing:
    lines: list[Block] = []
    runs: list[object] = []
    rows: list[tuple[object, ...]] = []
    headings: tuple[str, ...] = ()
    for part, gated in judged:
        one = gated.listing()
        records = [str(record) for record in part.records]
        lines += [f"{part.name} ({counted(len(records), 'record')})", "", *one.lines, ""]
        assert isinstance(one.document, dict)
        about = {"key": part.hardware.key, "label": part.first.label, "records": records}
        runs.append({**about, **one.document})
        rows += [(part.hardware.key, part.first.label, *row) for row in one.rows]
        headings = ("key", "label", *one.headings)
    lines += [lacking] if lacking else []
    lines.append(_closing(judged))
    document = {"failed": failed, "shifted": shifted, "lacking": lacking, "runs": runs}
    return Listing(tuple(lines), document, headings, tuple(rows))


def _closing(judged: Sequence[tuple[Part, Gated]]) -> str:
    wrong = [part.name for part, gated in judged if not gated.passed]
    tests = sum(len(part.tests) for part, _ in judged)
    whole = f"{counted(len(judged), 'run')} of {counted(tests, 'test')}"
    return f"{whole}: failed: {', '.join(wrong)}" if wrong else f"{whole}: all passed"


def _markdown(
    judged: Sequence[tuple[Part, Gated]], gate: Gate, store: BaselineStore, lacking: str | None
) -> str:
    """Return the reports of all, in as much room as a comment has for one."""
    from pytest_ttnn_perf.report.markdown import markdown_text

    texts = [f"**{prose(_closing(judged))}**\n", *([f"{lacking}\n"] if lacking else [])]
    for part, gated in judged:
        report = markdown_text(
            gate.ci_report(gated, store), most_bytes=COMMENT_BYTES // len(judged)
        )
        texts.append(f"# {code(part.name)}\n\n{report}")
    return "\n".join(texts)
