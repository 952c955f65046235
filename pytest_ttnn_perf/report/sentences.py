"""Verdicts and sweeps in sentences, and the commands that resolve them."""

from __future__ import annotations

import posixpath
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind
from pytest_ttnn_perf.core.observation import WITHOUT_BASELINE, Outcome, Reason
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.core.text import counted, digits, inert
from pytest_ttnn_perf.gate.judge import is_learning
from pytest_ttnn_perf.gate.ratios import POLICY
from pytest_ttnn_perf.report.tables import (
    Fit,
    Line,
    format_change,
    format_fraction,
    format_value,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import (
        JudgedTest,
        MetricObservation,
        Run,
        Verdict,
    )
    from pytest_ttnn_perf.gate.sweeps import Sweep
    from pytest_ttnn_perf.report.tables import Table


# Notes on numbers, and the reasons why some are not gated.


def recorded_only(judged: JudgedTest) -> list[str]:
    """Return the metrics of a test that have no verdict."""
    gated = {verdict.metric.name for verdict in judged.verdicts}
    return [name for name in judged.observation.metrics if name not in gated]


#: The time that no region of a capture has is never gated, so its note is always shown.
_OUTSIDE: Final = ".outside"


def note_lines(tests: Sequence[JudgedTest], *, verbose: bool) -> Iterator[Line]:
    """Yield the notes on numbers that passed, each once."""
    found: dict[str, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for judged in tests:
        test, recorded = judged.observation.test, recorded_only(judged)
        noted = {v.metric.name for v in judged.verdicts if v.detail is not None}
        for name, observed in judged.observation.metrics.items():
            if not observed.note or name in noted:
                continue
            if not observed.samples and not verbose:
                lacking.setdefault(observed.note, []).append(test)
            elif verbose or name not in recorded or name.endswith(_OUTSIDE):
                found.setdefault(f"{name}: {observed.note}", []).append(test)
        for verdict in judged.verdicts:
            if verdict.undecided and verdict.confirmed:
                size = f"{change_in_words(verdict)}, limit {format_fraction(verdict.limit_as_read)}"
                note = f"{verdict.metric.name}: {size}: undecided; --ttnn-perf-confirm=ab decides"
                found.setdefault(note, []).append(test)
    yield from (Line(f"note {_where(names)}: {note}") for note, names in found.items())
    if lacking:
        names = [name for own in lacking.values() for name in own]
        why = next(iter(lacking)) if len(lacking) == 1 else "-v says why"
        yield Line(f"not measured {_where(names)}: {why}")


def _where(tests: Sequence[str]) -> str:
    names = dict.fromkeys(tests)
    return next(iter(names)) if len(names) == 1 else counted(len(names), "test")


def reasons_by_name(metrics: Iterable[MetricObservation]) -> Iterator[str]:
    names: dict[str, dict[str, None]] = {}
    for observed in metrics:
        if not observed.gated and observed.why_ungated is not None:
            names.setdefault(observed.why_ungated, {})[observed.metric.name] = None
    yield from (f"not gated, {why}: {', '.join(own)}" for why, own in names.items())


def ungated_lines(tests: Iterable[JudgedTest], *, verbose: bool) -> Iterator[Line]:
    reasons: dict[str, list[str]] = {}
    for judged in tests:
        for name in recorded_only(judged):
            why = judged.observation.metrics[name].why_ungated
            if why is not None:
                reasons.setdefault(why, []).append(f"{judged.observation.test}: {name}")
    if not reasons:
        return
    ordered = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    text = "recorded, not gated, and why: " + counted(sum(map(len, reasons.values())), "number")
    if not verbose:
        counts = "; ".join(f"{len(names)}: {why}" for why, names in ordered)
        yield Line(f"{text} ({counts})")
        return
    yield Line(text)
    for why, names in ordered:
        yield Line(f"  {why}:")
        yield from (Line(f"    {name}") for name in names)


#: Worse and better, in the words that fit a metric.
_WORDS: Final = {
    (Kind.TIME, Better.LOWER): ("slower", "faster"),
    (Kind.TIME, Better.HIGHER): ("shorter", "longer"),
}
_DIRECTION: Final = {
    Better.LOWER: ("higher", "lower"),
    Better.HIGHER: ("lower", "higher"),
    Better.EQUAL: ("different", "different"),
}


def sentence(verdict: Verdict, *, more: int = 0) -> str:
    """Return metric, change, limit and values; ``more`` metrics are alike."""
    if verdict.outcome is Outcome.NO_DATA:
        return _no_data(verdict)
    name, then = verdict.metric.name, format_value(verdict.metric, verdict.centre)
    if verdict.reason is Reason.OUT_OF_MEMORY:
        return f"out of memory, and it used to fit (baseline {name} {then}): {verdict.detail}"
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    if verdict.reason is not None and verdict.outcome is not Outcome.SHIFTED:
        alike = f" ({more} more)" if more else ""
        return f"{name} {_REASONED[verdict.reason](verdict, f'{now}{alike}')}"
    values = f"({now}, baseline {then})"
    if verdict.outcome is Outcome.TOO_NOISY:
        return f"{name} cannot notice less than {format_fraction(verdict.limit_as_read)} {values}"
    shifted = ": no more than all tests" if verdict.outcome is Outcome.SHIFTED else ""
    runs = f" (provisional: {counted(verdict.runs, 'run')})" if verdict.provisional else ""
    if verdict.outcome is Outcome.REGRESSED and is_learning(verdict):
        runs = f" (a warning: {counted(verdict.runs, 'run')} of {POLICY.few} seen)"
    ops = f"; {verdict.detail}" if verdict.detail and verdict.reason is None else ""
    limit = f"limit {format_fraction(verdict.limit_as_read)}" if verdict.limit else "none allowed"
    return f"{name} {_measured(verdict)}, {limit} {values}{shifted}{runs}{ops}"


def _measured(verdict: Verdict) -> str:
    """Return the measured change, and that without what all tests share."""
    machine, change = verdict.machine, verdict.change
    if change is None or not machine or format_change(machine) == format_change(0):
        return change_in_words(verdict)
    measured = replace(verdict, change=(1 + change) * (1 + machine) - 1)
    own = format_change(verdict.change_as_read).removeprefix("+")
    shared = format_change(verdict.metric.as_read(machine)).removeprefix("+")
    return f"{change_in_words(measured)} ({own} without the {shared} all tests share)"


def badness(verdict: Verdict) -> tuple[bool, bool, int, float]:
    """Sort wrong outputs first, then change per limit, then missing baselines."""
    missing = verdict.outcome in WITHOUT_BASELINE
    wrong = verdict.metric.kind is Kind.ACCURACY and not missing
    per_limit = (verdict.change or 0.0) / (verdict.limit or 1.0)
    return missing, not wrong, _BADNESS.index(verdict.outcome), -per_limit


def worst_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    return sorted(verdicts, key=badness)


def worst_tests_first(tests: Iterable[JudgedTest], failed: frozenset[str]) -> list[JudgedTest]:
    """Sort failed tests by their worst verdict, before all others."""

    def order(judged: JudgedTest) -> tuple[bool, tuple[bool, bool, int, float]]:
        if judged.observation.test not in failed:
            return True, _LAST
        unwritten = (v for v in judged.verdicts if v.metric.name not in judged.written)
        return False, min(map(badness, unwritten), default=_LAST)

    return sorted(tests, key=order)


#: Outcomes, the worst first.
_BADNESS: Final = (
    Outcome.REGRESSED, Outcome.NO_DATA, Outcome.TOO_NOISY, Outcome.NOT_COMPARABLE,
    Outcome.NO_BASELINE, Outcome.SHIFTED, Outcome.IMPROVED, Outcome.WITHIN,
)  # fmt: skip
_LAST: Final = (True, True, len(_BADNESS), 0.0)


#: What becomes of an outcome that would fail a test, once its result is the baseline.
ACCEPTED: Final = "ACCEPTED"
#: The words of a verdict in print that no record has.
PRINTED: Final = (ACCEPTED, "RECORDED", "BELOW_LIMIT", "ABOVE_LIMIT")


def label(verdict: Verdict, judged: JudgedTest | None = None) -> str:
    """Return the printed word; ``judged`` knows what was written."""
    if judged is not None and verdict.metric.name in judged.written:
        if verdict.outcome is Outcome.NO_BASELINE:
            return "RECORDED"
        return verdict.outcome.value if verdict.outcome is Outcome.WITHIN else ACCEPTED
    if verdict.bound is None or verdict.observed is None:
        return verdict.outcome.value
    return "BELOW_LIMIT" if verdict.observed < verdict.bound else "ABOVE_LIMIT"


def accept_line(tests: Sequence[JudgedTest], failed: frozenset[str], rerun: Rerun) -> Iterator[str]:
    regressed = []
    for judged in tests:
        worse = [v for v in judged.verdicts if v.outcome is Outcome.REGRESSED]
        never = any(v.bound is not None or v.reason is Reason.OUT_OF_MEMORY for v in worse)
        if judged.observation.test in failed and worse and not never:
            regressed.append(judged.observation.test)
    if len(regressed) > 1:
        yield f"accept all {len(regressed)} regressions: {rerun.accept(*regressed)}"


def change_in_words(verdict: Verdict) -> str:
    worse, better = _WORDS.get(
        (verdict.metric.kind, verdict.metric.better), _DIRECTION[verdict.metric.better]
    )
    if verdict.change is None:
        return "up from none"
    change = verdict.change_as_read
    if format_change(change) == format_change(0):
        return "no change"
    return f"{format_fraction(change)} {worse if verdict.change > 0 else better}"


def _no_data(verdict: Verdict) -> str:
    name, detail = verdict.metric.name, verdict.detail
    if verdict.reason is Reason.NOT_CONFIRMED:
        now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
        seen = f" {now}{_beside_baseline(verdict)}, which" if verdict.observed else ""
        return f"{name}{seen} could not be confirmed: {detail}"
    known = _WITHOUT_DATA.get(verdict.reason)
    if known is not None:
        return known.format(name=name, detail=detail)
    what = "has no samples" if verdict.reason is Reason.NO_SAMPLES else "is not a finite number"
    return f"{name} {what}" + (f": {detail}" if detail else "")


_WITHOUT_DATA: Final[Mapping[Reason | None, str]] = {
    Reason.RAISED: "nothing was judged: the test raised {detail}",
    Reason.NOTHING_RECORDED: "nothing was judged: the test recorded no metric",
    Reason.NOTHING_GATED: "nothing was judged: none of {detail}",
    Reason.NOTHING_TIMED: "nothing was judged: none of {detail}",
    Reason.NOT_RECORDED: "{name} is in the baseline but the test did not record it",
    Reason.NOT_POSITIVE: "{name} is zero or less: {detail}",
    Reason.LOST: "nothing was judged: its worker {detail}",
}


def _beside_baseline(verdict: Verdict) -> str:
    if verdict.centre is None:
        return ", no baseline"
    then = f", baseline {format_value(verdict.metric, verdict.centre)}"
    return then if verdict.change is None else f"{then}: {change_in_words(verdict)}"


def _bound(verdict: Verdict, now: str) -> str:
    note = f" ({verdict.detail})" if verdict.detail else ""
    return f"{now}, limit {format_value(verdict.metric, verdict.bound)}{note}"


def _changed(verdict: Verdict, why: str) -> str:
    return f", baseline {format_value(verdict.metric, verdict.centre)}: {why}"


#: What follows the name of a metric, by reason, from its verdict and its value.
_REASONED: Final[Mapping[Reason, Callable[[Verdict, str], str]]] = {
    Reason.ABSOLUTE_LIMIT: _bound,
    Reason.VALUE_CHANGED: lambda v, now: now + _changed(v, "it must not change"),
    Reason.SAMPLES_DIFFER: lambda v, now: (
        f"{now} differs between samples ({v.detail}): it must not change"
    ),
    Reason.GONE: lambda v, now: now + _changed(v, "no such op runs now"),
    Reason.EXPLAINS: lambda v, now: (
        f"{now}{_beside_baseline(v)}; it explains {v.detail}, which is judged"
    ),
    Reason.UNDECIDED: lambda v, now: f"{now}{_beside_baseline(v)}; {v.detail}",
    Reason.OPS_CHANGED: lambda v, now: f"{now}{_beside_baseline(v)}; {v.detail}",
    Reason.NEW_TEST: lambda _, now: f"{now}: new test, nothing to compare with",
    Reason.NEW_METRIC: lambda _, now: f"{now}: new metric, nothing to compare with",
    Reason.OTHER_KEY: lambda v, now: f"{now}: no baseline on this hardware, only on: {v.detail}",
    Reason.OTHER_CONFIGURATION: lambda v, now: (
        f"{now} was measured in another configuration: {v.detail}"
    ),
    Reason.OTHER_SOURCE: lambda v, now: f"{now} comes from another source: {v.detail}",
    Reason.OTHER_DEFINITION: lambda v, now: f"{now} is defined differently: {v.detail}",
}


class Remedy(NamedTuple):
    """Advice, and the command that follows it where there is one."""

    advice: str
    command: str | None = None

    def __str__(self) -> str:
        return ": ".join(filter(None, self))


#: Advice by reason, else by outcome, and the name of the command that follows it.
_REMEDIES: Final[Mapping[Reason | Outcome | None, tuple[str, str]]] = {
    Reason.OPS_CHANGED: ("if these are all of its ops, accept", "accept"),
    Reason.OTHER_KEY: ("record", "record"),
    Reason.OTHER_DEFINITION: (
        "correct the metric's definition in the test, or accept", "accept"),
    Reason.ABSOLUTE_LIMIT: (
        "fix the model, or change the limit in the test; no update accepts this", ""),
    Reason.OUT_OF_MEMORY: ("make it fit again, or forget its baseline", "forget"),
    Reason.SAMPLES_DIFFER: (
        'make it repeatable, or record it with better="lower" or "higher"', ""),
    # As long as it is stored, an update writes nothing of this test.
    Reason.NOT_RECORDED: ("record it again, or forget it", "forget metric"),
    Reason.RAISED: (
        "fix the test; {file} has the whole error, and what it measured before", ""),
    Reason.NOTHING_RECORDED: (
        "call ttnn_perf.measure(...) or ttnn_perf.record(...) in the test", ""),
    Reason.NOTHING_GATED: (
        "say what a number means: [tool.ttnn_perf.measurements], or gate_call_time = true; "
        "to let such tests pass: --ttnn-perf-missing=warn", ""),
    Reason.NOTHING_TIMED: (
        "run it on hardware, or check a PCC; "
        "to let such tests pass: --ttnn-perf-missing=warn", ""),
    Reason.LOST: (
        "its log, named above, has what it printed, and what pytest had captured", ""),
    Reason.NOT_CONFIRMED: (
        "run it again; --ttnn-perf-confirm 0 judges by one measurement", ""),
    Reason.NOT_POSITIVE: (
        'fix what produces the number; a value that may be zero needs kind="count"', ""),
    Outcome.IMPROVED: ("keep", "keep"),
    Outcome.NO_BASELINE: ("record", "record"),
    Outcome.NOT_COMPARABLE: ("accept", "accept"),
    Outcome.REGRESSED: ("accept", "accept"),
    Outcome.TOO_NOISY: ("quiet the machine, or append this run to its baseline", "keep"),
    Outcome.NO_DATA: ("fix what produces the number; nothing was stored", ""),
}  # fmt: skip


def remedy_of(verdict: Verdict, updates: UpdateCommands) -> Remedy | None:
    """Return the remedy for a verdict, unless it was just tried."""
    if verdict.outcome in {Outcome.WITHIN, Outcome.SHIFTED}:
        return None
    advice, name = _REMEDIES.get(verdict.reason) or _REMEDIES[verdict.outcome]
    command = updates.named(name, verdict.metric.name)
    found = Remedy(advice.format(file=updates.file), command)
    return None if command is not None and command in updates.just_run else found


def command_line(*words: str) -> str:
    """Return a quoted command; unprintable letters are spelt for bash and zsh."""
    return " ".join(shlex.quote(word) if inert(word) == word else _spelt(word) for word in words)


def _spelt(word: str) -> str:
    def letter(c: str) -> str:
        if c.isascii() and c.isprintable() and c not in "\\'#":
            return c
        # All three digits: the next letter may be one.
        return r"\n" if c == "\n" else f"\\{ord(c):03o}"

    raw = word.encode("utf-8", "surrogatepass").decode("latin-1")
    return f"$'{''.join(map(letter, raw))}'"


def reproduction(run: Run, judged: JudgedTest, build: str | None) -> list[tuple[str, str]]:
    """Return what it takes to measure a test again; ``run`` is last."""
    seen, here = judged.observation, run.environment
    hardware = seen.hardware or run.hardware
    host = ", ".join(filter(None, (here.runner or here.host_hash, here.system, here.cpu)))
    versions = {"ttnn": here.ttnn, "torch": here.torch, "numpy": here.numpy,
                "pytest": here.pytest, "ttnn-perf": here.plugin}  # fmt: skip
    found = [here.python, *(f"{name} {version}" for name, version in versions.items() if version)]
    words = [f"{name}={value}" for name, value in seen.setting.items()]
    of = f" of {here.branch}" if here.branch else ""
    commit = f"{here.commit}{of}" + (", with uncommitted changes" if here.dirty else "")
    checkout = f"git checkout {here.commit} && git submodule update --init --recursive && "
    variables = f"{here.variables} " if here.variables else ""
    run_again = command_line("pytest", "--ttnn-perf", place_of(seen.node_id or seen.test))
    parts = {
        "board": hardware.key if hardware else None,
        "host": host,
        "build": ", ".join(filter(None, found)),
        "configuration": ", ".join(words),
        "variables": here.variables,
        "commit": commit if here.commit else None,
        "run": f"{checkout if here.commit else ''}{f'{build} && ' if build else ''}"
               f"{variables}{run_again}",
    }  # fmt: skip
    return [(what, text) for what, text in parts.items() if text]


def place_of(path: str) -> str:
    """Return a path or id that no program takes for an option."""
    return f"./{path}" if path.startswith("-") else path


class UpdateCommands(NamedTuple):
    """Commands that change a baseline; one that was ``just_run`` resolves no more."""

    keep: str
    record: str
    accept: str
    forget: tuple[str, ...]
    file: str
    just_run: tuple[str, ...] = ()

    def named(self, name: str, metric: str) -> str | None:
        """Return a command by its name; ``forget`` may be of one metric."""
        *words, dashes, test = self.forget
        commands = {
            "keep": self.keep,
            "record": self.record,
            "accept": self.accept,
            "forget": command_line(*self.forget),
            "forget metric": command_line(*words, "--metric", metric, dashes, test),
        }
        return commands.get(name)


def accept_command(
    records: Sequence[str],
    tests: Sequence[str],
    options: Sequence[str] = (),
    *,
    update: str = "all",
) -> str:
    """Return the command that accepts tests of recorded runs; all without any."""
    words = ("ttnn-perf", "baseline", "accept", *map(place_of, records), *options)
    how = '--reason "why"' if update == "all" else f"--update {update}"
    only = f" -- {command_line(*tests)}" if tests else ""
    return f"{command_line(*words)} {how}{only}"


class Rerun(Struct, frozen=True):
    """The commands that repeat or accept tests."""

    #: Leads to the folder that test ids start from.
    folder: str = ""
    options: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()
    record: str | None = None
    #: Of a run that was made elsewhere, and cannot be repeated here.
    records: tuple[str, ...] = ()
    #: Of tests that are filed under other names.
    node_ids: Mapping[str, str] = {}
    update: Update | None = None
    #: The commit to compare with: where the branch began; None if unknown.
    base: str | None = None
    #: Of ``ttnn-perf run``, whose only test it is: what follows these words.
    script: tuple[str, ...] = ()

    def compare(self, *tests: str) -> str | None:
        """Return the command that measures tests and the commit before in turns."""
        if self.base is None:
            return None
        return command_line("ttnn-perf", "ab", self.base, *self.script or map(self._place, tests))

    def updates(self, test: str, hardware: Hardware | None = None) -> UpdateCommands:
        accept = self.accept(test)
        key = () if hardware is None else ("--key", hardware.key)
        forget = ("ttnn-perf", "baseline", "forget", *self.baselines_option, *key, "--", test)
        file = ", ".join(self.records) or self.record or "the run record"
        if self.records:
            # A gain that one process measured is kept by a decision only.
            new = accept_command(self.records, (test,), self.baselines_option, update="new")
            return UpdateCommands(accept, new, accept, forget, file)
        place = self._place(test)
        keep = f"{command_line('pytest', place, *self.options)} --ttnn-perf-update"
        record = f"{keep}=new"
        if self.script:
            keep, record = (
                command_line("ttnn-perf", "run", *options, *self.baselines_option, *self.script)
                for options in (("--update=improved",), ("--update=new",))
            )
        just_run: tuple[str, ...] = ()
        if self.update is not None:
            just_run = (record,) if self.update is Update.NEW else (record, keep)
        return UpdateCommands(keep, record, accept, forget, file, just_run)

    def accept(self, *tests: str) -> str:
        """Return the command that accepts the recorded results of tests."""
        records = self.records or tuple(filter(None, [self.record]))
        if records:
            return accept_command(records, tests, self.baselines_option)
        run = command_line("pytest", *map(self._place, tests), *self.options)
        return f'{run} --ttnn-perf-update=all --ttnn-perf-reason "why"'

    def replace(self, *tests: str) -> str:
        """Return the command that begins baselines anew with recorded results."""
        forget = ("ttnn-perf", "baseline", "forget", *self.baselines_option, "--", *tests)
        return f"{command_line(*forget)} && {self.accept(*tests)}"

    def _place(self, test: str) -> str:
        return place_of(posixpath.join(self.folder, self.node_ids.get(test, test)))

    @property
    def baselines_option(self) -> tuple[str, ...]:
        argv = dict(zip(self.options[::2], self.options[1::2], strict=True))
        folder = argv.get("--ttnn-perf-baselines")
        return () if folder is None else ("--baselines", folder)

    def accept_all(self) -> str:
        """Return the command that accepts all tests, measured anew."""
        if self.records:
            return self.accept()
        selection = self.selection or ((self.folder,) if self.folder else ())
        run = command_line("pytest", *map(place_of, selection), *self.options)
        return f'{run} --ttnn-perf-update=all --ttnn-perf-reason "why"'


#: So many points are listed; all are in the record.
_MOST: Final = 40
#: How many points are named where they are a list of their own.
_MOST_NAMED: Final = 6


def sweep_lines(sweep: Sweep) -> Iterator[Line | Table]:
    yield Line(heading(sweep))
    headings, rows = sweep_table(sweep)
    values = range(len(sweep.axes), len(headings) - 1)
    numeric = (
        place
        for place, axis in enumerate(sweep.axes)
        if all(isinstance(value, (int, float)) for value in axis.values)
    )
    fits = [*(Fit() for _ in headings[:-1]), Fit(least=13)]
    yield table_of(headings, rows[:_MOST], right=frozenset({*numeric, *values}), fits=fits)
    if len(rows) > _MOST:
        yield Line(f"... and {len(rows) - _MOST} more points; the run record has them")
    yield from (Line(f"  {text}") for text in sweep_sentences(sweep))
    yield Line("")


def heading(sweep: Sweep) -> str:
    axes = ", ".join(axis.axis for axis in sweep.axes)
    ended = [
        f"{count} {state}"
        for state in ("out of memory", "failed")
        if (count := sum(point.state == state for point in sweep.points))
    ]
    text = f"sweep {sweep.test} over {axes}: {counted(len(sweep.points), 'point')}"
    return "; ".join([text, *ended])


def sweep_table(sweep: Sweep) -> tuple[list[str], list[list[str]]]:
    columns = [(each.role, each.metric) for each in sweep.metrics]
    by_unit = [m.unit if m.kind is Kind.THROUGHPUT and m.unit else m.name for _, m in columns]
    values = {role: [point.value(role) for point in sweep.points] for role, _ in columns}
    largest = {
        role: max((abs(value) for value in own if value is not None), default=None)
        for role, own in values.items()
    }
    rows = []
    for place, point in enumerate(sweep.points):
        row = [str(point.axes[axis.axis]) for axis in sweep.axes]
        for role, metric in columns:
            value = values[role][place]
            if value is not None and metric.kind is Kind.THROUGHPUT:
                row.append(digits(value))
            else:
                row.append(format_value(metric, value, beside=largest[role]))
        state = ", ".join([*(["best"] if point.test in sweep.best else []), *point.unmet])
        rows.append([*row, state if point.state == "measured" else point.state])
    return [*(axis.axis for axis in sweep.axes), *by_unit, "point"], rows


def sweep_sentences(sweep: Sweep) -> Iterator[str]:
    if len(sweep.points) < 2:
        return
    yield _best(sweep)
    for axis in sweep.axes:
        if axis.compared and not axis.took_effect:
            yield f"axis {axis.axis}: changed nothing that was observed (TTP013)"


def _best(sweep: Sweep) -> str:
    if sweep.best_by is None:
        return "best: cannot tell: no point has a throughput or a time"
    required = ", ".join(f"{name} {bound}" for name, bound in sweep.require.items())
    if not sweep.best:
        return f"best: none: no point meets what is required{f' ({required})' if required else ''}"
    metric = next(each.metric for each in sweep.metrics if each.role is sweep.best_by)
    points = {point.test: point for point in sweep.points}
    named = []
    for point in (points[test] for test in sweep.best[:_MOST_NAMED]):
        axes = " ".join(f"{axis}={value}" for axis, value in point.axes.items())
        named.append(f"{axes} ({format_value(metric, point.value(sweep.best_by))})")
    more = len(sweep.best) - _MOST_NAMED
    named += [f"and {more} more"] if more > 0 else []
    of = f" of those that meet {required}" if required else ""
    alike = ", within noise of each other" if len(sweep.best) > 1 else ""
    return f"best {sweep.best_by.value}{of}{alike}: {'; '.join(named)}"
