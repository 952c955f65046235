"""Tokens of a language model: when each came, and the metrics that follow."""

from __future__ import annotations

from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source, median
from pytest_ttnn_perf.core.observation import MetricObservation
from pytest_ttnn_perf.core.settings import whole_number
from pytest_ttnn_perf.core.text import counted, repr_of, scaled
from pytest_ttnn_perf.measure.recorder import metric_of, numbers_of
from pytest_ttnn_perf.measure.timing import CONFIDENCE, least_count, quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.measure.recorder import SeriesTable
    from pytest_ttnn_perf.measure.timing import Turn


# How near prefill and decode of a language model come to the peaks of the board.

#: A measured time may be that much shorter than the least: clocks are not exact.
_MOST: Final = 1.05
#: The fact that asks for the figure of a phase.
_STATED: Final = {"prefill": "params", "decode": "weight_bytes"}


def with_rooflines(observation: Observation, log: TokenLog) -> Observation:
    """Return an observation with the part of the peaks that was used, or why it is not known."""
    found = {observed.metric.name: observed for observed in _rooflines(observation, log)}
    return replace(observation, metrics={**observation.metrics, **found})


def _rooflines(observation: Observation, log: TokenLog) -> Iterator[MetricObservation]:
    for mode in dict.fromkeys(each.conditions.mode for each in log.generations):
        conditions = next(g.conditions for g in log.generations if g.conditions.mode == mode)
        for phase, timed in (("prefill", "time_to_first_token"), ("decode", "inter_token_time")):
            observed = observation.metrics.get(f"{mode}_{timed}")
            if observed is None or not observed.samples or _STATED[phase] not in observation.facts:
                continue  # nobody asked
            name = f"{mode}_{phase}_roofline"
            metric = replace(
                Metric(name, "%", Better.HIGHER, Kind.THROUGHPUT), source=observed.metric.source
            )
            tokens = (conditions.prompt_tokens or 0) * conditions.users
            least_ns = _least_ns(observation, phase, tokens)
            if isinstance(least_ns, str):
                yield MetricObservation(metric, (), gated=False, note=f"{phase}: {least_ns}")
                continue
            used = least_ns / median(observed.samples)
            if used > _MOST:
                note = (
                    f"{phase}: {100 * used:.0f} % of the peak cannot be: look at the stated facts"
                )
                yield MetricObservation(metric, (), gated=False, note=note)
            else:
                yield MetricObservation(metric, (100 * used,), gated=False)


def _least_ns(observation: Observation, phase: str, tokens: int) -> float | str:
    """Return the least time of a phase; or what is missing to tell it."""
    hardware = observation.hardware
    board = wings.call("peaks_of", hardware.arch) if hardware else None
    if hardware is None or board is None or hardware.simulated:
        return "the peaks of this hardware are not known"
    setting, chips = observation.setting.values, _product(hardware.mesh or "1") or 1
    if phase == "decode":
        size = setting.get("weight_bytes")
        if not isinstance(size, (int, float)) or isinstance(size, bool) or size <= 0:
            return "needs facts(weight_bytes=...), the bytes of weights that a step reads"
        return float(size / (board.dram_gb_s * chips))  # GB/s are bytes in a ns
    params, fidelity = setting.get("params"), setting.get("math_fidelity")
    cores = _product(str(setting.get("cores") or setting.get("grid") or ""))
    return _prefill_ns(board, cores * chips, tokens, params, fidelity)


def _prefill_ns(
    board: Any, cores: int, tokens: int, params: object, fidelity: object
) -> float | str:
    """Return the least time of two floating-point operations per weight and token."""
    if not isinstance(params, (int, float)) or isinstance(params, bool) or params <= 0:
        return "needs facts(params=...), the weights that a token meets"
    peak = board.tflops.get(fidelity) if isinstance(fidelity, str) else None
    if peak is None:
        return f"needs facts(math_fidelity=...), one of {', '.join(board.tflops)}"
    if not cores:
        return "needs facts(cores=...), the cores of a chip that compute"
    return float(2 * params * tokens / (peak * cores * 1000))  # TFLOPS are thousands in a ns


def _product(sizes: str) -> int:
    """Return how many a shape such as ``8x7`` has; 0 for what is none."""
    parts = sizes.split("x")
    return prod(map(int, parts)) if all(part.isdecimal() for part in parts) else 0


#: Where tokens come from. Their numbers mean different things, and have different names.
MODES: Final = ("teacher_forced", "token_out", "serving")
#: Tokens arrive by a network: there is no device here to wait for.
SERVING: Final = "serving"
#: The percentiles that are recorded where steps are enough; the last is the one that is missed.
PERCENTILES: Final = (50, 90, 95, 99)
_TIME_UNITS: Final = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))


class Conditions(Struct, frozen=True):
    """Under which tokens were made: what must be the same for two numbers to be compared.

    Without ``prompt_tokens`` there is no prefill, and no first token of its own.
    """

    mode: str
    users: int
    prompt_tokens: int | None
    source: Source = Source.WALL

    def __str__(self) -> str:
        clock = "a simulated clock" if self.source is Source.SIM else "the wall clock"
        return f"{self.users} users, {self.prompt_tokens or 'no'} prompt tokens, {clock}"


def conditions_of(
    mode: object, users: object, prompt_tokens: object, *, simulated: bool = False
) -> Conditions:
    """Return the conditions that a test states.

    Raises:
        UsageError: they cannot be.
    """
    __tracebackhide__ = True
    if not isinstance(mode, str) or mode not in MODES:
        message = f"tokens: mode is one of {', '.join(MODES)}, found {repr_of(mode)}"
        raise UsageError(message)
    prompt = None
    if prompt_tokens is not None:
        prompt = whole_number("prompt_tokens", prompt_tokens, least=1)
    source = Source.SIM if simulated else Source.WALL
    return Conditions(mode, whole_number("users", users, least=1), prompt, source)


class TokenMarks(Struct):
    """What a test calls while tokens come: ``first()`` once, then ``step()`` per decode step."""

    conditions: Conditions
    sync: Callable[[], object] | None
    clock: Callable[[], float]
    first_ns: float | None = None
    steps_ns: list[float] = []
    _last_ns: float | None = None

    def start(self) -> None:
        """Start the clock."""
        self._last_ns = self._now()

    def first(self) -> None:
        """Mark that the first token of every user is there."""
        __tracebackhide__ = True
        if self.first_ns is not None or self.steps_ns:
            message = "tokens: first() marks the first token, before any step(): found a second one"
            raise UsageError(message)
        self.first_ns = self._elapsed()

    def step(self) -> None:
        """Mark that one more token of every user is there."""
        __tracebackhide__ = True
        if self.first_ns is None and self.conditions.prompt_tokens is not None:
            message = "tokens: step() follows first(); without a prefill, leave out prompt_tokens="
            raise UsageError(message)
        self.steps_ns.append(self._elapsed())

    def _elapsed(self) -> float:
        __tracebackhide__ = True
        if self._last_ns is None:
            message = "tokens: use it as `with ttnn_perf.tokens(...) as tokens:`"
            raise UsageError(message)
        before, self._last_ns = self._last_ns, self._now()
        return self._last_ns - before

    def _now(self) -> float:
        if self.sync is not None:
            self.sync()
        return self.clock()


class Generation(Struct, frozen=True):
    """The tokens of one prompt. ``compiling`` steps came before those that count."""

    conditions: Conditions
    first_ns: float | None
    steps_ns: tuple[float, ...]
    compiling_ns: tuple[float, ...] = ()
    warmup: bool = False


class TokenLog(Struct):
    """The generations of one test."""

    generations: list[Generation] = []

    @contextmanager
    def marks(
        self, marks: TokenMarks, turn: Turn, *, warmup: bool, compile_steps: int
    ) -> Iterator[TokenMarks]:
        """Keep what is marked meanwhile; nothing of a block that raises."""
        __tracebackhide__ = True
        with turn:
            marks.start()
            yield marks
        first = marks.first_ns
        self.add(marks.conditions, first, marks.steps_ns, warmup=warmup, compiling=compile_steps)

    def add(
        self,
        conditions: Conditions,
        first_ns: float | None,
        steps_ns: Sequence[float],
        *,
        warmup: bool = False,
        compiling: int = 1,
    ) -> None:
        """Keep one generation. Only the first of a test compiles what the others use again."""
        __tracebackhide__ = True
        if first_ns is None and not steps_ns:
            message = "tokens: nothing was marked: call first() and step() as tokens come"
            raise UsageError(message)
        if first_ns is not None and conditions.prompt_tokens is None:
            message = "tokens: the time to a first token depends on its prompt: say prompt_tokens="
            raise UsageError(message)
        same = [each for each in self.generations if each.conditions.mode == conditions.mode]
        if same and same[0].conditions != conditions:
            before, now = same[0].conditions, conditions
            message = f"tokens: {conditions.mode} was measured with {before} before, now {now}"
            raise UsageError(message)
        count = 0 if same else compiling
        steps = tuple(steps_ns)
        self.generations.append(
            Generation(conditions, first_ns, steps[count:], steps[:count], warmup)
        )

    def facts(self) -> Mapping[str, Scalar]:
        """Return what makes numbers comparable."""
        found: dict[str, Scalar] = {}
        for each in self.generations:
            conditions = each.conditions
            found[f"{conditions.mode}_users"] = conditions.users
            if conditions.prompt_tokens is not None:
                found[f"{conditions.mode}_prompt_tokens"] = conditions.prompt_tokens
        return found

    def enter(self, series: SeriesTable, gate: Collection[str]) -> None:
        """Add the metrics of all generations; those that ``gate`` names are gated, too."""
        for mode in dict.fromkeys(each.conditions.mode for each in self.generations):
            own = [each for each in self.generations if each.conditions.mode == mode]
            _Entry(series, gate, own[0].conditions).enter(own)


def steps_from(name: str, seconds: object) -> list[float]:
    """Return times that a test took itself, in ns.

    Raises:
        UsageError: one of them is none.
    """
    __tracebackhide__ = True
    numbers = numbers_of(name, seconds)
    for place, number in enumerate(numbers):
        if not number > 0:  # so that NaN is caught as well
            message = f"{name}: expected seconds above 0, found {number!r} at place {place}"
            raise UsageError(message)
    return [number * 1e9 for number in numbers]


class _Entry(Struct, frozen=True):
    """The metrics of one mode."""

    series: SeriesTable
    gate: Collection[str]
    conditions: Conditions

    def enter(self, generations: Sequence[Generation]) -> None:
        counted = [each for each in generations if not each.warmup]
        compiling = [step for each in generations for step in each.compiling_ns]
        self._times("compile_step_time", compiling)
        cold = [each.first_ns for each in generations if each.warmup]
        self._times("compile_first_token_time", filter(None, cold))
        firsts = [each.first_ns for each in counted if each.first_ns is not None]
        self._times("time_to_first_token", firsts, gated=True)
        if firsts and not cold:
            note = "no generation was marked warmup=True: the first may have compiled"
            self.series[self._name("time_to_first_token")].note = note
        # The mean of a generation, as its user waits for all of it: a median hides stalls.
        rates = [len(each.steps_ns) * 1e9 / sum(each.steps_ns) for each in counted if each.steps_ns]
        self._add("tokens_per_second_per_user", rates, unit="tok/s/user", gated=True)
        self._add("tokens_per_second", [self.conditions.users * r for r in rates], unit="tok/s")
        steps = [step for each in counted for step in each.steps_ns]
        self._times("inter_token_time", steps)
        if steps:
            self._percentiles(steps)
        elif compiling or not firsts:
            self._lack_steps(len(compiling), all_warm=not counted)

    def _lack_steps(self, compiling: int, *, all_warm: bool) -> None:
        """Gate a rate that is not there: a test of tokens must not pass without one."""
        why = (
            "every generation is marked warmup=True, and none counts"
            if all_warm
            else f"none of {counted(compiling, 'step')} is left after compiling (compile_steps=)"
        )
        metric = self._metric("tokens_per_second_per_user", "tok/s/user")
        self.series.of(metric).note = why

    def _percentiles(self, steps_ns: Sequence[float]) -> None:
        highest = None
        for percent in PERCENTILES:
            found = quantile(steps_ns, percent / 100)
            if found is None:
                continue
            highest = percent
            name = f"inter_token_p{percent}"
            self._times(name, [found.value])
            bound = scaled(found.at_most, _TIME_UNITS)
            count = f"{len(steps_ns)} steps"
            note = f"at most {bound} with {CONFIDENCE * 100:.0f} % confidence, by {count}"
            self.series[self._name(name)].note = note
        asked = PERCENTILES[-1]
        if highest != asked:
            name = f"inter_token_p{asked}"
            needed = f"p{asked} needs at least {least_count(asked / 100)} steps"
            told = f"p{highest} is the highest" if highest else "there is none"
            lost = f"{needed}, and there are {len(steps_ns)}: {told} that they tell"
            metric = self._metric(name, "ns")
            item = self.series.of(metric, gated=metric.name in self.gate)
            item.note = lost

    def _times(self, name: str, samples: Iterable[float], *, gated: bool = False) -> None:
        self._add(name, list(samples), unit="ns", gated=gated)

    def _add(self, name: str, samples: list[float], *, unit: str, gated: bool = False) -> None:
        if not samples:
            return
        metric = self._metric(name, unit)
        series = self.series.of(metric, gated=gated or metric.name in self.gate)
        series.samples.extend(samples)

    def _metric(self, name: str, unit: str) -> Metric:
        kind = Kind.TIME if unit == "ns" else Kind.THROUGHPUT
        return metric_of(self._name(name), unit=unit, kind=kind, source=self.conditions.source)

    def _name(self, name: str) -> str:
        return f"{self.conditions.mode}_{name}"
