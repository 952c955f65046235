"""Times and throughputs, compared by ratio against the baseline's noise."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import groupby, pairwise
from math import exp, expm1, log, log1p, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.core.metric import Better, Source, median
from pytest_ttnn_perf.core.observation import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_ttnn_perf.core.baseline import MetricBaseline, Session
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import Limits, MetricObservation


class Policy(Struct, frozen=True):
    """Default limits. All are fractions unless their name says otherwise."""

    #: No regression below this is ever reported, however quiet a test looks.
    floor: float = 0.02
    #: How far runs are assumed to lie apart until they show it.
    prior_wall: float = 0.015
    prior_device: float = 0.005
    #: What is assumed weighs as so many runs, or processes, or tests of the run that is judged.
    weight: int = 10
    #: The chance that an unchanged test is beyond its limit, if its noise is what the rule takes it
    #: to be. It is not always: see how often the gate is wrong.
    chance: float = 4e-4
    #: A test with this many times the usual variance is no pattern for others.
    wild: float = 9.0
    #: A run counts no more than one that is so many robust deviations off.
    clip: float = 2.5
    #: The most of the noise that is taken to be new in each process: calm nights do not last.
    most_fresh: float = 0.9
    #: The most by which a run whose tests lie further apart than usual widens limits: what is
    #: further apart has changed.
    widest: float = 2.0
    #: A first measurement beyond this part of the limit is measured again, ...
    screen: float = 0.7
    #: ... and cleared by a measurement that is within this part of it, ...
    agree: float = 0.5
    #: ... or by the mean of as many as this.
    passes: int = 4
    #: A limit beyond this would let through what must be noticed; and a change below this is only
    #: a warning while a baseline has few runs.
    too_noisy: float = 0.20
    #: Fewer runs do not show a test's noise, and fewer tests say nothing of the machine.
    few: int = 3
    #: Least noise believed of rounds that are compared in turns.
    least_noise: float = 0.003
    bytes_tolerance: float = 0.02
    #: Largest drop in accuracy, in its own unit; scaled up for metrics beyond 1 (percentages).
    accuracy_drop: float = 0.002


POLICY: Final = Policy()
#: Makes the MAD of normal noise an estimate of its standard deviation: 1/Φ⁻¹(3/4).
MAD_TO_SIGMA: Final = 1.4826
#: Standard error of a median over that of a mean, for normal noise: √(π/2).
MEDIAN_ERROR: Final = 1.2533


def mad(values: Iterable[float], centre: float) -> float:
    """Return the median absolute deviation from ``centre``, unscaled."""
    return median([abs(value - centre) for value in values])


#: Logarithms beyond this have no exponential; as a change it means "beyond any measure".
_LARGEST_LOG: Final = 700.0
#: A median of R values has this many times the variance of one value, divided by R.
_OF_MEDIAN: Final = MEDIAN_ERROR**2
#: What every metric asks for: on Python 3.11 a member takes ten times as long to get by its class.
_HIGHER: Final = Better.HIGHER
_WALL: Final = Source.WALL
_WITHIN: Final = Outcome.WITHIN


class History(NamedTuple):
    """Runs of a baseline on one side of its last accept.

    Values are logarithms; positive is worse. ``processes`` are the squares of processes about the
    mean of their run, and their degrees of freedom.
    """

    runs: tuple[str, ...]
    values: tuple[float, ...]
    processes: tuple[float, int]


def histories_of(baseline: MetricBaseline) -> tuple[History, ...]:
    """Return the history since the last accept, and that before it.

    Processes of one run share the state of the machine that hour. They agree with each other
    better than with the next run, so they are one witness and not several: their median counts.
    """
    sides = (baseline.current, baseline.sessions[: baseline.since])
    return tuple(_history(side, baseline.metric) for side in sides if side)


def _history(sessions: Sequence[Session], metric: Metric) -> History:
    sign = _sign(metric)
    runs, values, squares, degrees = [], [], 0.0, 0
    for run, group in groupby(sessions, key=itemgetter(3)):
        logs = [sign * log(session[0]) for session in group]
        runs.append(run)
        values.append(median(logs))
        mean = sum(logs) / len(logs)
        squares += sum((value - mean) ** 2 for value in logs)
        degrees += len(logs) - 1
    return History(tuple(runs), tuple(values), (squares, degrees))


def _sign(metric: Metric) -> float:
    return -1.0 if metric.better is _HIGHER else 1.0


class Suite(NamedTuple):
    """Noise that the times of one source on one hardware key share.

    ``prior`` is the deviation between runs that is assumed, ``variance`` is that of a usual test,
    and ``typical`` the deviation of the middle one.
    ``fresh`` is the variance that is new in each process, ``share`` its part of all. ``follows`` is
    how much a run is like the one before. ``machine`` is the move of the machine in each run.

    Of the run that is judged: ``move`` is that of its machine; None where too few tests tell.
    ``spread`` is how many times as far as usual its tests lie apart.
    """

    prior: float
    variance: float
    typical: float
    fresh: float = 0.0
    share: float = 0.0
    follows: float = 0.0
    machine: Mapping[str, float] = {}
    move: float | None = 0.0
    spread: float = 1.0

    def usual_move(self) -> Band:
        """Return how the machine usually moves, and the limit for its move.

        It is judged like a test.
        """
        moves = list(self.machine.values())
        centre = median(moves) if moves else 0.0
        count = max(len(moves), 1)
        squares = sum((move - centre) ** 2 for move in moves)
        degrees = count - 1 + POLICY.weight
        variance = (squares + POLICY.weight * self.prior**2) / degrees
        noise = t_quantile(1 - POLICY.chance, degrees) * sqrt(variance * (1 + _OF_MEDIAN / count))
        limit = max(noise, log1p(POLICY.floor))
        return Band(centre, limit, limit, noise, sqrt(variance), count)


def suite_of(baselines: Sequence[MetricBaseline]) -> Suite:
    """Return what baselines of one source show together."""
    known = [histories_of(baseline) for baseline in baselines]
    on_device = any(baseline.metric.source is not _WALL for baseline in baselines)
    prior = POLICY.prior_device if on_device else POLICY.prior_wall
    machine = _moves(known)
    residuals = [_residuals(histories, machine) for histories in known]
    shown = [
        (sum(r * r for r in each), len(each) - len(k))
        for each, k in zip(residuals, known, strict=True)
    ]
    shown = [(squares, degrees) for squares, degrees in shown if degrees]
    # One test that is far noisier than the others is no pattern for them.
    most = POLICY.wild * median([squares / degrees for squares, degrees in shown] or [0.0])
    squares = sum(min(squares, most * degrees) for squares, degrees in shown)
    degrees = sum(degrees for _, degrees in shown)
    variance = (squares + POLICY.weight * prior**2) / (degrees + POLICY.weight)
    within = [within_of(baseline) ** 2 for baseline in baselines]
    processes = [_processes(histories) for histories in known]
    new = sum(squares for squares, _ in processes) + POLICY.weight * sum(within) / len(within)
    # Runs differ no less than the processes of one of them.
    count = sum(degrees for _, degrees in processes)
    variance = max(variance, new / (count + POLICY.weight))
    variances = [
        _variance(each, len(histories), max(variance, own))
        for each, histories, own in zip(residuals, known, within, strict=True)
    ]
    mean = sum(variances) / len(variances)
    all_of_it = sum(own * degrees for own, (_, degrees) in zip(variances, processes, strict=True))
    share = min(new / (all_of_it + POLICY.weight * mean), POLICY.most_fresh)
    follows = _follows(residuals, variances)
    return Suite(prior, variance, sqrt(median(variances)), share * mean, share, follows, machine)


def _moves(known: Sequence[Sequence[History]]) -> dict[str, float]:
    """Return the median move of tests in each run."""
    by_run: dict[str, list[float]] = {}
    for histories in known:
        for history in histories:
            centre = median(history.values)
            for run, value in zip(history.runs, history.values, strict=True):
                by_run.setdefault(run, []).append(value - centre)
    common = {run: moves for run, moves in by_run.items() if run and len(moves) >= POLICY.few}
    middles = {run: median(moves) for run, moves in common.items()}
    apart = [abs(move - middles[run]) for run, moves in common.items() for move in moves]
    spread = MAD_TO_SIGMA * median(apart) if apart else 0.0
    return {run: news_of(middles[run], spread, len(common[run])) for run in common}


def news_of(move: float, noise: float, tests: int) -> float:
    """Return a move as far as it stands out from its error.

    What is within that is no news of the machine; what is far beyond is believed whole. By James
    and Stein: no estimate of several such moves is nearer to them on the whole.
    """
    error = MEDIAN_ERROR * noise / sqrt(tests)
    return move - error * error / move if abs(move) > error else 0.0


def _residuals(histories: Sequence[History], machine: Mapping[str, float]) -> list[float]:
    """Return how far runs are from the middle of their side."""
    found: list[float] = []
    for history in histories:
        values = _less_machine(history, machine)
        centre = median(values)
        found += [value - centre for value in values]
    return found


def _less_machine(history: History, machine: Mapping[str, float]) -> list[float]:
    pairs = zip(history.runs, history.values, strict=True)
    return [value - machine.get(run, 0.0) for run, value in pairs]


def _tamed(residuals: Sequence[float]) -> list[float]:
    """Clip residuals at some robust deviations.

    A wild night must not widen the limit for good. Where most runs are the same, the second
    furthest says how far is usual.
    """
    if len(residuals) < POLICY.few:
        return list(residuals)
    sizes = sorted(map(abs, residuals))
    most = POLICY.clip * MAD_TO_SIGMA * median(sizes) or sizes[-2]
    return [max(-most, min(residual, most)) for residual in residuals]


def _variance(residuals: Sequence[float], sides: int, usual: float) -> float:
    """Return a variance between runs, shrunk to a usual one."""
    squares = sum(residual**2 for residual in _tamed(residuals))
    return (squares + POLICY.weight * usual) / (len(residuals) - sides + POLICY.weight)


def _follows(residuals: Sequence[Sequence[float]], variances: Sequence[float]) -> float:
    """Return the correlation of runs with those before them.

    Less one standard error: what may be chance widens no limit.
    """
    pairs, total, product = 0, 0.0, 0.0
    for own, variance in zip(residuals, variances, strict=True):
        scaled = [residual / sqrt(variance) for residual in _tamed(own)]
        total += sum(value * value for value in scaled)
        product += sum(first * then for first, then in pairwise(scaled))
        pairs += len(scaled) - 1
    if not pairs or not total:
        return 0.0
    runs = 1 + pairs / len(residuals)
    return min(max(product / total + 1 / runs - 1 / sqrt(pairs), 0.0), 1.0)


def _processes(histories: Sequence[History]) -> tuple[float, int]:
    """Return the squares of processes, and their degrees of freedom."""
    return (
        sum(history.processes[0] for history in histories),
        sum(history.processes[1] for history in histories),
    )


def within_of(baseline: MetricBaseline, samples: int | None = None) -> float:
    """Return the error of medians by the spread of samples.

    ``samples`` is how many the new measurement has, where these are fewer.
    """
    sessions = baseline.sessions
    count = median([session.n for session in sessions])
    if samples is not None:
        count = min(count, samples)
    spread = median([session.mad / session.median for session in sessions])
    return min(MEDIAN_ERROR * MAD_TO_SIGMA * spread / sqrt(count), _LARGEST_LOG)


class Band(NamedTuple):
    """The baseline's centre and its limits, as logarithms; positive is worse.

    ``limit`` bounds what is worse; ``gain`` bounds what is better, which no ``max_regression``
    narrows: noise must not become the new centre. ``noise`` is the part of both that follows from
    the spread alone, without floor or cap, ``deviation`` how far off what is measured is expected
    to be. ``runs`` is how many the baseline has seen.
    """

    centre: float
    limit: float
    gain: float
    noise: float
    deviation: float
    runs: int


def band_of(
    baseline: MetricBaseline,
    limits: Limits,
    *,
    suite: Suite | None = None,
    samples: int | None = None,
    passes: int | None = None,
) -> Band:
    """Return the centre and the limits of a baseline.

    Args:
        baseline: The baseline of the metric.
        limits: What the author of the test asks for.
        suite: What the baselines show together; None for this one alone.
        samples: How many the new measurement has; None for as many as the stored ones.
        passes: How many processes decide; None for as many as a suspect gets.
    """
    suite = suite or suite_of((baseline,))
    histories = histories_of(baseline)
    centre = median(_less_machine(histories[0], suite.machine))
    residuals = _residuals(histories, suite.machine)
    within = within_of(baseline, samples) ** 2
    squares, degrees = _processes(histories)
    squares = min(squares, POLICY.wild * degrees * suite.fresh) if suite.fresh else squares
    fresh = (squares + POLICY.weight * suite.fresh) / (degrees + POLICY.weight)
    variance = _variance(residuals, len(histories), max(suite.variance, within))
    share = min(suite.share, max(fresh, within) / variance)
    error = _OF_MEDIAN / len(histories[0].values)
    lasting = variance * (1 - share) * (1 + suite.follows)
    if suite.move is None:  # nothing tells of the machine: it may be as in any run
        lasting += suite.usual_move().deviation ** 2 if suite.machine else 0.0
    expected = lasting * (1 + error) + variance * share * (1 / (passes or POLICY.passes) + error)
    freedom = len(residuals) - len(histories) + POLICY.weight
    noise = t_quantile(1 - POLICY.chance, freedom) * sqrt(expected)
    floor = POLICY.floor if limits.tolerance is None else limits.tolerance
    limit = gain = max(noise * suite.spread, log1p(floor))
    if limits.max_regression is not None:
        limit = min(limit, log1p(limits.max_regression))
    return Band(centre, limit, gain, noise, sqrt(expected), len(residuals))


def judge_ratio(
    observed: MetricObservation,
    baseline: MetricBaseline,
    *,
    suite: Suite | None = None,
) -> Verdict:
    """Judge a time or a throughput whose samples are all above zero.

    The first measurement makes a suspect, and the confirm passes decide, each less what the
    controls in it show of the machine: their mean must be beyond the limit, and each of them beyond
    half of it. What was no suspect at first is no regression by what came after.
    """
    limits, samples, metric = observed.limits, observed.samples, baseline.metric
    suite = suite or suite_of((baseline,))
    band = band_of(baseline, limits, suite=suite, samples=len(samples))
    sign = _sign(metric)
    first = sign * log(median(samples)) - band.centre
    found = _decide(first, observed, band, suite.move, sign=sign)
    if found.passes is not None:
        band = band_of(baseline, limits, suite=suite, samples=len(samples), passes=found.passes)
    limit, change = band.limit, found.change
    if change > limit:
        outcome = Outcome.REGRESSED
    elif change < -band.gain:
        # The limit it is beyond, which is not the one for what gets worse.
        outcome, limit = Outcome.IMPROVED, band.gain
    elif is_too_noisy(band.noise, limits):
        outcome, limit = Outcome.TOO_NOISY, max(limit, band.noise)
    else:
        outcome = _WITHIN
    return Verdict(
        observed.metric,
        outcome,
        None,  # no reason but the numbers
        None,
        # As it was measured, to the last digit, where nothing is averaged.
        median(samples) if change == first else exp(sign * (band.centre + change + found.move)),
        exp(sign * band.centre),
        expm1(min(change, _LARGEST_LOG)),
        expm1(min(limit, _LARGEST_LOG)),
        band.runs < POLICY.few,
        len(samples),
        len(baseline.sessions) - baseline.since,
        tuple(map(median, observed.confirmations)),
        None,
        band.runs,
        expm1(found.move) if found.machine_known else None,
        undecided=found.open and change <= limit,
    )


class _Found(NamedTuple):
    """Change that measurements agree on, without the machine's part.

    ``passes`` is how many processes it is the mean of, None if it is within the limit anyway.
    ``open``: more processes would decide.
    """

    change: float
    move: float
    machine_known: bool
    passes: int | None = None
    open: bool = False


def _decide(
    first: float,
    observed: MetricObservation,
    band: Band,
    machine: float | None,
    *,
    sign: float,
) -> _Found:
    """Return what the measurements of a metric say together."""
    # Whichever side the first is on, the same holds with the other sign.
    side, bound = (1.0, band.limit) if first > 0 else (-1.0, band.gain)
    stated = [None if each is None else log1p(each) for each in observed.machine]
    stated += [None] * (1 + len(observed.confirmations) - len(stated))
    # Once it was measured again, the record says what the machine was taken to do.
    move = _excused(first, stated[0] if observed.confirmations else machine, side)
    size = side * (first - move)
    if size <= POLICY.screen * bound:
        # What the machine did is said only where it excuses.
        excused = side * first > bound
        return (
            _Found(first - move, move, machine_known=True)
            if excused
            else _Found(first, 0.0, machine_known=False)
        )
    again = [sign * log(median(samples)) - band.centre for samples in observed.confirmations]
    if not again:
        return _Found(first - move, move, machine_known=move != 0, passes=1, open=side > 0)
    stated = stated[1 : 1 + len(again)]
    moves = [_excused(change, each, side) for change, each in zip(again, stated, strict=True)]
    changes = [change - each for change, each in zip(again, moves, strict=True)]
    known = any(each is not None for each in stated)
    nearest = min(range(len(changes)), key=lambda number: side * changes[number])
    if side * changes[nearest] <= POLICY.agree * bound:
        change = side * max(side * changes[nearest], -min(band.limit, band.gain))
        return _Found(change, moves[nearest], known)
    mean, moved = (sum(part) / len(again) for part in (changes, moves))
    return _Found(mean, moved, known, passes=len(again), open=side > 0)


def _excused(change: float, machine: float | None, side: float) -> float:
    """Return the part of a change that the machine explains.

    A slow machine excuses what is worse, and a fast one makes a gain doubtful. Neither does more:
    that others got faster is nothing to blame a test for, and what was slower is no gain.
    """
    return side * max(min(side * (machine or 0.0), side * change), 0.0)


def is_too_noisy(noise: float, limits: Limits) -> bool:
    """Return whether noise (a logarithm) hides what must not be hidden.

    A tolerance above the usual bound is the author's word that such a change is fine.
    """
    return noise > log1p(POLICY.too_noisy) and noise > log1p(limits.tolerance or 0.0)


def centre_of(baseline: MetricBaseline) -> float:
    """Return the centre of a baseline in the metric's unit."""
    if not baseline.metric.compared_by_ratio:
        return median([session.median for session in baseline.current])
    return exp(_sign(baseline.metric) * median(histories_of(baseline)[0].values))


@lru_cache(maxsize=256)
def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution (0.5 to 1, open).

    Newton's method, held in a bracket, on the exact distribution function, which is a finite sum
    for whole ``degrees``; correct to about 1e-12.
    """
    if not 0.5 < probability < 1 or degrees < 1:
        message = f"no quantile for probability {probability}, degrees of freedom {degrees}"
        raise ValueError(message)
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    scale = exp(log_scale) / sqrt(degrees * math.pi)
    # One degree has a closed form, and more degrees lie below it.
    low, high = 0.0, math.tan(math.pi * (probability - 0.5))
    value = high
    for _ in range(200):
        excess = _distribution(value, degrees) - probability
        low, high = (low, value) if excess > 0 else (value, high)
        density = scale * (1 + value * value / degrees) ** (-(degrees + 1) / 2)
        newton = value - excess / density if density else low
        # Far out, the density says nothing of where the quantile lies: halve instead.
        after = newton if low < newton < high else (low + high) / 2
        if abs(after - value) < 1e-14 * max(1.0, value):
            break
        value = after
    return value


def _distribution(t: float, degrees: int) -> float:
    """P(T < t) for t > 0: Abramowitz and Stegun 26.7.3, 26.7.4."""
    angle = math.atan(t / sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    inside = math.sin(angle) * total
    return 0.5 + ((angle + inside) / math.pi if odd else inside / 2)
