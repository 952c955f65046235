"""A verdict in one sentence, and the commands that resolve it. Every reporter uses them."""

from __future__ import annotations

import posixpath
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.core.metric import OF_DEVICE, Better, Kind
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.core.text import counted, inert
from pytest_ttnn_perf.core.verdict import WITHOUT_BASELINE, Outcome, Reason
from pytest_ttnn_perf.report.tables import Line, format_change, format_fraction, format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Observation
    from pytest_ttnn_perf.core.verdict import Verdict


# What is particular about numbers: notes on them, and why some are not gated.


def recorded_only(judged: JudgedTest) -> list[str]:
    """Return the metrics of a test that have no verdict."""
    gated = {verdict.metric.name for verdict in judged.verdicts}
    return [name for name in judged.observation.metrics if name not in gated]


#: How the time is called that no region of a capture has: nobody gates it, so it is always named.
_OUTSIDE: Final = ".outside"


def note_lines(tests: Sequence[JudgedTest], *, verbose: bool) -> Iterator[Line]:
    """Say what is particular about numbers that passed; what several tests share, once.

    Of what was only recorded that is said if it is to be ``verbose``, of what could not be measured
    in one line.
    """
    found: dict[str, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for judged in tests:
        noted = {v.metric.name for v in judged.verdicts if v.detail is not None}
        recorded = recorded_only(judged)
        for name, observed in judged.observation.metrics.items():
            if not observed.note or name in noted:
                continue
            if not observed.samples and not verbose:
                lacking.setdefault(observed.note, []).append(judged.observation.test)
            elif verbose or name not in recorded or name.endswith(_OUTSIDE):
                note = f"{name}: {observed.note}"
                found.setdefault(note, []).append(judged.observation.test)
    yield from (Line(f"note {_where(names)}: {note}") for note, names in found.items())
    if lacking:
        names = [name for own in lacking.values() for name in own]
        why = next(iter(lacking)) if len(lacking) == 1 else "-v says why"
        yield Line(f"not measured {_where(names)}: {why}")


def _where(tests: Sequence[str]) -> str:
    names = dict.fromkeys(tests)
    return next(iter(names)) if len(names) == 1 else counted(len(names), "test")


def reasons_by_name(metrics: Iterable[MetricObservation]) -> Iterator[str]:
    """Say why metrics are recorded and not gated, where that is known; each reason once."""
    names: dict[str, dict[str, None]] = {}
    for observed in metrics:
        if not observed.gated and observed.why_ungated is not None:
            names.setdefault(observed.why_ungated, {})[observed.metric.name] = None
    for why, those in names.items():
        yield f"not gated, {why}: {', '.join(those)}"


def ungated_lines(tests: Iterable[JudgedTest], *, verbose: bool) -> Iterator[Line]:
    """Say what is not gated, by reason: all of it if it is to be ``verbose``, else how many."""
    reasons: dict[str, list[str]] = {}
    for judged in tests:
        for name in recorded_only(judged):
            why = judged.observation.metrics[name].why_ungated
            if why is not None:
                reasons.setdefault(why, []).append(f"{judged.observation.test}: {name}")
    if not reasons:
        return
    ordered = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    total = counted(sum(map(len, reasons.values())), "number")
    if not verbose:
        told = "; ".join(f"{len(names)}: {why}" for why, names in ordered)
        yield Line(f"recorded, not gated, and why: {total} ({told})")
        return
    yield Line(f"recorded, not gated, and why: {total}")
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


def sentence(verdict: Verdict) -> str:
    """Say what the gate found for one metric: found against expected, with the limit."""
    if verdict.outcome is Outcome.NO_DATA:
        return _no_data(verdict)
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    start = f"{verdict.metric.name} {now}"
    if verdict.reason is Reason.OUT_OF_MEMORY:
        stored = f"{verdict.metric.name} {format_value(verdict.metric, verdict.centre)}"
        return f"out of memory, and it used to fit (baseline {stored}): {verdict.detail}"
    if verdict.reason is not None and verdict.outcome is not Outcome.SHIFTED:
        return f"{start}{_REASONED[verdict.reason](verdict)}"
    then = format_value(verdict.metric, verdict.centre)
    compared = f"{start}, baseline {then}: {change_in_words(verdict)}"
    if verdict.outcome is Outcome.TOO_NOISY:
        return f"{compared}; too noisy to judge: noise alone reaches {_limit(verdict)}"
    shifted = ": only as slow as the machine" if verdict.outcome is Outcome.SHIFTED else ""
    ops = f"; {verdict.detail}" if verdict.detail and verdict.reason is None else ""
    return f"{compared}, limit {_limit(verdict)}{shifted} ({_basis(verdict)}){ops}"


def worst_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return verdicts with wrong outputs first, then times, then what is missing.

    The first line is all that pytest's short summary, and many a reader, has of a failure.
    """

    def badness(verdict: Verdict) -> tuple[bool, bool, int]:
        missing = verdict.outcome in WITHOUT_BASELINE
        wrong = verdict.metric.kind is Kind.ACCURACY and not missing
        return missing, not wrong, _BADNESS.index(verdict.outcome)

    return sorted(verdicts, key=badness)


#: Outcomes, the worst first.
_BADNESS: Final = (
    Outcome.REGRESSED, Outcome.NO_DATA, Outcome.TOO_NOISY, Outcome.NOT_COMPARABLE,
    Outcome.NO_BASELINE, Outcome.SHIFTED, Outcome.IMPROVED, Outcome.WITHIN,
)  # fmt: skip


#: What becomes of an outcome that would fail a test, once its result is the baseline.
ACCEPTED: Final = "ACCEPTED"


def outcome_word(verdict: Verdict, judged: JudgedTest) -> str:
    """Return the outcome of a metric, or that it was accepted: a regression is none any more."""
    fails = verdict.outcome in {Outcome.REGRESSED, Outcome.NOT_COMPARABLE}
    accepted = fails and verdict.metric.name in judged.written
    return ACCEPTED if accepted else verdict.outcome.value


def accept_line(tests: Sequence[JudgedTest], failed: frozenset[str], rerun: Rerun) -> Iterator[str]:
    """Say how the regressions of a run are accepted with one command, if there are several."""
    regressed = [
        judged.observation.test
        for judged in tests
        if judged.observation.test in failed and _can_be_accepted(judged)
    ]
    if len(regressed) > 1:
        command = rerun.accept(*regressed)
        yield f"accept all {len(regressed)} regressions with: {command}"


def _can_be_accepted(judged: JudgedTest) -> bool:
    """Tell whether a test has regressions, and none that no update accepts."""
    regressed = [v for v in judged.verdicts if v.outcome is Outcome.REGRESSED]
    return bool(regressed) and all(
        verdict.bound is None and verdict.reason is not Reason.OUT_OF_MEMORY
        for verdict in regressed
    )


def change_in_words(verdict: Verdict) -> str:
    """Say how much better or worse a metric is."""
    worse, better = _WORDS.get(
        (verdict.metric.kind, verdict.metric.better), _DIRECTION[verdict.metric.better]
    )
    if verdict.change is None:
        return "up from none"
    change = verdict.change_as_read
    if format_change(change) == format_change(0):
        return "no change"
    return f"{format_fraction(change)} {worse if verdict.change > 0 else better}"


def _limit(verdict: Verdict) -> str:
    return "no change" if not verdict.limit else format_fraction(verdict.limit_as_read)


def _basis(verdict: Verdict) -> str:
    samples = counted(verdict.samples, "sample")
    sessions = counted(verdict.sessions, "session")
    basis = f"{samples} against {sessions}"
    if verdict.confirmed:
        medians = ", ".join(format_value(verdict.metric, value) for value in verdict.confirmed)
        basis += f"; confirm passes: {medians}{_machine(verdict)}"
    if verdict.assumed and verdict.outcome is not Outcome.WITHIN:
        basis += "; sample noise assumed"
    return basis + (f"; {runs_seen(verdict.runs)} seen" if verdict.provisional else "")


def runs_seen(runs: int) -> str:
    """Say how few runs a provisional baseline rests on."""
    return "one run" if runs == 1 else f"{runs} runs"


def _machine(verdict: Verdict) -> str:
    """Say what the machine did meanwhile, which is not in the change."""
    move = verdict.machine
    if move is None:
        return "; nothing to compare the machine with"
    if format_change(move) == format_change(0):
        return ""
    way = "slower" if move > 0 else "faster"
    return f", not counting {format_fraction(abs(move))} by which the machine was {way}"


def _no_data(verdict: Verdict) -> str:
    name = verdict.metric.name
    detail = verdict.detail
    match verdict.reason:
        case Reason.RAISED:
            return f"nothing was judged: the test raised {detail}"
        case Reason.NOTHING_RECORDED:
            return "nothing was judged: the test recorded no metric"
        case Reason.NOT_RECORDED:
            return f"{name} is in the baseline but the test did not record it"
        case Reason.NO_SAMPLES:
            return f"{name} has no samples" + (f": {detail}" if detail else "")
        case Reason.NOT_POSITIVE:
            return f"{name} is zero or less: {detail}"
        case Reason.NOT_CONFIRMED:
            return f"{name}{_seen_once(verdict)} could not be confirmed: {detail}"
        case Reason.LOST:
            return f"nothing was judged: its worker {detail}"
        case _:
            return f"{name} is not a finite number" + (f": {detail}" if detail else "")


def _seen_once(verdict: Verdict) -> str:
    if verdict.observed is None:
        return ""
    now = format_value(verdict.metric, verdict.observed, beside=verdict.centre)
    if verdict.centre is None:
        return f" {now}"
    then = format_value(verdict.metric, verdict.centre)
    return f" {now}, baseline {then}: {change_in_words(verdict)}, which"


def _bound(verdict: Verdict) -> str:
    bound, value = verdict.bound, verdict.observed
    below = bound is not None and value is not None and value < bound
    limit = format_value(verdict.metric, bound)
    note = f" ({verdict.detail})" if verdict.detail else ""
    return f" is {'below' if below else 'above'} its limit {limit}{note}"


def _beside_baseline(verdict: Verdict) -> str:
    if verdict.centre is None:
        return ", no baseline"
    then = f", baseline {format_value(verdict.metric, verdict.centre)}"
    return then if verdict.change is None else f"{then}: {change_in_words(verdict)}"


_REASONED: Final[Mapping[Reason, Callable[[Verdict], str]]] = {
    Reason.ABSOLUTE_LIMIT: _bound,
    Reason.VALUE_CHANGED: lambda v: (
        f", baseline {format_value(v.metric, v.centre)}: it must not change"
    ),
    Reason.SAMPLES_DIFFER: lambda v: f" differs between samples ({v.detail}): it must not change",
    Reason.GONE: lambda v: f", baseline {format_value(v.metric, v.centre)}: no such op runs now",
    Reason.EXPLAINS: lambda v: f"{_beside_baseline(v)}; it explains {v.detail}, which is judged",
    Reason.OPS_CHANGED: lambda v: f"{_beside_baseline(v)}; {v.detail}",
    Reason.NEW_TEST: lambda _: " has no baseline: the test is new",
    Reason.NEW_METRIC: lambda _: " has no baseline: the metric is new in this test",
    Reason.OTHER_KEY: lambda v: f" has no baseline on this hardware, only on: {v.detail}",
    Reason.OTHER_CONFIGURATION: lambda v: f" was measured in another configuration: {v.detail}",
    Reason.OTHER_SOURCE: lambda v: f" comes from another source: {v.detail}",
    Reason.OTHER_DEFINITION: lambda v: f" is defined differently: {v.detail}",
}


class Remedy(NamedTuple):
    """What to do, in argv, and the command that does it where there is one."""

    advice: str
    command: str | None = None


def remedy(verdict: Verdict, updates: Updating) -> str | None:
    """Return what to do about a verdict in one line; None where nothing is to be done.

    ``updates`` are the commands that take the result of its test into the baselines.
    """
    found = remedy_of(verdict, updates)
    return ": ".join(filter(None, found)) if found else None


def remedy_of(verdict: Verdict, updates: Updating) -> Remedy | None:
    """Return the same with its command apart, ready to be copied; none that was just run."""
    found = _remedy_of(verdict, updates)
    return None if found is not None and found.command in updates.just_run else found


def _remedy_of(verdict: Verdict, updates: Updating) -> Remedy | None:
    match verdict.outcome:
        case Outcome.WITHIN | Outcome.SHIFTED:
            return None
        case Outcome.IMPROVED if verdict.reason is Reason.OPS_CHANGED:
            return Remedy("if these are all of its ops, accept it with", updates.accept)
        case Outcome.IMPROVED:
            return Remedy("keep it with", updates.keep)
        case Outcome.NO_BASELINE:
            return _new_remedy(verdict, updates)
        case Outcome.NOT_COMPARABLE | Outcome.REGRESSED:
            return _change_remedy(verdict, updates)
        case Outcome.TOO_NOISY:
            return _noise_remedy(verdict, updates)
        case Outcome.NO_DATA if verdict.reason is Reason.NOT_RECORDED:
            # As long as it is stored, an update writes nothing of this test.
            *words, dashes, test = updates.forget
            command = command_line(*words, "--metric", verdict.metric.name, dashes, test)
            return Remedy("record it again, or forget it with", command)
        case Outcome.NO_DATA:
            return Remedy(_data_remedy(verdict, updates))


def _new_remedy(verdict: Verdict, updates: Updating) -> Remedy:
    # Recorded anew, a renamed test would be compared with whatever speed it has now.
    if updates.rename is not None and verdict.reason is Reason.NEW_TEST:
        return Remedy("renamed? keep its baseline with", updates.rename)
    return Remedy("record it with", updates.record)


def _change_remedy(verdict: Verdict, updates: Updating) -> Remedy:
    if verdict.reason is Reason.OTHER_KEY:
        return Remedy("record it with", updates.record)
    if verdict.reason is Reason.ABSOLUTE_LIMIT:
        return Remedy("fix the model, or change the limit in the test; no update accepts this")
    if verdict.reason is Reason.OUT_OF_MEMORY:
        return Remedy(
            "make it fit again, or forget its baseline with", command_line(*updates.forget)
        )
    if verdict.reason is Reason.OTHER_DEFINITION:
        return Remedy(
            "correct the metric's definition in the test, or accept it with", updates.accept
        )
    return Remedy("accept it with", updates.accept)


def _noise_remedy(verdict: Verdict, updates: Updating) -> Remedy:
    if verdict.reason is Reason.SAMPLES_DIFFER:
        return Remedy('make it repeatable, or record it with better="lower" or "higher"')
    if verdict.provisional:
        return Remedy("it fails nothing before it has three runs; add one with", updates.keep)
    advice = "raise iterations= in the marker or quiet the machine; then record it anew with"
    return Remedy(advice, f"{command_line(*updates.forget)} && {updates.record}")


def _data_remedy(verdict: Verdict, updates: Updating) -> str:
    match verdict.reason:
        case Reason.RAISED:
            return f"fix the test; {updates.file} has the whole error, and what it measured before"
        case Reason.NOTHING_RECORDED:
            return "call ttnn_perf.measure(...) or ttnn_perf.record(...) in the test"
        case Reason.LOST:
            return "its log, named above, has what it printed, and what pytest had captured"
        case Reason.NOT_CONFIRMED:
            return "run it again; --ttnn-perf-confirm 0 judges by one measurement"
        case Reason.NOT_POSITIVE:
            return 'fix what produces the number; a value that may be zero needs kind="count"'
        case _:
            return "fix what produces the number; nothing was stored"


#: What makes tt-lang print where the time of a kernel goes.
_AUTO_PROFILE: Final = (
    "TTLANG_AUTO_PROFILE=1 TT_METAL_DEVICE_PROFILER=1 TT_METAL_PROFILER_MID_RUN_DUMP=1"
)


def command_line(*words: str) -> str:
    r"""Return a command as a shell is to read it, in which everything can be seen.

    What cannot be printed is spelt as bash and zsh read it.

    >>> command_line("pytest", "test_a.py::test_x[a b]", "two\nlines")
    "pytest 'test_a.py::test_x[a b]' $'two\\nlines'"
    """
    return " ".join(shlex.quote(word) if inert(word) == word else _spelt(word) for word in words)


def _spelt(word: str) -> str:
    raw = word.encode("utf-8", "surrogatepass").decode("latin-1")
    letters = (c if c.isascii() and c.isprintable() and c not in "\\'#" else _byte(c) for c in raw)
    return f"$'{''.join(letters)}'"


def _byte(character: str) -> str:
    # All three digits: the next letter may be one.
    return r"\n" if character == "\n" else f"\\{ord(character):03o}"


def place_of(path: str) -> str:
    """Return a path or a test's id as a word that no program takes for an option."""
    return f"./{path}" if path.startswith("-") else path


class Updating(NamedTuple):
    """Commands that keep a gain, record what has no baseline, and accept whatever it is.

    ``forget`` removes the baseline of a test. ``rename`` gives a test that is new the baseline of
    one that is gone from its file. ``file`` is the run record. ``just_run`` are those of them that
    this run was itself: what they did not resolve, they do not resolve the next time.
    """

    keep: str
    record: str
    accept: str
    forget: tuple[str, ...]
    file: str
    rename: str | None = None
    just_run: tuple[str, ...] = ()


def accept_command(
    records: Sequence[str],
    tests: Sequence[str],
    options: Sequence[str] = (),
    *,
    update: str = "all",
) -> str:
    """Return the command that takes tests of recorded runs into the baselines; all without any.

    Behind the two dashes a word is the id of one test, whatever it looks like. A reason accepts
    what got worse as well.
    """
    words = ("ttnn-perf", "baseline", "accept", *map(place_of, records), *options)
    how = '--reason "why"' if update == "all" else f"--update {update}"
    only = f" -- {command_line(*tests)}" if tests else ""
    return f"{command_line(*words)} {how}{only}"


def rename_command(before: str, after: str, options: Sequence[str]) -> str:
    """Return the command that gives a test the baseline of one that is gone."""
    words = (before, after, *options)
    if any(word.startswith("-") for word in (before, after)):
        words = (*options, "--", before, after)
    return command_line("ttnn-perf", "baseline", "rename", *words)


class Rerun(Struct, frozen=True):
    """How a user runs one test again from where they stand, or accepts what it measured.

    ``folder`` leads from there to the folder that test ids start from; ``options`` are those of
    this run that the next one needs too; ``selection`` is what it was asked to run, if anything.
    ``record`` is the record of this run, which nobody needs to repeat to accept it. ``records`` are
    those of a run that was made elsewhere, and cannot be repeated here. ``renamed`` has for tests
    that are new what may have been renamed to them: the old and the new name. ``node_ids`` has what
    pytest knows tests by that are filed under something else. ``tracy``: whether
    the ttnn there is built with Tracy, which a full profile needs. ``update`` is what this run
    writes into the baselines.
    """

    folder: str = ""
    options: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()
    record: str | None = None
    records: tuple[str, ...] = ()
    renamed: Mapping[str, tuple[str, str]] = {}
    node_ids: Mapping[str, str] = {}
    tracy: bool = False
    update: Update | None = None

    def updates(self, test: str, hardware: Hardware | None = None) -> Updating:
        """Return the commands that take a test's result into the baselines, or out of them."""
        accept, rename = self.accept(test), self._rename(test)
        key = () if hardware is None else ("--key", hardware.key)
        forget = ("ttnn-perf", "baseline", "forget", *self.baselines_option, *key, "--", test)
        file = ", ".join(self.records) or self.record or "the run record"
        if self.records:
            # A gain that one process measured is kept by a decision only.
            new = accept_command(self.records, (test,), self.baselines_option, update="new")
            return Updating(accept, new, accept, forget, file, rename)
        place = self._place(test)
        keep = f"{command_line('pytest', place, *self.options)} --ttnn-perf-update"
        record = f"{keep}=new"
        just_run: tuple[str, ...] = ()
        if self.update is not None:
            just_run = (record,) if self.update is Update.NEW else (record, keep)
        return Updating(keep, record, accept, forget, file, rename, just_run)

    def accept(self, *tests: str) -> str:
        """Return the command that accepts the results of tests, as they are in the record."""
        records = self.records or tuple(filter(None, [self.record]))
        if records:
            return accept_command(records, tests, self.baselines_option)
        run = command_line("pytest", *map(self._place, tests), *self.options)
        return f'{run} --ttnn-perf-update=all --ttnn-perf-reason "why"'

    def _place(self, test: str) -> str:
        """Return a test as pytest is told to run it."""
        return place_of(posixpath.join(self.folder, self.node_ids.get(test, test)))

    def _rename(self, test: str) -> str | None:
        if test not in self.renamed:
            return None
        return rename_command(*self.renamed[test], self.baselines_option)

    @property
    def baselines_option(self) -> tuple[str, ...]:
        """The option with which commands of ``ttnn-perf`` find the baselines of this run."""
        argv = dict(zip(self.options[::2], self.options[1::2], strict=True))
        folder = argv.get("--ttnn-perf-baselines")
        return () if folder is None else ("--baselines", folder)

    def full_profile(self, observation: Observation) -> str | None:
        """Return the command that profiles a test in all detail; None where there is none."""
        if not self.tracy:
            return None
        path = self._place(observation.test)
        if observation.has_kernels:  # not with a perf dump beside it, which changes what is timed
            return f"{_AUTO_PROFILE} {command_line('pytest', '-s', path)}"
        if observation.is_simulated:
            return None  # there is nothing to profile
        if any(observed.metric.source in OF_DEVICE for observed in observation.metrics.values()):
            words = ("python", "-m", "tracy", "-r", "-p", "-v", "-m", "pytest")
            return command_line(*words, path)
        return None

    def accept_all(self) -> str:
        """Return the command that accepts the results of all tests, measured anew if they can be.

        It is for a machine that has changed for good: one measurement of it is not enough.
        """
        if self.records:
            return self.accept()
        selection = self.selection or ((self.folder,) if self.folder else ())
        run = command_line("pytest", *map(place_of, selection), *self.options)
        return f'{run} --ttnn-perf-update=all --ttnn-perf-reason "why"'
