"""Tokens of a language model: their times, and metrics of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.metric import Kind, Source
from pytest_ttnn_perf.core.settings import whole_number
from pytest_ttnn_perf.core.text import counted, repr_of
from pytest_ttnn_perf.measure.recorder import metric_of, numbers_of
from pytest_ttnn_perf.measure.timing import least_count, quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.measure.recorder import Series, SeriesTable
    from pytest_ttnn_perf.measure.timing import Turn


#: Where tokens come from. Their numbers mean different things, and have different names.
MODES: Final = ("teacher_forced", "token_out", "serving")
#: Tokens arrive by a network: there is no device here to wait for.
SERVING: Final = "serving"
#: The percentiles that are recorded where there are enough steps.
PERCENTILES: Final = (50, 90, 95, 99)
_HIGHEST: Final = 99


class Conditions(Struct, frozen=True):
    """Conditions that must be the same for two numbers to be compared.

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
    if not isinstance(mode, str) or mode not in MODES:
        message = f"tokens: mode is one of {', '.join(MODES)}, found {repr_of(mode)}"
        raise UsageError(message)
    prompt = None
    if prompt_tokens is not None:
        prompt = whole_number("prompt_tokens", prompt_tokens, least=1)
    source = Source.SIM if simulated else Source.WALL
    return Conditions(mode, whole_number("users", users, least=1), prompt, source)


class TokenMarks(Struct):
    """Marks while tokens come: ``first()`` once, then ``step()`` per decode step."""

    conditions: Conditions
    sync: Callable[[], object] | None
    clock: Callable[[], float]
    first_ns: float | None = None
    steps_ns: list[float] = []
    _last_ns: float | None = None

    def start(self) -> None:
        self._last_ns = self._now()

    def first(self) -> None:
        """Mark that the first token of every user is there."""
        if self.first_ns is not None or self.steps_ns:
            message = "tokens: first() marks the first token, before any step(): found a second one"
            raise UsageError(message)
        self.first_ns = self._elapsed()

    def step(self) -> None:
        """Mark that one more token of every user is there."""
        if self.first_ns is None and self.conditions.prompt_tokens is not None:
            message = "tokens: step() follows first(); without a prefill, leave out prompt_tokens="
            raise UsageError(message)
        self.steps_ns.append(self._elapsed())

    def _elapsed(self) -> float:
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
    """The tokens of one prompt. ``compiling`` steps do not count."""

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
        """Keep one generation. Only the first of a test compiles."""
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

    def by_mode(self) -> dict[str, list[Generation]]:
        modes: dict[str, list[Generation]] = {}
        for each in self.generations:
            modes.setdefault(each.conditions.mode, []).append(each)
        return modes

    def facts(self) -> Mapping[str, Scalar]:
        found: dict[str, Scalar] = {}
        for mode, generations in self.by_mode().items():
            conditions = generations[0].conditions
            found[f"{mode}_users"] = conditions.users
            if conditions.prompt_tokens is not None:
                found[f"{mode}_prompt_tokens"] = conditions.prompt_tokens
        return found

    def enter(self, series: SeriesTable, gate: Collection[str]) -> None:
        for mode, generations in self.by_mode().items():
            _enter_mode(mode, generations, series, gate)


def steps_from(name: str, seconds: object) -> list[float]:
    """Return times that a test took itself, in ns.

    Raises:
        UsageError: one of them is not above 0.
    """
    numbers = numbers_of(name, seconds)
    for place, number in enumerate(numbers):
        if not number > 0:  # so that NaN is caught as well
            message = f"{name}: expected seconds above 0, found {number!r} at place {place}"
            raise UsageError(message)
    return [number * 1e9 for number in numbers]


def _enter_mode(
    mode: str, generations: Sequence[Generation], series: SeriesTable, gate: Collection[str]
) -> None:
    conditions = generations[0].conditions

    def entry(name: str, unit: str = "ns", *, gated: bool = False) -> Series:
        kind = Kind.TIME if unit == "ns" else Kind.THROUGHPUT
        metric = metric_of(f"{mode}_{name}", unit=unit, kind=kind, source=conditions.source)
        return series.of(metric, gated=gated or metric.name in gate)

    def add(name: str, samples: list[float], unit: str = "ns", *, gated: bool = False) -> None:
        if samples:
            entry(name, unit, gated=gated).samples.extend(samples)

    counting = [each for each in generations if not each.warmup]
    compiling = [step for each in generations for step in each.compiling_ns]
    cold = [each.first_ns for each in generations if each.warmup]
    firsts = [each.first_ns for each in counting if each.first_ns is not None]
    # The mean of a generation, as its user waits for all of it: a median hides stalls.
    rates = [len(each.steps_ns) * 1e9 / sum(each.steps_ns) for each in counting if each.steps_ns]
    steps = [step for each in counting for step in each.steps_ns]
    add("compile_step_time", compiling)
    add("compile_first_token_time", [first for first in cold if first])
    add("time_to_first_token", firsts, gated=True)
    if firsts and not cold:
        note = "no generation was marked warmup=True: the first may have compiled"
        entry("time_to_first_token").note = note
    add("tokens_per_second_per_user", rates, "tok/s/user", gated=True)
    add("tokens_per_second", [conditions.users * rate for rate in rates], "tok/s")
    add("inter_token_time", steps)
    known = {percent: quantile(steps, percent / 100) for percent in PERCENTILES if steps}
    for percent, value in known.items():
        add(f"inter_token_p{percent}", [] if value is None else [value])
    if steps and known[_HIGHEST] is None:
        highest = max((percent for percent, value in known.items() if value), default=None)
        needed = f"p{_HIGHEST} needs at least {least_count(_HIGHEST / 100)} steps"
        best = f"p{highest} is the highest" if highest else "there is none"
        note = f"{needed}, and there are {len(steps)}: {best} that they show"
        entry(f"inter_token_p{_HIGHEST}").note = note
    if not steps and (compiling or not firsts):  # a test of tokens must not pass without a rate
        why = f"none of {counted(len(compiling), 'step')} is left after compiling (compile_steps=)"
        if not counting:
            why = "every generation is marked warmup=True, and none counts"
        entry("tokens_per_second_per_user", "tok/s/user", gated=True).note = why
