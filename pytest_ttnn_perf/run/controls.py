"""What the machine does meanwhile: controls beside suspects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import NANOSECONDS_IN
from pytest_ttnn_perf.gate.machine import Move, machine_move, middle_of, moved_again, vote_of
from pytest_ttnn_perf.records.metric import Source
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.run.confirm import why_not_counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pytest_ttnn_perf.records.observation import JudgedTest, Observation


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
