"""A run for those who review a change: what matters in ten seconds, the rest folded away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.report.fitting import Section, fitted
from pytest_ttnn_perf.report.markdown_findings import findings_section, progress_section
from pytest_ttnn_perf.report.markdown_verdicts import (
    failed_sections,
    improved_sections,
    metrics_section,
    missing_sections,
)
from pytest_ttnn_perf.report.markup import FOLDED, code, fenced, prose, summary
from pytest_ttnn_perf.report.progress import drift_line, shift_line
from pytest_ttnn_perf.report.terminal import count_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.report.told import Told

_PASSED: Final = "✅"
_FAILED: Final = "❌"
_WARNED: Final = "⚠️"
#: As many characters of a commit as people compare.
_COMMIT: Final = 12


def markdown_text(told: Told, *, most_bytes: int) -> str:
    """Return the report of a run, cut to what its reader can take; empty if that is nothing."""
    parts = list(_parts(told))
    quiet = not parts
    environment = [Section(text) for text in [_environment(told)] if text]
    metrics = [metrics_section(told)] if any(judged.verdicts for judged in told.tests) else []
    folded = [part for part in (progress_section(told), _drifts(told)) if part]
    sections = [Section(_headline(told, quiet=quiet)), *parts, *environment, *folded, *metrics]
    whole = code(told.record) if told.record else None
    return fitted(sections, _closing(told), most_bytes=most_bytes, whole=whole)


def _parts(told: Told) -> Iterator[Section]:
    """Yield what is worth reading; nothing where everything is as before."""
    yield from failed_sections(told)
    yield from _lost(told)
    yield from _machine(told)
    yield from improved_sections(told)
    found = findings_section(told)
    if found:
        yield found
    yield from missing_sections(told)


def _headline(told: Told, *, quiet: bool) -> str:
    """Say in one line how it went, and for how many tests."""
    gated = sum(1 for judged in told.tests if judged.verdicts)
    text, sign = f"{counted(gated, 'test')} gated, all passed", _PASSED
    shift, failed = told.manner.shift, len(told.manner.failed)
    if failed:
        of = counted(len(told.tests), "test")
        text, sign = f"{failed} of {of} failed", _FAILED
    elif told.manner.lapses.lost:
        lost = counted(len(told.manner.lapses.lost), "test")
        text, sign = f"{lost} with a baseline did not run, and required is set", _FAILED
    elif shift is not None and shift.worse:
        text = f"environment shifted; {counted(gated, 'test')} gated, none failed by name"
        sign = _FAILED
    elif not gated:
        text, sign = "no test was gated", _WARNED
    if not told.run.complete:
        text, sign = f"the run was cut short: {text}", _FAILED
    if quiet:
        return f"{sign} **ttnn-perf: {text}**\n"
    return f"## {sign} ttnn-perf: {text}\n\n{prose(count_line(told.tests, failed=failed))}\n"


def _lost(told: Told) -> Iterator[Section]:
    """Name the tests that are required and did not run."""
    lost = told.manner.lapses.lost
    if lost:
        head = f"\n### Did not run: {counted(len(lost), 'test')} with a baseline\n\n"
        yield Section(head, tuple(f"- {code(test)}\n" for test in lost), noun="test")


def _machine(told: Told) -> Iterator[Section]:
    """Say what is the machine's and not one test's."""
    manner = told.manner
    if manner.shift is not None:
        text = f"\n### Environment shifted\n\n{prose(shift_line(manner.shift))}\n"
        turns = "The machine, or a change that all tests share? Compare in turns:"
        text += f"\n{turns}\n\n{fenced(['ttnn-perf ab REF'])}"
        yield Section(f"{text}\nIf it is to stay:\n\n{fenced([manner.rerun.accept_all()])}")


def _drifts(told: Told) -> Section | None:
    drifts = told.manner.drifts
    lines = tuple(f"- {prose(drift_line(drift))}\n" for drift in drifts)
    return Section(f"\n{summary(f'Drift: {len(drifts)}')}", lines, FOLDED) if drifts else None


def _environment(told: Told) -> str:
    """Say where it ran, and what is not as it was when the baselines were accepted."""
    environment = told.run.environment
    own = (judged.observation.hardware or told.run.hardware for judged in told.tests)
    keys = sorted({hardware.key for hardware in own if hardware})
    facts = [code(key) for key in keys]
    if environment.ttnn:
        facts.append(f"ttnn {prose(environment.ttnn)}")
    if environment.commit:
        changed = " with changes" if environment.dirty else ""
        facts.append(f"commit {code(environment.commit[:_COMMIT])}{changed}")
    if environment.runner:
        facts.append(f"runner {code(environment.runner)}")
    if not facts:
        return ""
    differs = "; ".join(map(prose, told.differences))
    said = f"Not as when the baselines were accepted: {differs}.\n" if differs else ""
    return f"\n**Environment:** {' · '.join(facts)}\n{said}"


def _closing(told: Told) -> str:
    """Name the record, in which everything is."""
    version = told.run.environment.plugin
    parts = [f"run record {code(told.record)}"] if told.record else []
    parts.append(f"pytest-ttnn-perf {prose(version)}" if version else "pytest-ttnn-perf")
    return f"\n<sub>{' · '.join(parts)}</sub>\n"
