"""Confirm passes: what is measured again, beside which controls, and what that decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import DecodeError
from pytest_ttnn_perf.core.messages import PassKind
from pytest_ttnn_perf.core.metric import Source
from pytest_ttnn_perf.core.observation import Observation
from pytest_ttnn_perf.core.text import NANOSECONDS_IN
from pytest_ttnn_perf.core.verdict import Outcome, Reason
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.machine_shift import Move, machine_move, middle_of, moved_again, vote_of
from pytest_ttnn_perf.gate.ratios import is_open
from pytest_ttnn_perf.gate.update import Action, actions_of
from pytest_ttnn_perf.plugin.workers import Pass, ResultListener

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pytest_ttnn_perf.core.observation import JudgedTest
    from pytest_ttnn_perf.core.settings import Update
    from pytest_ttnn_perf.core.verdict import Verdict
    from pytest_ttnn_perf.gate.gated_run import GateRun
    from pytest_ttnn_perf.plugin.workers import WorkerLauncher


# What the machine does meanwhile: controls beside suspects.


class MachineMoves:
    """How much worse controls were than their baselines say, by source, in one pass; fractions.

    ``overall`` takes each test once, whatever it measures. None where no control tells.
    """

    __slots__ = ("by_source", "controls", "otherwise", "overall")

    def __init__(
        self, controls: Iterable[Mapping[Source, Move]], otherwise: float | None = None
    ) -> None:
        moves = [control for control in controls if control]
        sources = {source for control in moves for source in control}
        self.controls = len(moves)
        #: What holds where no control tells.
        self.otherwise = otherwise
        self.by_source = {
            source: machine_move([control[source] for control in moves if source in control])
            for source in sources
        }
        middles = (middle_of(control.values()) for control in moves)
        self.overall = machine_move([move for move in middles if move is not None])

    def of(self, source: Source) -> float | None:
        """Return how much worse the machine was for what this source measures."""
        move = self.by_source.get(source, self.otherwise)
        return None if move is None else round(move, 5)


#: What a control's timings may be.
_STEADY: Final = frozenset({Outcome.WITHIN, Outcome.SHIFTED})


def is_steady(judged: JudgedTest) -> bool:
    """Return whether a test can tell of the machine: one that has changed tells of itself."""
    timings = {v.outcome for v in judged.verdicts if v.metric.compared_by_ratio}
    return timings <= _STEADY


def moves_at_first(tests: Iterable[JudgedTest], otherwise: float | None) -> MachineMoves:
    """Return what the first pass shows of the machine, by tests that are not suspect."""
    return MachineMoves(
        (
            {
                source: move
                for source in {verdict.metric.source for verdict in judged.verdicts}
                if (move := vote_of(judged.verdicts, source)) is not None
            }
            for judged in tests
            if is_steady(judged)
        ),
        otherwise,
    )


def moves_of_control(judged: JudgedTest, again: Observation) -> Mapping[Source, Move]:
    """Return how a control moved from its baseline when it was measured again; {} if it failed."""
    names = judged.observation.metrics.keys()
    if why_not_counted(judged.observation, again, names) is not None:
        return {}
    by_source: dict[Source, list[Move]] = {}
    for verdict in judged.verdicts:
        observed = again.metrics.get(verdict.metric.name)
        move = moved_again(verdict, observed.samples) if observed else None
        if move is not None:
            by_source.setdefault(verdict.metric.source, []).append(move)
    middles = {source: middle_of(moves) for source, moves in by_source.items()}
    return {source: move for source, move in middles.items() if move is not None}


#: The most controls of a pass, and how many there are whatever they cost.
_MOST_CONTROLS: Final = 8
_LEAST_CONTROLS: Final = 3
#: As long as all of them take no longer than this, there is nothing to save.
_CHEAP_NS: Final = 1e9


def choose_controls(
    tests: Mapping[str, JudgedTest], suspects: Collection[str], sources: Collection[Source]
) -> tuple[str, ...]:
    """Return the tests that are measured again beside suspects, to see what the machine does.

    Tests that are not suspect, and that tell most for their time: short and quiet ones. Beyond a
    few, they take no longer than the suspects do, or a second. Tests that a shift explains come
    last.
    """
    candidates: list[tuple[bool, float, str]] = []
    for test, judged in tests.items():
        observation = judged.observation
        broken = observation.problems or observation.raised is not None or observation.unconfirmed
        again = any(seen.confirmations for seen in observation.metrics.values())
        moves = [move for source in sources if (move := vote_of(judged.verdicts, source))]
        if test in suspects or broken or again or not moves or not is_steady(judged):
            continue
        shifted = any(verdict.outcome is Outcome.SHIFTED for verdict in judged.verdicts)
        noise = min(move.limit for move in moves)
        candidates.append((shifted, _wall_ns(observation) * noise**2, test))
    left_ns = sum(_wall_ns(tests[test].observation) for test in suspects)
    left_ns = max(left_ns, _CHEAP_NS)
    # Beside tests that moved with the machine, those that did not say more: they are asked alone.
    steady = [candidate for candidate in candidates if not candidate[0]]
    chosen: list[str] = []
    for _, _, test in sorted(steady if len(steady) >= _LEAST_CONTROLS else candidates):
        took_ns = _wall_ns(tests[test].observation)
        if len(chosen) < _LEAST_CONTROLS or took_ns <= left_ns:
            chosen.append(test)
            left_ns -= took_ns
    return tuple(chosen[:_MOST_CONTROLS])


def _wall_ns(observation: Observation) -> float:
    """Return how long the measured calls of a test took, as far as that is known."""
    times = [
        sum(observed.samples) * NANOSECONDS_IN[observed.metric.unit]
        for observed in observation.metrics.values()
        if observed.metric.source is Source.WALL and observed.metric.unit in NANOSECONDS_IN
    ]
    return max(times, default=1.0)


#: What is the same however often it is asked for, or is told at the end alone.
MEASURED_ONCE: Final = frozenset({Source.REPLAY, Source.TRACY})
#: What makes a new centre: one lucky or unlucky process must not become it.
_DECISIVE: Final = frozenset({Action.ADD, Action.ACCEPT, Action.REPLACE})


def in_question(
    judged: JudgedTest, update: Update | None, *, passes: int, shift: float = 0.0
) -> frozenset[str]:
    """Return the metrics of a test that are measured again before anything is decided.

    Those that may be worse than their limit, and those that would become a baseline. Times and
    throughputs only: what is compared exactly has no luck. Each ``passes`` times at most. A
    ``shift`` of the whole machine to the worse (a fraction) makes none a suspect.
    """
    observation = judged.observation
    if observation.problems or observation.raised is not None or observation.unconfirmed:
        return frozenset()
    actions = actions_of(_without_suspects(judged), update) if update else {}
    return frozenset(
        verdict.metric.name
        for verdict in judged.verdicts
        if verdict.metric.compared_by_ratio
        # What was recorded is the same however often it is read; Tracy reports at its end alone.
        and verdict.metric.source not in MEASURED_ONCE
        and not _is_static(observation, verdict)
        # A part is accepted with its total, and that is what is measured again.
        and verdict.reason is not Reason.EXPLAINS
        and (
            _is_suspect(verdict, observation, shift)
            or actions.get(verdict.metric.name) in _DECISIVE
        )
        and len(observation.metrics[verdict.metric.name].confirmations) < passes
    )


def _is_static(observation: Observation, verdict: Verdict) -> bool:
    """Tell whether a metric was read from a file that is the same however often it is read."""
    observed = observation.metrics.get(verdict.metric.name)
    return observed is not None and observed.capture is not None


#: What more measurements may turn into the other.
_BY_NUMBERS: Final = frozenset({Outcome.WITHIN, Outcome.REGRESSED})


def _is_suspect(verdict: Verdict, observation: Observation, shift: float = 0.0) -> bool:
    """Return whether a metric may be worse than its limit by its numbers, which may be luck."""
    if verdict.outcome not in _BY_NUMBERS or verdict.reason is not None:
        return False
    observed = observation.metrics.get(verdict.metric.name)
    if observed is None or not verdict.metric.compared_by_ratio:
        return False
    return is_open(verdict, observed, policy=DEFAULT_POLICY, shift=shift)


def _without_suspects(judged: JudgedTest) -> JudgedTest:
    """Return a judged test as it would be if all that looks worse were bad luck.

    A gain beside a suspect is measured along with it: once the suspect is cleared there may be too
    few passes left for the gain.
    """
    verdicts = (
        replace(verdict, outcome=Outcome.WITHIN)
        if _is_suspect(verdict, judged.observation)
        else verdict
        for verdict in judged.verdicts
    )
    return replace(judged, verdicts=tuple(verdicts))


def add_confirmation(
    observation: Observation,
    names: Collection[str],
    again: Observation,
    *,
    number: int,
    moves: tuple[MachineMoves, MachineMoves],
) -> Observation:
    """Return an observation with what confirm pass ``number`` measured of the metrics ``names``.

    ``moves`` is what the machine did in the first pass and in this one.
    """
    failed = why_not_counted(observation, again, names)
    if failed is None and not again.metrics.keys() >= set(names):
        failed = "the test did not record it"
    if failed is not None:
        return mark_unconfirmed(observation, names, f"confirm pass {number}: {failed}")
    metrics = dict(observation.metrics)
    for name in names:
        observed = metrics[name]
        first, now = (move.of(observed.metric.source) for move in moves)
        metrics[name] = replace(
            observed,
            confirmations=(*observed.confirmations, again.metrics[name].samples),
            machine=(*(observed.machine or (first,)), now),
        )
    return replace(observation, metrics=metrics)


def mark_unconfirmed(observation: Observation, names: Iterable[str], why: str) -> Observation:
    """Return an observation whose metrics ``names`` could not be measured again."""
    metrics = dict(observation.metrics)
    for name in names:
        observed = metrics[name]
        metrics[name] = replace(observed, confirmations=(*observed.confirmations, ()))
    return replace(observation, metrics=metrics, unconfirmed=why)


def why_not_counted(
    observation: Observation, again: Observation, names: Collection[str]
) -> str | None:
    """Return why what was measured again of metrics ``names`` does not count; None if it does."""
    if again.raised is not None:
        return f"the test raised {again.error}"
    if again.out_of_memory is not None:
        return f"out of memory: {again.out_of_memory}"
    if again.problems:
        return again.problems[0]
    key, key_before = (
        each.hardware.key if each.hardware else "no device" for each in (again, observation)
    )
    if key != key_before:
        return f"other hardware: {key}, before {key_before}"
    difference = again.setting.first_difference(observation.setting)
    if difference is not None:
        name, now, then = difference
        return f"another configuration: {name} is {now!r}, before {then!r}"
    for name in again.metrics.keys() & set(names):
        metric, before = again.metrics[name].metric, observation.metrics[name].metric
        part = metric.differs_from(before)
        if part is not None:
            said = f"{part} is {metric.part(part)!r}, before {before.part(part)!r}"
            return f"{name} is defined differently: {said}"
        if metric.source is not before.source:
            said = f"{metric.source.value}, before {before.source.value}"
            return f"{name} comes from another source: {said}"
    return None


def suspicion(judged: JudgedTest) -> str | None:
    """Say what makes a test look slower; None if it is only to be recorded."""
    suspects = [v for v in judged.verdicts if _is_suspect(v, judged.observation)]
    if not suspects:
        return None
    from pytest_ttnn_perf.report.terminal import suspicion_line

    return suspicion_line(judged.observation.test, suspects)


#: A confirm pass may take this many times as long as the first, which ran all tests.
_PATIENCE: Final = 10.0
_LEAST_PATIENCE_S: Final = 60.0
_MILESTONE: Final = True


def run_confirm_passes(
    gate: GateRun,
    tests: Sequence[str],
    *,
    workers: WorkerLauncher,
    profiling: WorkerLauncher | None,
    progress: Callable[[str, bool], None],
    first_pass_s: float,
) -> None:
    """Measure tests again until they are cleared, or as often as the settings ask for.

    Beside them, controls that were not suspect show what the machine does meanwhile. A shift of
    the environment is believed only if they bear it out; if not, the tests that it had explained
    are measured again as well.

    ``profiling`` are the workers whose tests are profiled, if the run has such a pass. What the
    gate knows of each test is complete afterwards. ``progress`` is
    called with a line, and whether it is a milestone.
    """

    def print_line(text: str) -> None:
        progress(text, _MILESTONE)

    passes, timeout_s = gate.settings.confirm, gate.settings.timeout
    patience_s = max(_PATIENCE * first_pass_s, _LEAST_PATIENCE_S)
    silence_s = min(timeout_s or patience_s, patience_s)
    launchers = ((workers, False), (profiling, True))
    number = 0
    while number < passes and ([t for t in tests if gate.in_question(t)] or gate.doubts_shift):
        number += 1
        doubted = gate.doubts_shift
        # Each metric as it was measured at first.
        for launcher, profiled in launchers:
            again = [test for test in tests if gate.in_question(test, profiled=profiled)]
            alone = doubted and not profiled
            controls = gate.controls(again, profiled=profiled) if again or alone else ()
            if launcher is None or not (again or controls):
                continue
            from pytest_ttnn_perf.report.terminal import confirm_heading

            heading = confirm_heading(len(again), len(controls), number=number, passes=passes)
            print_line(heading)
            waiting = dict.fromkeys((*again, *controls))
            listener = _ConfirmListener(print_line, waiting, gate, number, profiled, controls)
            listener.tell = partial(_tell, progress, heading, len(waiting))
            one = Pass(PassKind.CONFIRM, launcher, listener, silence_s)
            one.run(list(waiting))
            if one.stopped:
                listener.trouble = f"a worker before it {one.stopped}"
            listener.close("the test did not run again")
            listener.decide()
            if one.stopped:
                print_line(f"ttnn-perf: a worker {one.stopped}")
                return
        if doubted and gate.shift is None:
            passes = max(passes, 1 + gate.settings.confirm)


def _tell(progress: Callable[[str, bool], None], heading: str, tests: int, left: int) -> None:
    progress(f"{heading} ({tests - left} of {tests} done)", not _MILESTONE)


@dataclass(slots=True)
class _ConfirmListener(ResultListener):
    """Takes in what one confirm pass measures; its reports are not emitted.

    Nothing is decided before all of it was measured: what a suspect shows depends on the controls.
    """

    gate: GateRun
    number: int
    profiled: bool
    controls: Collection[str]
    _measured: dict[str, Observation] = field(default_factory=dict)
    #: Told how many tests are left.
    tell: Callable[[int], None] = field(default=lambda _: None)

    def give_up(self, test: str, why: str) -> None:
        """Record that a test could not be measured again; a control tells nothing then."""
        if test in self.waiting:
            del self.waiting[test]
            if test not in self.controls:
                self.gate.cannot_confirm(test, f"confirm pass {self.number}: {why}")

    def take(self, test: str, observed: dict[str, object]) -> None:
        """Keep what a test measured."""
        if test not in self.waiting:
            return
        try:
            self._measured[test] = decode(Observation, observed, key=test)
        except DecodeError as error:
            self.give_up(test, str(error))
        else:
            del self.waiting[test]
            self.tell(len(self.waiting))

    def decide(self) -> None:
        """Judge the suspects anew, beside what the controls show; say both."""
        from pytest_ttnn_perf.report.terminal import controls_line, shift_refuted_line

        measured = self._measured
        controls = {test: again for test, again in measured.items() if test in self.controls}
        moves = self.gate.moves_of(controls)
        if moves.controls and moves.overall is not None:
            self.print_line(controls_line(moves.controls, moves.overall))
        if self.gate.doubts_shift and not self.profiled:
            refuted = self.gate.check_shift(moves.overall)
            if refuted is not None:
                self.print_line(shift_refuted_line(refuted))
                moves = self.gate.moves_of(controls)  # a refuted shift excuses nothing
        both = (self.gate.first_moves(), moves)
        for test, again in measured.items():
            if test not in self.controls:
                self._confirm(test, again, both)

    def _confirm(
        self, test: str, again: Observation, moves: tuple[MachineMoves, MachineMoves]
    ) -> None:
        from pytest_ttnn_perf.report.terminal import confirm_line

        before = self.gate.judged(test)
        asked = self.gate.in_question(test, profiled=self.profiled)
        suspects = before and {
            verdict.metric.name
            for verdict in before.verdicts
            if _is_suspect(verdict, before.observation)
        }
        judged = self.gate.confirm(
            test, again, number=self.number, profiled=self.profiled, moves=moves
        )
        for verdict in judged.verdicts:
            if verdict.metric.name in asked & (suspects or set()):
                self.print_line(confirm_line(test, verdict))
