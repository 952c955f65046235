"""The words of commands that read recorded runs, and of ``doctor``."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, read_run
from pytest_ttnn_perf.cli.baseline_edits import select_tests
from pytest_ttnn_perf.cli.captures import presumed_kind_of
from pytest_ttnn_perf.cli.common import add_format, add_gate, add_window, from_here, newest_record
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.finding import RuleOutcome, Severity
from pytest_ttnn_perf.core.settings import Checklist, Missing, find_root, project_settings
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.core.verdict import WITHOUT_BASELINE, Reason
from pytest_ttnn_perf.gate.health import health_of, lost_tests
from pytest_ttnn_perf.gate.judging import (
    failing_verdicts,
    judge_run,
    summary_options_of,
    violations,
)
from pytest_ttnn_perf.gate.record import ci_job
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.report.findings import VALIDITY, finding_document
from pytest_ttnn_perf.report.markdown import COMMENT_BYTES, code, prose
from pytest_ttnn_perf.report.sentences import Rerun, command_line, place_of, sentence
from pytest_ttnn_perf.report.tables import Column, Columns, Line, Listing, Result, json_text
from pytest_ttnn_perf.report.terminal import summary_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import CiJob, Environment, Hardware
    from pytest_ttnn_perf.core.observation import Coverage, JudgedTest, Run
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.core.verdict import Shift, Verdict
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.tables import Block
    from pytest_ttnn_perf.report.terminal import SummaryOptions


# ``ttnn-perf gate RUN.json``: judge a run that was recorded elsewhere.

_COLUMNS: Final[Columns[tuple[JudgedTest, Verdict]]] = Columns(
    Column("test", lambda row: row[0].observation.test),
    Column("metric", lambda row: row[1].metric.name),
    Column("outcome", lambda row: row[1].outcome.value),
    Column("change", lambda row: row[1].change),
    Column("limit", lambda row: row[1].limit),
    Column("provisional", lambda row: row[1].provisional),
    Column("sentence", lambda row: sentence(row[1])),
)


def gate_document(
    tests: Sequence[JudgedTest],
    *,
    failed: bool,
    complete: bool,
    shift: Shift | None,
    lost: Sequence[str] = (),
) -> dict[str, object]:
    """Return the result of a gate."""
    verdicts = [(judged, verdict) for judged in tests for verdict in judged.verdicts]
    return {
        "failed": failed,
        "shifted": shift is not None,
        "shift": shift.change if shift else None,
        "complete": complete,
        "lost": list(lost),
        "verdicts": [
            {**members, "by_op": judged.by_op if verdict.is_of_changed_time else None}
            for members, (judged, verdict) in zip(_COLUMNS.objects(verdicts), verdicts, strict=True)
        ],
        "findings": [
            {"test": judged.observation.test, **finding_document(finding)}
            for judged in tests
            for finding in judged.observation.findings
            if finding.outcome is RuleOutcome.FOUND
        ],
    }


class Gate(Struct, frozen=True):
    """The settings that recorded runs are judged by, and the CI job that reads the result."""

    settings: Settings
    rerun: Rerun
    job: CiJob

    def store(self) -> BaselineStore:
        """Return the baselines.

        Raises:
            InputError: there are none.
        """
        baselines = self.settings.baselines
        if not baselines.is_dir():
            raise InputError(baselines, "expected a folder of baselines, found none")
        return BaselineStore(baselines)

    def judge(self, run: Run, store: BaselineStore, *, records: Sequence[Path]) -> Gated:
        """Judge a run; ``records`` are where it was read.

        Raises:
            InputError: it has no tests, or defines a metric other than its baseline does.
        """
        if not run.tests:
            raise InputError(records[0], "the run has no tests: nothing was judged")
        run = judge_run(run, store, self.settings)
        # Another unit is not a result but an input that belongs to other baselines.
        for name, judged in run.tests.items():
            for verdict in judged.verdicts:
                if verdict.reason is Reason.OTHER_DEFINITION:
                    raise InputError(records[0], f"{name}: {sentence(verdict)}")
        rerun = replace(self.rerun, records=tuple(map(str, records)))
        summary_options = summary_options_of(
            list(run.tests.values()), self.settings, rerun=rerun, shift=run.shift
        )
        health = health_of(run, store, self.settings)
        return Gated(run, replace(summary_options, health=health))

    def ci_report(self, gated: Gated, store: BaselineStore) -> CiReport:
        """Return what reports for CI are made of."""
        from pytest_ttnn_perf.gate.record import ci_report

        return ci_report(
            gated.run,
            self.settings,
            store,
            summary_options=gated.summary_options,
            job=self.job,
            record=", ".join(gated.summary_options.rerun.records),
        )


class Gated(Struct, frozen=True):
    """A run that was judged anew, as the settings say."""

    run: Run
    summary_options: SummaryOptions

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is gated."""
        return not any(judged.verdicts for judged in self.run.tests.values())

    @property
    def passed(self) -> bool:
        """Whether it is whole, and no test of it failed or was lost."""
        wrong = self.is_empty or self.summary_options.failed or self.summary_options.health.lost
        return self.run.complete and not wrong

    @property
    def is_slower(self) -> bool:
        """Whether its machine is slower as a whole."""
        return self.run.shift is not None and self.run.shift.worse

    def listing(self) -> Listing:
        """Lay it out."""
        tests = list(self.run.tests.values())
        document = gate_document(
            tests,
            failed=not self.passed,
            complete=self.run.complete,
            shift=self.run.shift,
            lost=self.summary_options.health.lost,
        )
        verdicts = [(judged, verdict) for judged in tests for verdict in judged.verdicts]
        lines: list[Block] = [*summary_lines(tests, summary_options=self.summary_options)]
        if not self.run.complete:
            lines.append(f"failed: the run was cut short after {counted(len(tests), 'test')}")
        if self.is_empty:
            lines.append("failed: nothing was gated: the run has only metrics that are not")
        return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(verdicts))


def run_gate(options: argparse.Namespace) -> Result:
    """Judge a recorded run against the baselines.

    Raises:
        InputError: the record or a baseline is unreadable, or both define a metric differently.
    """
    gate, shape = gate_of(options), options.format
    store = gate.store()
    gated = gate.judge(read_run(options.record), store, records=[options.record])
    if shape == "markdown":
        from pytest_ttnn_perf.report.markdown import markdown_text

        text = markdown_text(gate.ci_report(gated, store))
    elif shape == "gitlab":
        from pytest_ttnn_perf.report.ci import gitlab_text

        text = gitlab_text(gate.ci_report(gated, store))
    else:
        text = gated.listing().text(shape)
    return Result(text, failed=not gated.passed, shifted=gated.is_slower)


def gate_of(options: argparse.Namespace) -> Gate:
    """Return how recorded runs are judged: as the project does, or as the options say."""
    settings = project_settings()
    if options.missing:
        settings = replace(settings, missing=Missing(options.missing))
    if options.checklist:
        settings = replace(settings, checklist=Checklist(options.checklist))
    rerun = Rerun()
    if options.baselines is not None:
        settings = replace(settings, baselines=options.baselines)
        rerun = Rerun(options=("--ttnn-perf-baselines", str(options.baselines)))
    return Gate(settings, rerun, ci_job(os.environ, find_root(Path.cwd())))


# ``ttnn-perf merge RUN.json...``: the records of several shards and systems, judged as one.


class Part(Struct):
    """The shards of one run on one system: no test is in two of them."""

    hardware: Hardware
    first: Run
    tests: dict[str, JudgedTest] = {}
    records: list[Path] = []
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


def run_merge(options: argparse.Namespace) -> Result:
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
        text = _merge_listing(judged, failed=failed, shifted=shifted, lacking=lacking).text(shape)
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


def _merge_listing(
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


# ``ttnn-perf status``: what is stored, what the last run said of it, and what is missing.


class Stored(Struct, frozen=True):
    """What is in the folder of baselines."""

    folder: str
    keys: tuple[str, ...]
    tests: int
    metrics: int


class LastRun(Struct, frozen=True):
    """The newest run record, judged against the baselines as they are now.

    ``failed`` and ``without_baseline`` have tests with what is wrong: what they measured, or that
    there is nothing to compare it with. ``without_result`` are tests that have a baseline, and were
    not measured in a full run.
    """

    record: str
    gated: Gated
    failed: tuple[tuple[str, str], ...]
    without_baseline: tuple[tuple[str, str], ...]
    without_result: tuple[str, ...]

    @property
    def outcomes(self) -> dict[str, int]:
        """How many metrics have each verdict."""
        tests = self.gated.run.tests.values()
        found = Counter(verdict.outcome.value for judged in tests for verdict in judged.verdicts)
        return dict(sorted(found.items()))

    def document(self) -> dict[str, object]:
        """Return it as plain JSON."""
        run = self.gated.run
        return {
            "record": self.record,
            "started_at": run.environment.started_at,
            "commit": run.environment.commit,
            "dirty": run.environment.dirty,
            "label": run.label,
            "key": run.hardware.key if run.hardware else None,
            "passed": self.gated.passed,
            "complete": run.complete,
            "shifted": run.shift is not None,
            "tests": len(run.tests),
            "outcomes": self.outcomes,
        }


def run_status(options: argparse.Namespace) -> Result:
    """Return what is stored and what the last run said.

    Raises:
        InputError: a baseline or the newest record is malformed.
    """
    settings = project_settings()
    return Result(_listing(_stored(settings), last_run(settings)).text(options.format))


def gate_here(settings: Settings) -> Gate:
    """Return how recorded runs are judged in this project."""
    return Gate(settings, Rerun(), ci_job(os.environ, find_root(Path.cwd())))


def last_run(settings: Settings) -> LastRun | None:
    """Return the last run; None if there is none.

    Raises:
        InputError: its record or a baseline is malformed.
    """
    record = newest_record(settings)
    if record is None:
        return None
    store = BaselineStore(settings.baselines)
    gated = gate_here(settings).judge(read_run(record), store, records=[record])
    tests = gated.run.tests
    return LastRun(
        str(record),
        gated,
        tuple((name, wrong) for name, each in tests.items() for wrong in _wrong(each, settings)),
        tuple((name, why) for name, each in tests.items() for why in _incomparable(each)),
        tuple(lost_tests(gated.run, store)),
    )


def _wrong(judged: JudgedTest, settings: Settings) -> Iterator[str]:
    yield from judged.observation.problems
    for verdict in failing_verdicts(judged, settings):
        if verdict.outcome not in WITHOUT_BASELINE:
            yield f"{verdict.outcome.value}: {sentence(verdict)}"
    for finding in violations(judged, settings.checklist):
        yield f"{finding.code} {finding.name}: {finding.reason or 'found'}"


def _incomparable(judged: JudgedTest) -> Iterator[str]:
    for verdict in judged.verdicts:
        if verdict.outcome in WITHOUT_BASELINE:
            yield f"{verdict.outcome.value}: {sentence(verdict)}"


def _stored(settings: Settings) -> Stored:
    keys: set[str] = set()
    tests = metrics = 0
    for file in (
        BaselineStore(settings.baselines).all_files() if settings.baselines.is_dir() else ()
    ):
        keys.add(file.content.hardware.key)
        tests += len(file.content.tests)
        metrics += sum(len(test.metrics) for test in file.content.tests.values())
    return Stored(str(from_here(settings.baselines)), tuple(sorted(keys)), tests, metrics)


def _listing(stored: Stored, last: LastRun | None) -> Listing:
    steps = tuple(_next(stored, last))
    failed, incomparable = (last.failed, last.without_baseline) if last else ((), ())
    lost = last.without_result if last else ()
    document = {
        "baselines": {
            "folder": stored.folder,
            "keys": list(stored.keys),
            "tests": stored.tests,
            "metrics": stored.metrics,
        },
        "last_run": last.document() if last else None,
        "failed": [{"test": test, "why": why} for test, why in failed],
        "without_baseline": [{"test": test, "why": why} for test, why in incomparable],
        "without_result": list(lost),
        "next": list(steps),
    }
    rows = (
        *(("failed", *each) for each in failed),
        *(("without_baseline", *each) for each in incomparable),
        *(("without_result", test, "") for test in lost),
    )
    lines = (*_lines(stored, last), *(f"next: {step}" for step in steps))
    return Listing(lines, document, ("state", "test", "why"), rows)


def _lines(stored: Stored, last: LastRun | None) -> Iterator[Block]:
    metrics, tests = counted(stored.metrics, "metric"), counted(stored.tests, "test")
    keys = f", for {', '.join(stored.keys)}" if stored.keys else ""
    yield f"baselines: {metrics} of {tests} in {stored.folder}{keys}"
    if last is None:
        yield "last run: none"
        return
    run = last.gated.run
    environment = run.environment
    commit = f", commit {environment.commit}" if environment.commit else ""
    dirty = " (dirty)" if environment.dirty else ""
    label = f", {run.label}" if run.label else ""
    started = environment.started_at or "time unknown"
    yield f"last run: {last.record}, {started}{commit}{dirty}{label}"
    counts = ", ".join(f"{count} {name}" for name, count in last.outcomes.items())
    verdict = "passed" if last.gated.passed else "failed"
    cut = "" if run.complete else ", and was cut short"
    yield Line(
        f"{counted(len(run.tests), 'test')}: {counts or 'nothing gated'}; it {verdict}{cut}",
        bad=not last.gated.passed,
    )
    for test, why in (*last.failed, *last.without_baseline):
        yield Line(f"{test}: {why}", bad=True)
    for test in last.without_result:
        yield f"{test}: has a baseline, and was not measured"


def _next(stored: Stored, last: LastRun | None) -> Iterator[str]:
    """Yield the commands that lead on."""
    if last is not None and last.failed:
        yield command_line("ttnn-perf", "explain", last.failed[0][0])
    if not stored.tests or (last is not None and last.without_baseline):
        yield "pytest --ttnn-perf-update=new"
    elif last is None:
        yield "pytest --ttnn-perf"


# ``ttnn-perf explain WHAT``: what is known of a rule, a test of the last run, or a file.

#: What files of profilers and records end with: no test is called so.
_CAPTURES: Final = frozenset({".csv", ".gz", ".json", ".log", ".sqlite", ".txt"})


def run_explain(options: argparse.Namespace) -> Result:
    """Return what is known; the exit code says nothing of a verdict.

    Raises:
        InputError: a file is malformed.
        UsageError: there is nothing of this name.
    """
    what, shape = options.what, options.format
    file = Path(what)
    if not _exists(file):
        if file.suffix in _CAPTURES and "::" not in what:
            message = f"{what}: there is no such file"
            raise UsageError(message)
        if _is_test(what):
            return Result(_of_last_run(what).text(shape))
        try:
            return _command("rules", what, shape)
        except UsageError as error:
            if str(error).endswith("?"):  # a rule that is near is what was meant
                raise
            message = f"{error}; a test is named by its id, such as test_model.py::test_x"
            raise UsageError(message) from error
    if file.suffix == ".json" and file.parent.name == "steps":
        message = f"{what} is the record of a step: ttnn-perf journal shows it beside the others"
        raise UsageError(message)
    if not file.is_dir() and presumed_kind_of(file) is ArtifactKind.RUN_RECORD:
        return Result(_judged(file, ()).text(shape))
    checked = replace(_command("check", place_of(what), shape), failed=False)
    if shape != "json" or not checked.text:
        return checked
    return replace(checked, text=json_text(_found_first(json.loads(checked.text))))


def _found_first(document: dict[str, Any]) -> dict[str, Any]:
    """Return what the checklist found of a capture, the most worth first; the rest is counted.

    Its own order is that of the rules: a reader who sees the beginning alone would see nothing.
    """
    rules = document.pop("rules", [])
    found = [each for each in rules if each["outcome"] == RuleOutcome.FOUND.value]
    others = Counter(each["outcome"] for each in rules if each not in found)
    found.sort(key=_worth)
    told = [
        {name: value for name, value in each.items() if value not in (None, "", [], False)}
        for each in found
    ]
    return {"found": told, "others": dict(sorted(others.items())), **document}


def _worth(finding: dict[str, Any]) -> tuple[object, ...]:
    """Return what sorts findings as a table has them: doubts first, upper bounds late."""
    saving_ns = finding["saving_ns"]
    return (
        not finding["code"].startswith(VALIDITY),
        finding["severity"] != Severity.ERROR.value,
        saving_ns is None,
        finding["at_most"],
        -(saving_ns or 0.0),
        finding["code"],
    )


def _exists(file: Path) -> bool:
    try:
        return file.suffix != ".py" and file.exists()
    except OSError:  # no name that a file could have
        return False


def _is_test(what: str) -> bool:
    """Tell the id, file or folder of a test, or a pattern, from the code or name of a rule."""
    return any(mark in what for mark in ("::", ".py", "/", "*"))


def _command(name: str, word: str, shape: str) -> Result:
    """Return what another command says."""
    from pytest_ttnn_perf.cli.captures import run_check, run_rules
    from pytest_ttnn_perf.cli.main import parse

    run = {"rules": run_rules, "check": run_check}[name]
    return run(parse([name, "--format", shape, "--", word]))


def _of_last_run(test: str) -> Listing:
    record = newest_record(project_settings())
    if record is None:
        message = f"{test}: no run is recorded here: make one with pytest --ttnn-perf"
        raise UsageError(message)
    return _judged(record, (test,))


def _judged(record: Path, tests: Sequence[str]) -> Listing:
    """Lay out what the gate says of tests of a record, all without any, as baselines are now."""
    settings = project_settings()
    store = BaselineStore(settings.baselines)
    gated = gate_here(settings).judge(read_run(record), store, records=[record])
    told = gated.summary_options
    named = select_tests(gated.run.tests, tests, where=str(record))
    names = sorted(named, key=lambda name: name not in told.failed)  # what fails comes first
    shown = replace(
        told,
        failed=told.failed & frozenset(names),
        verbosity=1,
        progress=tuple(each for each in told.progress if each[0] in names),
    )
    run = replace(gated.run, tests={name: gated.run.tests[name] for name in names})
    return Gated(run, shown).listing()


# The words of commands that agents use, and people who want the same answers.


def declare_status(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf status``."""
    parser.description = (
        "Show what is stored, and what the newest run record says against the baselines as they "
        "are now: what failed, what has no baseline, what was not measured. The exit code is 0."
    )
    add_format(parser)
    parser.set_defaults(run="records:run_status")


def declare_explain(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf explain``."""
    parser.description = (
        "Show what is known of a rule of the checklist, of tests in the newest run record, or of "
        "a file: of a run record its verdicts and findings, of a capture what the checklist finds. "
        "The exit code is 0."
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        help="the code or name of a rule, the id or file of tests, a run record, or a capture",
    )
    add_format(parser)
    parser.set_defaults(run="records:run_explain")


def declare_mcp(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf mcp``."""
    parser.description = (
        "Serve these commands to coding agents, over the Model Context Protocol on stdin and "
        "stdout. Clients start it themselves, in the folder of the project. What it runs, it runs "
        "with the rights of whoever started it."
    )
    parser.set_defaults(run="history:run_mcp")


def declare_skill(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf skill``."""
    parser.description = (
        "Print how to optimize with these commands, and what not to do, as a skill for coding "
        "agents: Markdown with front matter."
    )
    parser.set_defaults(run="history:run_skill")


def declare_gate(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf gate``."""
    parser.description = (
        "Judge a run record against baselines, without pytest and without hardware."
    )
    parser.add_argument(
        "record",
        metavar="RUN.json",
        type=Path,
        help="a run record, the journal of an interrupted run, or a benchmark's results",
    )
    add_gate(parser)
    parser.set_defaults(run="records:run_gate")


def declare_merge(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf merge``."""
    parser.description = (
        "Combine the run records of several shards and hardware keys into one report and one "
        "verdict, without pytest and without hardware."
    )
    parser.add_argument("records", metavar="RUN.json", type=Path, nargs="+", help="run records")
    parser.add_argument(
        "--expect",
        metavar="N",
        type=int,
        help="number of shards to expect; fail if there are more or fewer",
    )
    add_gate(parser)
    parser.set_defaults(run="records:run_merge")


def declare_show(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf show``."""
    parser.description = (
        "Show what is in a file. For a run record: metrics, spread, verdicts and environment. For "
        "an ops_perf_results CSV: time by op, category and device, traces, signposts, and dropped "
        "rows; with --ops, every op on a line of its own."
    )
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="a run record or a capture; the format is detected"
    )
    parser.add_argument(
        "--ops",
        action="store_true",
        help="list each op in order: time, cores, share of the peaks, and what binds it",
    )
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run="captures:run_show")


def declare_compare(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf compare``."""
    parser.description = (
        "For two run records, show every metric side by side, without judging it. For two "
        "ops_perf_results CSVs, align the ops and show which ones changed, by how much, and why; "
        "the parts add up to the change of the kernel time."
    )
    parser.add_argument(
        "before",
        metavar="BEFORE",
        type=Path,
        help="a run record or a capture; the format is detected",
    )
    parser.add_argument("after", metavar="AFTER", type=Path, help="a file of the same kind")
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run="compare:run_compare")


def declare_import_files(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf import``."""
    parser.description = (
        "Turn results of benchmarks (BenchmarkRun JSON, tt-xla, vLLM, inference servers) into a "
        "run record, and list which of their numbers are gated. What several files have of one "
        "test are its samples. Turn targets of models, such as model_targets.yaml, into a file "
        "for the setting targets, and list what was not taken, and why."
    )
    parser.add_argument(
        "files", metavar="FILE", type=Path, nargs="+", help="the format is detected"
    )
    parser.add_argument("--json", metavar="PATH", type=Path, help="where to write it")
    parser.add_argument(
        "--hardware",
        metavar="KEY",
        help="on what they were measured, such as wormhole_b0-n150-1x1 (default: what they say)",
    )
    parser.add_argument(
        "--model", metavar="NAME", help="of targets: the model, for files that do not name it"
    )
    add_format(parser)
    parser.set_defaults(run="importing:run_import")


def declare_doctor(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf doctor``."""
    parser.description = (
        "Check ttnn, devices, host, environment variables and folders, and report what would keep "
        "a gate from working and how to fix it. A device that another process might be using is "
        "not opened."
    )
    add_format(parser)
    parser.set_defaults(run="doctor:run_doctor")
