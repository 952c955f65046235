"""A step, laid out: for people, and as one object of a size that any reader can take."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, microseconds, shortened
from pytest_ttnn_perf.experiments.try_verdict import main_time
from pytest_ttnn_perf.records.metric import Kind
from pytest_ttnn_perf.records.settings import MIN_ROUNDS
from pytest_ttnn_perf.records.step import STEP_FORMAT, Decision, Step, StepFinding
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.report.layout import DROPPED, METRIC, Fit, Line, shown_path
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    format_change,
    format_value,
    id_column,
    json_text,
)
from pytest_ttnn_perf.report.sentences import command_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.experiments.try_change import Tried
    from pytest_ttnn_perf.records.step import Effect, Prediction
    from pytest_ttnn_perf.report.layout import Block


#: The most that the object of a step takes, as it is printed.
MOST_BYTES: Final = 8_000
#: A sentence of the object is cut to this: where texts are long, their ends tell as well.
_LONGEST: Final = 240
_MOST_ITEMS: Final = 12
#: Files that a command names; of more, only their number is told.
_MOST_FILES: Final = 5
_SHORT: Final = 12


def try_lines(tried: Tried, cwd: Path) -> Iterator[Block]:
    """Yield what people read of a step."""
    step = tried.step
    good, bad = step.decision is Decision.KEEP, step.decision is Decision.REVERT
    yield Line(f"{step.decision.value}: {step.message}", good=good, bad=bad)
    if step.refusals:
        yield from (f"  {each.edit}: {each.sentence}" for each in step.refusals)
        yield from (f"  {line}" for line in _way_out(tried))
    else:
        yield from (f"  {reason}" for reason in step.reasons)
    rounds = counted(step.rounds, "round") if step.rounds else "not measured"
    yield f"compared with {tried.base.words} ({rounds})"
    more = [*_causes(step), *_findings(step), *tried.remarks]
    for part in (effect_columns().table(step.effects), more):
        if part:
            yield ""
            yield from part
    yield ""
    yield from (f"{what}: {command}" for what, command in commands(tried, cwd).items())
    yield f"step record: {shown_path(tried.file, cwd)}"


def _way_out(tried: Tried) -> Iterator[str]:
    """Say what to do with a step that is refused."""
    yield "commit such a change by itself: steps are then compared with what is committed"
    if tried.is_committed:
        yield "if that is done, name the commit to compare with: --base REF"


def _causes(step: Step) -> Iterator[str]:
    for test, situation in step.situations.items():
        if situation.by_op is not None:
            yield f"by op, {test}: {situation.by_op}"


def _findings(step: Step) -> Iterator[str]:
    yield from (f"closed {_finding_text(finding)}" for finding in step.closed)
    yield from (f"opened {_finding_text(finding)}" for finding in step.opened)
    for each in step.predictions:
        codes = ", ".join(each.codes)
        most = "at most " if each.at_most else ""
        yield (
            f"predicted {most}{microseconds(each.predicted_ns)} ({codes}), measured "
            f"{microseconds(each.measured_ns)} of {each.metric}"
        )
    for number, finding in enumerate(step.candidates, start=1):
        fix = f": {finding.fix}" if finding.fix else ""
        yield f"next {number}: {_finding_text(finding)}{fix}"


def _finding_text(finding: StepFinding) -> str:
    region = f" in {finding.region}" if finding.region else ""
    saving = ""
    if finding.saving_ns:
        most = "at most " if finding.at_most else ""
        saving = f", {most}{microseconds(finding.saving_ns)}"
    return f"{finding.code} {finding.name}{region} ({finding.test}{saving})"


def _interval(effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return "-"
    return f"{format_change(effect.low)} to {format_change(effect.high)}"


def effect_columns() -> Columns[Effect]:
    """Return the columns of what a step did to each metric."""
    return Columns(
        id_column(lambda e: e.test),
        Column("metric", lambda e: e.metric, "metric", fit=METRIC),
        Column("unit", lambda e: e.unit),
        Column("before", lambda e: e.before, "before",
               lambda e: format_value(e.defined, e.before), right=True, fit=Fit(drop=2)),
        Column("after", lambda e: e.after, "after",
               lambda e: format_value(e.defined, e.after, beside=e.before), right=True),
        Column("change", lambda e: e.change if e.low is not None else None, "change",
               lambda e: format_change(e.change) if e.low is not None else "-", right=True),
        Column("low", lambda e: e.low, "interval", _interval, right=True, fit=DROPPED[1]),
        Column("high", lambda e: e.high),
        Column("outcome", lambda e: e.outcome, "verdict"),
    )  # fmt: skip


def commands(tried: Tried, cwd: Path) -> dict[str, str]:
    """Return what the user may do next; nothing of it is done for them."""
    step, found = tried.step, {}
    new, changed = (
        [os.path.relpath(tried.root / file, cwd) for file in files]
        for files in (tried.new_files, tried.changed_files)
    )
    if step.decision is Decision.KEEP:
        added = f"{command_line('git', 'add', '--', *new[:_MOST_FILES])} && " if new else ""
        found["commit it"] = f"{added}{command_line('git', 'commit', '-a', '-m', step.message)}"
        if len(new) > _MOST_FILES:
            found["new files"] = f"{len(new)}, of which this command names {_MOST_FILES}"
    if step.decision is Decision.REVERT:
        found["revert it"] = _revert(tried, cwd, new, changed)
    # What cannot be compared, or has no noise, is not known better after more rounds.
    comparable = not any(each.outcome == Outcome.NOT_COMPARABLE.value for each in step.effects)
    noisy = not step.effects or any(each.low is not None for each in step.effects)
    if step.decision is Decision.CANNOT_TELL and comparable and noisy:
        more = " with more --rounds" if step.rounds >= MIN_ROUNDS else ", until it is done"
        found["measure longer"] = f"the same command{more}"
    return found


def _revert(tried: Tried, cwd: Path, new: Sequence[str], changed: Sequence[str]) -> str:
    """Return what undoes the change, and touches no other file; by name, if there are few."""
    base, state = tried.base.state.commit[:_SHORT], tried.step.state[:_SHORT]
    if len(new) + len(changed) > _MOST_FILES:
        top = os.path.relpath(tried.root, cwd)
        undo = command_line("git", *([] if top == "." else ["-C", top]), "apply", "-R")
        return f"{command_line('git', 'diff-tree', '-p', '--binary', base, state)} | {undo}"
    restored = command_line("git", "restore", f"--source={base}", "--", *changed)
    removed = command_line("rm", "-f", "--", *new)
    return " && ".join([*([restored] if changed else []), *([removed] if new else [])])


def try_document(tried: Tried, cwd: Path) -> dict[str, object]:
    """Return a step as one object of at most ``MOST_BYTES``: the least telling is left out."""
    document = _document(tried, cwd)
    left_out: dict[str, int] = {}
    document["left_out"] = left_out
    lists = {name: value for name, value in document.items() if isinstance(value, list)}
    for name, items in lists.items():
        if len(items) > _MOST_ITEMS:
            left_out[name] = len(items) - _MOST_ITEMS
            del items[_MOST_ITEMS:]
    while len(json_text(document)) > MOST_BYTES:
        # What takes most room goes first; each list keeps what it begins with for longest.
        name = max(lists, key=lambda each: (len(lists[each]) > 1, len(json_text(lists[each]))))
        if not lists[name]:
            break
        lists[name].pop()
        left_out[name] = left_out.get(name, 0) + 1
    return document


def _document(tried: Tried, cwd: Path) -> dict[str, object]:
    step = tried.step
    timed = [effect for effect in step.effects if effect.kind is not Kind.ACCURACY]
    accuracies = [effect for effect in step.effects if effect.kind is Kind.ACCURACY]
    timed.sort(key=lambda effect: _weight(effect, step.effects))
    return {
        "format": STEP_FORMAT,
        "decision": step.decision.value,
        "message": _cut(step.message),
        "reasons": [_cut(reason) for reason in step.reasons],
        "refusals": [
            {"edit": each.edit, "sentence": _cut(each.sentence)} for each in step.refusals
        ],
        "base": {"words": _cut(tried.base.words), "commit": step.base, "tree": step.base_tree},
        "state": {"commit": step.state, "tree": step.state_tree},
        "rounds": step.rounds,
        "effects": [_effect(effect) for effect in timed],
        "accuracies": [_accuracy(effect) for effect in accuracies],
        "ops": [
            {"test": _cut(test), "sentence": _cut(situation.by_op)}
            for test, situation in step.situations.items()
            if situation.by_op is not None
        ],
        "closed": [_finding(finding) for finding in step.closed],
        "opened": [_finding(finding) for finding in step.opened],
        "predictions": [_prediction(each) for each in step.predictions],
        "candidates": [_finding(finding) for finding in step.candidates],
        "situations": [
            {
                "test": _cut(test),
                "bottleneck": _cut(situation.bottleneck) if situation.bottleneck else None,
                "kernel_ns": situation.kernel_ns,
                "roofline_ns": situation.roofline_ns,
            }
            for test, situation in step.situations.items()
        ],
        "remarks": [_cut(remark) for remark in tried.remarks],
        "commands": {what: _cut(command) for what, command in commands(tried, cwd).items()},
        "record": _cut(shown_path(tried.file, cwd)),
    }


def _weight(effect: Effect, effects: Sequence[Effect]) -> tuple[bool, float]:
    """Return the order of effects: the main time of each test first, then what changed most."""
    is_main = main_time(effect.test, effects) == effect
    return not is_main, -abs(effect.change or 0.0)


def _effect(effect: Effect) -> dict[str, object]:
    return {
        "test": _cut(effect.test),
        "metric": _cut(effect.metric),
        "unit": _cut(effect.unit),
        "before": effect.before,
        "after": effect.after,
        "change": effect.change,
        "low": effect.low,
        "high": effect.high,
        "outcome": effect.outcome,
        "target": effect.target,
    }


def _accuracy(effect: Effect) -> dict[str, object]:
    return {
        "test": _cut(effect.test),
        "metric": _cut(effect.metric),
        "before": effect.before,
        "after": effect.after,
        "at_least": effect.at_least,
        "outcome": effect.outcome,
    }


def _prediction(prediction: Prediction) -> dict[str, object]:
    return {
        "test": _cut(prediction.test),
        "codes": list(prediction.codes[:_MOST_ITEMS]),
        "metric": _cut(prediction.metric),
        "predicted_ns": prediction.predicted_ns,
        "measured_ns": prediction.measured_ns,
        "at_most": prediction.at_most,
    }


def _finding(finding: StepFinding) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": _cut(finding.name),
        "test": _cut(finding.test),
        "region": _cut(finding.region),
        "saving_ns": finding.saving_ns,
        "at_most": finding.at_most,
        "fix": _cut(finding.fix) if finding.fix else None,
    }


def _cut(text: str) -> str:
    return shortened(text, _LONGEST)
