"""Commands on recorded runs, and for agents."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections import Counter
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, read_run
from pytest_ttnn_perf.cli.common import (
    add_argument,
    add_baselines,
    add_format,
    from_here,
    newest_record,
    plain,
    presumed_kind_of,
    select_tests,
    typed_hardware,
)
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.observation import RUN_FORMAT, WITHOUT_BASELINE, Reason
from pytest_ttnn_perf.core.settings import Checklist, Missing, find_root, project_settings
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.health import health_of, lost_tests
from pytest_ttnn_perf.gate.judging import (
    failing_verdicts,
    judge_run,
    violations,
)
from pytest_ttnn_perf.gate.record import ci_job
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.machine.processes import last_words, run_bounded
from pytest_ttnn_perf.report.findings import finding_document
from pytest_ttnn_perf.report.run import ci_report, summary_options_of
from pytest_ttnn_perf.report.sentences import (
    Rerun,
    command_line,
    label,
    reproduction,
    sentence,
)
from pytest_ttnn_perf.report.tables import Column, Columns, Line, Listing, Result, json_text
from pytest_ttnn_perf.report.terminal import summary_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import JudgedTest, Run, Verdict
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.tables import Block
    from pytest_ttnn_perf.report.terminal import SummaryOptions


def add_gate(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "record RUN.json", "a run record, the journal of an interrupted run, or "
        "a benchmark's results", type=Path)  # fmt: skip
    add_argument(parser, "--hardware KEY", "of a benchmark's results that name no board: on what "
        "they were measured, such as wormhole_b0-n150-1x1")  # fmt: skip
    _add_judging(parser)


def _add_judging(parser: argparse.ArgumentParser) -> None:
    add_baselines(parser)
    add = partial(add_argument, parser)
    add("--missing", "what happens to a test without a comparable baseline (default: fail)",
        choices=[choice.value for choice in Missing])  # fmt: skip
    add("--checklist", "whether errors of the checklist fail the run (default: enforce)",
        choices=[choice.value for choice in Checklist])  # fmt: skip
    add_format(parser, "markdown", "gitlab")


def run_gate(options: argparse.Namespace) -> Result:
    """Judge a run record against baselines, without pytest and without hardware."""
    hardware = typed_hardware(options.hardware) if options.hardware else None
    run, shape = read_run(options.record, hardware), options.format
    gated = _gate_of(options).judge(run, [options.record])
    if shape == "markdown":
        from pytest_ttnn_perf.report.markdown import markdown_text

        text = markdown_text(gated.report())
    elif shape == "gitlab":
        from pytest_ttnn_perf.report.ci import gitlab_text

        text = gitlab_text(gated.report())
    else:
        listing = gated.listing()
        if hardware is not None:
            named = f"filed under {hardware.key}, as --hardware says: {options.record}"
            listing = replace(listing, lines=(named, *listing.lines))
        text = listing.text(shape)
    return Result(text, failed=not gated.passed, shifted=gated.is_slower)


class Gate(NamedTuple):
    """Settings and baselines that recorded runs are judged by."""

    settings: Settings
    store: BaselineStore
    rerun: Rerun = Rerun()

    def judge(self, run: Run, records: Sequence[Path]) -> GateSummary:
        if not run.tests:
            raise InputError(records[0], "the run has no tests: nothing was judged")
        run = judge_run(run, self.store, self.settings)
        # Another unit is not a result but an input that belongs to other baselines.
        for name, judged in run.tests.items():
            for verdict in judged.verdicts:
                if verdict.reason is Reason.OTHER_DEFINITION:
                    raise InputError(records[0], f"{name}: {sentence(verdict)}")
        return self.summarize(run, records)

    def summarize(self, run: Run, records: Sequence[Path]) -> GateSummary:
        rerun = replace(self.rerun, records=tuple(map(str, records)))
        tests = list(run.tests.values())
        summary = summary_options_of(tests, self.settings, rerun=rerun, shift=run.shift)
        health = health_of(run, self.store, self.settings)
        return GateSummary(run, self, replace(summary, health=health))


_VERDICTS: Final[Columns[tuple[JudgedTest, Verdict]]] = Columns(
    Column("test", lambda row: row[0].observation.test),
    Column("metric", lambda row: row[1].metric.name),
    Column("outcome", lambda row: row[1].outcome.value),
    Column("change", lambda row: row[1].change),
    Column("limit", lambda row: row[1].limit),
    Column("provisional", lambda row: row[1].provisional),
    Column("sentence", lambda row: sentence(row[1])),
)


class GateSummary(NamedTuple):
    """A judged run, and how it is summarized."""

    run: Run
    gate: Gate
    summary: SummaryOptions

    @property
    def is_empty(self) -> bool:
        return not any(judged.verdicts for judged in self.run.tests.values())

    @property
    def passed(self) -> bool:
        wrong = self.is_empty or self.summary.failed or self.summary.health.lost
        return self.run.complete and not wrong

    @property
    def is_slower(self) -> bool:
        return self.run.shift is not None and self.run.shift.worse

    def report(self) -> CiReport:
        return ci_report(
            self.run,
            self.gate.settings,
            self.gate.store,
            summary_options=self.summary,
            job=ci_job(os.environ, find_root(Path.cwd())),
            record=", ".join(self.summary.rerun.records) or None,
        )

    def listing(self) -> Listing:
        run, tests = self.run, list(self.run.tests.values())
        verdicts = [(judged, verdict) for judged in tests for verdict in judged.verdicts]
        document = {
            "failed": not self.passed,
            "shifted": run.shift is not None,
            "shift": run.shift.change if run.shift else None,
            "complete": run.complete,
            "lost": list(self.summary.health.lost),
            "verdicts": [
                {**members, "by_op": judged.by_op if verdict.is_of_changed_time else None}
                for members, (judged, verdict) in zip(
                    _VERDICTS.objects(verdicts), verdicts, strict=True
                )
            ],
            "findings": [
                {"test": judged.observation.test, **finding_document(finding)}
                for judged in tests
                for finding in judged.observation.findings
                if finding.outcome is RuleOutcome.FOUND
            ],
        }
        lines: list[Block] = [*summary_lines(tests, summary_options=self.summary)]
        if not run.complete:
            lines.append(f"failed: the run was cut short after {counted(len(tests), 'test')}")
        if self.is_empty:
            lines.append("failed: nothing was gated: the run has only metrics that are not")
        return Listing(tuple(lines), document, _VERDICTS.names, _VERDICTS.rows(verdicts))


def _gate_of(options: argparse.Namespace) -> Gate:
    settings, rerun = project_settings(), Rerun()
    if options.missing:
        settings = replace(settings, missing=Missing(options.missing))
    if options.checklist:
        settings = replace(settings, checklist=Checklist(options.checklist))
    if options.baselines is not None:
        settings = replace(settings, baselines=options.baselines)
        rerun = Rerun(options=("--ttnn-perf-baselines", str(options.baselines)))
    if not settings.baselines.is_dir():
        raise InputError(settings.baselines, "expected a folder of baselines, found none")
    return Gate(settings, BaselineStore(settings.baselines), rerun)


def add_merge(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("records RUN.json", "run records", type=Path, nargs="+")
    add("--expect N", "number of shards to expect; fail if there are more or fewer", type=int)
    _add_judging(parser)


class Part(NamedTuple):
    """The shards of one run on one system, with different tests."""

    hardware: Hardware
    run: Run
    records: tuple[Path, ...]

    @property
    def name(self) -> str:
        return f"{self.hardware.key}, {self.run.label}" if self.run.label else self.hardware.key


def run_merge(options: argparse.Namespace) -> Result:
    """Judge the run records of several shards and hardware keys together."""
    records, shape = options.records, options.format
    twice = next((record for record in records if records.count(record) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice: it would count as two records")
    gate = _gate_of(options)
    runs = {record: read_run(record) for record in records}
    judged = [(part, gate.judge(part.run, part.records)) for part in _parts_of(runs)]
    lacking = _lacking(runs, options.expect)
    wrong = [part.name for part, gated in judged if not gated.passed]
    tests = sum(len(part.run.tests) for part, _ in judged)
    closing = f"{counted(len(judged), 'run')} of {counted(tests, 'test')}: "
    closing += f"failed: {', '.join(wrong)}" if wrong else "all passed"
    failed = lacking is not None or bool(wrong)
    shifted = any(gated.is_slower for _, gated in judged)
    if shape == "markdown":
        text = _merge_markdown(judged, closing, lacking)
    elif shape == "gitlab":
        from pytest_ttnn_perf.report.ci import gitlab_text

        texts = [gitlab_text(gated.report()) for _, gated in judged]
        text = json_text([issue for text in texts for issue in json.loads(text)])
    else:
        found = {"failed": failed, "shifted": shifted, "lacking": lacking}
        text = _merge_listing(judged, found, closing).text(shape)
    return Result(text, failed=failed, shifted=shifted)


def _lacking(runs: Mapping[Path, Run], expected: int | None) -> str | None:
    """Compare the number of shards with the expected one.

    The tests of a shard that did not report would pass by not being there.
    """
    again = _repeated(runs)
    found = len(runs) - len(again)
    if expected is None or found == expected:
        return None
    tries = "".join(f"; {record} is {first} again" for record, first in again.items())
    return f"failed: expected {counted(expected, 'shard')}, found {found}{tries}"


def _repeated(runs: Mapping[Path, Run]) -> dict[Path, Path]:
    """Map records that repeat a shard to the first record of it.

    They are of one run; or of shards of one name and label that have a test in common.
    """
    found: dict[Path, Path] = {}
    for record, run in runs.items():
        for first, other in runs.items():
            if first is record:
                break
            same = run.id is not None and run.id == other.id
            shards = (run.label, run.environment.shard), (other.label, other.environment.shard)
            named = run.environment.shard is not None and shards[0] == shards[1]
            if same or (named and _tests_of(run) & _tests_of(other)):
                found[record] = found.get(first, first)
                break
    return found


def _tests_of(run: Run) -> set[tuple[Hardware | None, str]]:
    return {(j.observation.hardware or run.hardware, name) for name, j in run.tests.items()}


def _parts_of(runs: Mapping[Path, Run]) -> list[Part]:
    """Group tests by system and label, each once in a part."""
    parts: list[Part] = []
    for record, run in runs.items():
        by_hardware: dict[Hardware, dict[str, JudgedTest]] = {}
        for name, judged in run.tests.items():
            hardware = judged.observation.hardware or run.hardware
            assert hardware is not None, f"{name} has no hardware"  # decoding refuses that
            by_hardware.setdefault(hardware, {})[name] = judged
        for hardware, tests in by_hardware.items():
            shard = replace(run, hardware=hardware, tests=tests)
            if run.coverage is not None:
                # What ran on another system is no loss of this one.
                elsewhere = tuple(test for test in run.tests if test not in tests)
                own = replace(run.coverage, unasked=(*run.coverage.unasked, *elsewhere))
                shard = replace(shard, coverage=own)
            for index, part in enumerate(parts):
                same = (part.hardware, part.run.label) == (hardware, run.label)
                if same and part.run.tests.keys().isdisjoint(tests):
                    whole = _joined(part.run, shard)
                    parts[index] = Part(hardware, whole, (*part.records, record))
                    break
            else:
                parts.append(Part(hardware, shard, (record,)))
    return sorted(parts, key=lambda part: part.name)


def _joined(ours: Run, theirs: Run) -> Run:
    coverage = ours.coverage or theirs.coverage
    if ours.coverage and theirs.coverage:
        coverage = ours.coverage.joined(theirs.coverage)
    return replace(
        ours,
        tests={**ours.tests, **theirs.tests},
        complete=ours.complete and theirs.complete,
        environment=ours.environment.shared_with(theirs.environment),
        coverage=coverage,
    )


def _merge_listing(
    judged: Sequence[tuple[Part, GateSummary]], found: Mapping[str, object], closing: str
) -> Listing:
    lines: list[Block] = []
    runs: list[object] = []
    rows: list[tuple[object, ...]] = []
    for part, gated in judged:
        one = gated.listing()
        records = [str(record) for record in part.records]
        lines += [f"{part.name} ({counted(len(records), 'record')})", "", *one.lines, ""]
        assert isinstance(one.document, dict)
        about = {"key": part.hardware.key, "label": part.run.label, "records": records}
        runs.append({**about, **one.document})
        rows += [(part.hardware.key, part.run.label, *row) for row in one.rows]
    lines += [str(found["lacking"])] if found["lacking"] else []
    lines.append(closing)
    headings = ("key", "label", *_VERDICTS.names)
    return Listing(tuple(lines), {**found, "runs": runs}, headings, tuple(rows))


def _merge_markdown(
    judged: Sequence[tuple[Part, GateSummary]], closing: str, lacking: str | None
) -> str:
    from pytest_ttnn_perf.report.markdown import COMMENT_BYTES, code, markdown_text, prose

    texts = [f"**{prose(closing)}**\n", *([f"{lacking}\n"] if lacking else [])]
    for part, gated in judged:
        report = markdown_text(gated.report(), most_bytes=COMMENT_BYTES // len(judged))
        texts.append(f"# {code(part.name)}\n\n{report}")
    return "\n".join(texts)


def add_status(parser: argparse.ArgumentParser) -> None:
    add_format(parser)


def run_status(options: argparse.Namespace) -> Result:
    """Show what is stored, and the verdicts of the newest run record.

    A record without verdicts is judged by what is stored. The exit code is 0.
    """
    settings = project_settings()
    store = BaselineStore(settings.baselines)
    stored = list(store.all_files()) if settings.baselines.is_dir() else []
    tests = [test for file in stored for test in file.content.tests.values()]
    document: dict[str, Any] = {
        "baselines": {
            "folder": str(from_here(settings.baselines)),
            "keys": sorted({file.content.hardware.key for file in stored}),
            "tests": len(tests),
            "metrics": sum(len(test.metrics) for test in tests),
        },
        "last_run": None,
        "failed": [],
        "without_baseline": [],
        "without_result": [],
    }
    record = newest_record(settings)
    if record is not None:
        gate, run = Gate(settings, store), read_run(record)
        has_verdicts = any(judged.verdicts for judged in run.tests.values())
        gated = (gate.summarize if has_verdicts else gate.judge)(run, [record])
        document["last_run"] = _last_run(str(record), gated)
        for name, judged in gated.run.tests.items():
            document["failed"] += [{"test": name, "why": why} for why in _wrong(judged, settings)]
            document["without_baseline"] += [
                {"test": name, "why": f"{verdict.outcome.value}: {sentence(verdict)}"}
                for verdict in judged.verdicts
                if verdict.outcome in WITHOUT_BASELINE and verdict.metric.name not in judged.written
            ]
        document["without_result"] = list(lost_tests(gated.run, store))
    steps = []
    if document["failed"]:
        steps.append(command_line("ttnn-perf", "explain", document["failed"][0]["test"]))
    if not tests or document["without_baseline"]:
        steps.append("pytest --ttnn-perf-update=new")
    elif record is None:
        steps.append("pytest --ttnn-perf")
    document["next"] = steps
    rows = (
        *(("failed", *each.values()) for each in document["failed"]),
        *(("without_baseline", *each.values()) for each in document["without_baseline"]),
        *(("without_result", test, "") for test in document["without_result"]),
    )
    listing = Listing(tuple(_status_lines(document)), document, ("state", "test", "why"), rows)
    return Result(listing.text(options.format))


def _last_run(record: str, gated: GateSummary) -> dict[str, object]:
    run = gated.run
    tests = run.tests.values()
    outcomes = Counter(label(verdict, judged) for judged in tests for verdict in judged.verdicts)
    return {
        "record": record,
        "started_at": run.environment.started_at,
        "commit": run.environment.commit,
        "dirty": run.environment.dirty,
        "label": run.label,
        "key": run.hardware.key if run.hardware else None,
        "passed": gated.passed,
        "complete": run.complete,
        "shifted": run.shift is not None,
        "tests": len(run.tests),
        "outcomes": dict(sorted(outcomes.items())),
    }


def _wrong(judged: JudgedTest, settings: Settings) -> Iterator[str]:
    yield from judged.observation.problems
    for verdict in failing_verdicts(judged, settings):
        if verdict.outcome not in WITHOUT_BASELINE:
            yield f"{verdict.outcome.value}: {sentence(verdict)}"
    for finding in violations(judged, settings.checklist):
        yield f"{finding.code} {finding.name}: {finding.reason or 'found'}"


def _status_lines(document: Mapping[str, Any]) -> Iterator[Block]:
    stored, last = document["baselines"], document["last_run"]
    metrics, tests = counted(stored["metrics"], "metric"), counted(stored["tests"], "test")
    keys = f", for {', '.join(stored['keys'])}" if stored["keys"] else ""
    yield f"baselines: {metrics} of {tests} in {stored['folder']}{keys}"
    if last is None:
        yield "last run: none"
    else:
        commit = f", commit {last['commit']}" if last["commit"] else ""
        dirty = " (dirty)" if last["dirty"] else ""
        label = f", {last['label']}" if last["label"] else ""
        started = last["started_at"] or "time unknown"
        yield f"last run: {last['record']}, {started}{commit}{dirty}{label}"
        counts = ", ".join(f"{count} {name}" for name, count in last["outcomes"].items())
        verdict = "passed" if last["passed"] else "failed"
        cut = "" if last["complete"] else ", and was cut short"
        yield Line(
            f"{counted(last['tests'], 'test')}: {counts or 'nothing gated'}; it {verdict}{cut}",
            bad=not last["passed"],
        )
    for each in (*document["failed"], *document["without_baseline"]):
        yield Line(f"{each['test']}: {each['why']}", bad=True)
    for test in document["without_result"]:
        yield f"{test}: has a baseline, and was not measured"
    yield from (f"next: {step}" for step in document["next"])


def add_explain(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "what WHAT", "the code or name of a rule, the id or file of tests, or a "
        "run record")  # fmt: skip
    add_format(parser)


def run_explain(options: argparse.Namespace) -> Result:
    """Show what is known of a rule, a test or a record.

    Tests are those of the newest run record. The exit code is 0.
    """
    from pytest_ttnn_perf.cli.captures import run_rules
    from pytest_ttnn_perf.cli.main import parse

    what, shape = options.what, options.format
    file = Path(what)
    if file.suffix != ".py" and file.is_file():
        kind = presumed_kind_of(file)
        if kind is not ArtifactKind.RUN_RECORD:
            raise UsageError(f"{what}: {kind.value} is explained by ttnn-perf check, or plan")
        return Result(_judged(file, ()).text(shape))
    if any(mark in what for mark in ("::", ".py", "/", "*")):  # no rule is called so
        record = newest_record(project_settings())
        if record is None:
            raise UsageError(f"{what}: no run is recorded here: make one with pytest --ttnn-perf")
        return Result(_judged(record, (what,)).text(shape))
    try:
        return run_rules(parse(["rules", "--format", shape, "--", what]))
    except UsageError as error:
        message = f"{error}; a test is named by its id, such as test_model.py::test_x"
        raise UsageError(message) from error


def _judged(record: Path, tests: Sequence[str]) -> Listing:
    """Judge tests of a record (default: all) by the baselines of now."""
    settings = project_settings()
    gated = Gate(settings, BaselineStore(settings.baselines)).judge(read_run(record), [record])
    failed = gated.summary.failed
    named = select_tests(gated.run.tests, tests, where=str(record))
    names = sorted(named, key=lambda name: name not in failed)  # what fails comes first
    summary = replace(
        gated.summary,
        failed=failed & frozenset(names),
        verbosity=1,
        progress=tuple(each for each in gated.summary.progress if each[0] in names),
    )
    run = replace(gated.run, tests={name: gated.run.tests[name] for name in names})
    return gated._replace(run=run, summary=summary).listing()


def run_mcp(_: argparse.Namespace) -> Result:
    """Serve these commands to coding agents, over the Model Context Protocol.

    Clients start it themselves, in the folder of the project, and speak on stdin and stdout.
    What it runs, it runs with the rights of whoever started it.
    """
    from pytest_ttnn_perf.agents.mcp import Server, why_not_accept

    if sys.stdin.isatty():
        sys.stderr.write(
            "ttnn-perf mcp waits for a client, with one line of JSON per message. Clients\n"
            "start it themselves: put it into their configuration. Ctrl-D ends it.\n"
        )
    # A shell starts what it runs in the background deaf to Ctrl-C, and commands would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    forbidden = why_not_accept()  # read once: agents can edit the configuration
    # Without a buffer: what a client that is gone has not read must not be written again at exit.
    with open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as stdout:
        Server(forbidden, sys.stdin.buffer, stdout).serve()
    return Result("")


def run_skill(_: argparse.Namespace) -> Result:
    """Print how to optimize with these commands, as a skill for agents."""
    skill = files("pytest_ttnn_perf.agents") / "skill.md"
    return Result(skill.read_text(encoding="utf-8"))


# From a failed test to its owner: repro, alert.


def add_repro(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "record RUN.json", "a run record", type=Path)
    add_argument(parser, "test TEST", "a test id, file or folder, or a pattern")
    add_format(parser)


def run_repro(options: argparse.Namespace) -> Result:
    """Print how to measure a test of a run record again.

    It names the commit, the board, the build, the configuration and the variables, and ends with
    the commands.
    """
    run, build = read_run(options.record), project_settings().build
    named = select_tests([*run.tests], [options.test], where=str(options.record))
    found = [(test, reproduction(run, run.tests[test], build)) for test in named]
    lines = [line for test, parts in found for line in ("", f"test: {test}", *_shown(parts))]
    rows = tuple((test, *part) for test, parts in found for part in parts)
    document = {"tests": [{"test": test, "steps": parts} for test, parts in found]}
    headings = ("test", "what", "text")
    return Result(Listing(tuple(lines[1:]), document, headings, rows).text(options.format))


def _shown(parts: list[tuple[str, str]]) -> Iterator[str]:
    yield from (text if what == "run" else f"{what}: {text}" for what, text in parts)


def add_alert(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "record RUN.json", "a run record", type=Path)
    add_argument(parser, "--run CMD", "shell command that reads the alert as JSON", required=True,
        dest="command")  # fmt: skip


def run_alert(options: argparse.Namespace) -> Result:
    """Give the failures of a run to a command, as JSON.

    It is on the command's stdin. What the run was judged to be is believed. Without a failure the
    command is not run. Exit code 1: the command failed.
    """
    run, settings = read_run(options.record), project_settings()
    if not any(judged.verdicts for judged in run.tests.values()):
        message = f"{options.record} has no verdicts: make some with ttnn-perf gate"
        raise UsageError(message)
    document = alert_document(run, settings)
    if not document["tests"]:
        return plain(["nothing failed: no alert"])
    with tempfile.TemporaryDirectory() as folder:
        given, log = Path(folder, "alert.json"), Path(folder, "log")
        given.write_text(json_text(document), encoding="utf-8")
        with given.open("rb") as stdin, log.open("wb") as output:
            ending = run_bounded(
                options.command,
                timeout_s=settings.timeout,
                stdout=output,
                stderr=output,
                stdin=stdin,
            )
        if ending.code != 0 or ending.hung:
            why = f"the command of the alert {ending}"
            said = last_words(log).splitlines()
            return plain([f"failed: {why}: {options.command}", *said], failed=True)
    return plain([f"alert: {document['title']}"])


def alert_document(run: Run, settings: Settings) -> dict[str, object]:
    """Return all that failed, worst first, with what its owner needs."""
    failed = [
        (judged, verdict)
        for judged in run.tests.values()
        for verdict in failing_verdicts(judged, settings)
    ]
    failed.sort(key=lambda one: -(one[1].change or 0.0))
    count = len({judged.observation.test for judged, _ in failed})
    more = f" and {counted(count - 1, 'other test')}" if count > 1 else ""
    first = f"{failed[0][0].observation.test}: {sentence(failed[0][1])}" if failed else ""
    return {
        "format": RUN_FORMAT,
        "run": run.id,
        "title": f"{first}{more}",
        "commit": run.environment.commit,
        "branch": run.environment.branch,
        "tests": [
            {
                "test": judged.observation.test,
                "file": judged.observation.location and judged.observation.location[0],
                "metric": verdict.metric.name,
                "unit": verdict.metric.unit,
                "outcome": verdict.outcome.value,
                "before": verdict.centre,
                "after": verdict.observed,
                "change": verdict.change,
                "sentence": sentence(verdict),
                "cause": judged.by_op,
                "reproduce": dict(reproduction(run, judged, settings.build)),
            }
            for judged, verdict in failed
        ],
    }
