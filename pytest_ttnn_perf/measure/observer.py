"""The ``ttnn_perf`` fixture, with and without the gate."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import contextmanager
from inspect import iscoroutinefunction
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.errors import AccuracyError, UsageError
from pytest_ttnn_perf.core.metric import (
    COMPILE,
    FIRST_CALL,
    SIM_THROUGHPUT_TIME,
    SIM_TIME,
    THROUGHPUT_TIME,
    WALL_TIME,
    Kind,
    Metric,
    Source,
    metric_in,
)
from pytest_ttnn_perf.core.settings import finite_number, whole_number
from pytest_ttnn_perf.core.text import plain
from pytest_ttnn_perf.measure.recorder import (
    OBSERVED,
    Recorder,
    metric_of,
    numbers_of,
)
from pytest_ttnn_perf.measure.timing import (
    Timings,
    Workload,
    input_shapes,
    measure_awaited,
    timed_region,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from pytest_ttnn_perf.core.observation import Artifact
    from pytest_ttnn_perf.measure.instruments import Plan
    from pytest_ttnn_perf.measure.tokens import TokenMarks


def bounds_of(
    option: str, bound: float | Mapping[str, float] | None, values: Mapping[str, float]
) -> Mapping[str, float]:
    if bound is None:
        return {}
    if not isinstance(bound, Mapping):
        return dict.fromkeys(values, finite_number(option, bound))
    unknown = sorted(set(bound) - set(values))
    if unknown:
        known = ", ".join(values)
        message = f"{option} names {', '.join(unknown)}, which is not among the values ({known})"
        raise UsageError(message)
    return {name: finite_number(option, value) for name, value in bound.items()}


#: How a time is called that nobody gave a name: of one call, and of overlapping ones.
_TIMES: Final = {
    Source.WALL: (WALL_TIME, THROUGHPUT_TIME),
    Source.SIM: (SIM_TIME, SIM_THROUGHPUT_TIME),
}


_SECOND_CALL: Final = "second_call_time"


class Observer(Recorder):
    """The ``ttnn_perf`` fixture: what an author of tests calls."""

    def __repr__(self) -> str:
        return f"<ttnn_perf of {self.test}>"

    def measure(  # noqa: PLR0913 (all but the callable are keywords that users know by name)
        self,
        fn: Any,
        /,
        *args: Any,
        name: str | None = None,
        warmup: int | None = None,
        iterations: int | None = None,
        sync: Callable[[], object] | None = None,
        setup: Callable[[], Any] | None = None,
        pipelined: int | None = None,
        clock: Callable[[], float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Time ``fn(*args, **kwargs)``: warm-up, then samples; return the last result.

        ``clock`` is that of a simulated device, in nanoseconds: what it tells is the same on every
        machine.
        """
        if not callable(fn):
            message = f"measure takes a callable and its arguments, not a result: found {fn!r}"
            raise UsageError(message)
        if iscoroutinefunction(fn):
            message = f"measure does not await {fn!r}: use `await ttnn_perf.measure_async(...)`"
            raise UsageError(message)
        plan = calls, rounds, depth = self._plan(warmup, iterations, pipelined)
        workload = self._workload(fn, args, kwargs, setup, sync, clock)
        with self._timing(name, depth, simulated=clock is not None) as timings:
            if self.conditions is not None:  # before a model changes its inputs
                usual = _TIMES[Source.WALL if clock is None else Source.SIM][depth is not None]
                shapes = input_shapes(workload)
                taken = {"warmup": calls, "iterations": rounds}
                rest = {"depth": depth, "inputs": shapes}
                rest = {key: value for key, value in rest.items() if value}
                self.conditions[name or usual] = {**taken, **rest}
            result, artifact = self.instruments.run(workload, timings, plan)
        self._take_measured(artifact, name)
        return result

    async def measure_async(  # noqa: PLR0913 (as ``measure``)
        self,
        fn: Any,
        /,
        *args: Any,
        name: str | None = None,
        warmup: int | None = None,
        iterations: int | None = None,
        sync: Callable[[], object] | None = None,
        setup: Callable[[], Any] | None = None,
        clock: Callable[[], float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Time ``await fn(*args, **kwargs)`` in the test's event loop.

        What else the loop does meanwhile is part of the time. Profilers are not asked.
        """
        if not callable(fn):
            message = f"measure_async takes a callable and its arguments, found {fn!r}"
            raise UsageError(message)
        calls, rounds, _ = self._plan(warmup, iterations)
        workload = self._workload(fn, args, kwargs, setup, sync, clock)
        with self._timing(name, None, simulated=clock is not None) as timings:
            return await measure_awaited(workload, timings, warmup=calls, iterations=rounds)

    def _workload(
        self,
        fn: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        setup: Callable[[], Any] | None,
        sync: Callable[[], object] | None,
        clock: Callable[[], float] | None,
    ) -> Workload:
        if self.instruments.compiler is not None:
            self.instruments.compiler.called(fn, (*args, *kwargs.values()))
        waits = sync or self.instruments.sync
        return Workload(fn, args, kwargs, setup=setup, sync=waits, clock=clock or perf_counter_ns)

    def _plan(
        self, warmup: int | None, iterations: int | None, pipelined: int | None = None
    ) -> Plan:
        asked = self.settings.warmup if warmup is None else warmup
        rounds = self.settings.iterations if iterations is None else iterations
        return (
            whole_number("warmup", asked, least=0),
            whole_number("iterations", rounds, least=1),
            None if pipelined is None else whole_number("pipelined", pipelined, least=1),
        )

    def measure_pipeline(  # noqa: PLR0913 (as ``measure``)
        self,
        pipeline: Any,
        inputs: list[Any],
        /,
        *,
        config: Any = None,
        name: str | None = None,
        warmup: int | None = None,
        iterations: int | None = None,
        preallocate: bool = False,
        cleanup: bool = False,
    ) -> list[Any]:
        """Compile a TT-CNN pipeline, time rounds over all inputs, return the outputs.

        A sample is a round divided by its inputs. Compiling is timed apart, and left out where the
        test has done it. ``cleanup`` cleans up at the end, as the test otherwise does.
        """
        from pytest_ttnn_perf.measure.frameworks import pipeline_of

        known = pipeline_of(pipeline, inputs, config, preallocate=preallocate, cleanup=cleanup)
        plan = self._plan(warmup, iterations)
        self._series.refuse_second(name or THROUGHPUT_TIME)  # before minutes go into compiling
        own = f"{name}_" if name not in {None, THROUGHPUT_TIME} else ""
        try:
            self._facts = {**{own + fact: v for fact, v in known.facts.items()}, **self._facts}
            if not known.is_compiled:
                keep = self._series.time(own + COMPILE, gated=False).samples.append
                with self.turn, timed_region(keep, self.instruments.sync):
                    pipeline.compile(known.inputs[0])
            if preallocate:
                known.preallocate()
            workload = known.workload(self.instruments.sync)
            timed = self._timing(name or THROUGHPUT_TIME, None, simulated=False, cold=False)
            with timed as timings:
                outputs, artifact = self.instruments.run(workload, timings, plan)
                if outputs is None:
                    outputs = known.serve(self.instruments.make_room)
            self._take_measured(artifact, name)
            return list(outputs)
        finally:
            if cleanup:
                pipeline.cleanup()

    def _take_measured(self, artifact: Artifact, name: str | None) -> None:
        own = name not in {None, WALL_TIME, THROUGHPUT_TIME}
        self._take(artifact.named(str(name)) if own else artifact, OBSERVED)

    @contextmanager
    def _timing(
        self, name: str | None, depth: int | None, *, simulated: bool, cold: bool = True
    ) -> Iterator[Timings]:
        """Keep what is timed meanwhile, also of a model that raises.

        With ``cold`` the first two calls of a test are kept by themselves as well.
        """
        source = Source.SIM if simulated else Source.WALL
        usual = _TIMES[source][depth is not None]
        timings = Timings()
        first = cold and FIRST_CALL not in self._series and not simulated
        self._series.refuse_second(name or usual)
        # Entered before anything is called, so that nothing that was measured is lost.
        series = self._series.time(name or usual, source)
        series.samples, series.warmup = timings.samples_ns, timings.warmup_ns
        try:
            with self.turn:
                yield timings
                self._host = self._load()
            if timings.calls_per_sample > 1:
                series.note = f"each sample is the mean of {timings.calls_per_sample} calls"
        finally:
            if first:
                gates = {
                    FIRST_CALL: self.run.gate_first_call_time,
                    _SECOND_CALL: self.run.gate_second_call_time,
                }
                calls_ns = timings.warmup_ns + (timings.samples_ns if depth is None else [])
                for (call, gated), elapsed_ns in zip(gates.items(), calls_ns, strict=False):
                    self._series.time(call, gated=gated).samples.append(elapsed_ns)

    def measure_io_overlap(
        self,
        *,
        compute: Callable[[], object],
        transfer: Callable[[], object],
        both: Callable[[], object],
        iterations: int | None = None,
    ) -> None:
        """Time computing alone, moving data alone, and both together.

        How much of the smaller of the two disappears in the third is the overlap.
        """
        for name, part in (("compute", compute), ("transfer", transfer), ("both", both)):
            self.measure(part, name=f"io_{name}_time", iterations=iterations)

    @contextmanager
    def region(self, name: str, *, clock: Callable[[], float] | None = None) -> Iterator[None]:
        """Time a block; the same name again adds a sample."""
        series = self._series.time(name, Source.WALL if clock is None else Source.SIM)
        keep, sync = series.samples.append, self.instruments.sync
        with self.turn, timed_region(keep, sync, clock or perf_counter_ns):
            yield

    def tokens(
        self,
        *,
        mode: str,
        users: int = 1,
        prompt_tokens: int | None = None,
        warmup: bool = False,
        compile_steps: int = 1,
        clock: Callable[[], float] | None = None,
    ) -> AbstractContextManager[TokenMarks]:
        """Time the tokens of one generation: ``first()``, then ``step()`` per decode step.

        Of the first generation of a test, ``compile_steps`` steps are recorded apart; so is all of
        one that is a ``warmup``.
        """
        from pytest_ttnn_perf.measure.tokens import SERVING, TokenLog, TokenMarks, conditions_of

        conditions = conditions_of(mode, users, prompt_tokens, simulated=clock is not None)
        sync = None if mode == SERVING else self.instruments.sync
        compiling = whole_number("compile_steps", compile_steps, least=0)
        self._tokens = self._tokens or TokenLog()
        marks = TokenMarks(conditions, sync, clock or perf_counter_ns)
        return self._tokens.marks(marks, self.turn, warmup=warmup, compile_steps=compiling)

    def record_tokens(  # noqa: PLR0913 (as ``tokens``)
        self,
        *,
        mode: str,
        step_s: object,
        first_token_s: float | None = None,
        users: int = 1,
        prompt_tokens: int | None = None,
        warmup: bool = False,
        compile_steps: int = 1,
    ) -> None:
        """Record one generation by times that the test took itself, in seconds."""
        from pytest_ttnn_perf.measure.tokens import TokenLog, conditions_of, steps_from

        conditions = conditions_of(mode, users, prompt_tokens)
        firsts = [None] if first_token_s is None else steps_from("first_token_s", first_token_s)
        if len(firsts) != 1:
            message = f"first_token_s: expected one number, found {len(firsts)}"
            raise UsageError(message)
        compiling = whole_number("compile_steps", compile_steps, least=0)
        steps = steps_from("step_s", step_s)
        self._tokens = self._tokens or TokenLog()
        self._tokens.add(conditions, firsts[0], steps, warmup=warmup, compiling=compiling)

    def record(
        self,
        name: str,
        value_or_samples: object,
        *,
        unit: str = "",
        better: str | None = None,
        kind: str | None = None,
    ) -> None:
        """Record any metric; the same name again adds samples."""
        metric = metric_of(name, unit=unit, better=better, kind=kind)
        series = self._series.of(metric)
        if series.origin is not None:
            message = f"{name} comes from {series.origin}; record yours under another name"
            raise UsageError(message)
        series.samples.extend(numbers_of(name, value_or_samples))

    def check_pcc(
        self, expected: object, actual: object, *, at_least: float | None = None, name: str = "pcc"
    ) -> float:
        """Correlate ``actual`` with ``expected``; below ``at_least`` the test fails."""
        from pytest_ttnn_perf.measure.pcc import compare

        bound = self._limit_of_pcc(self.settings.pcc if at_least is None else at_least)
        agreement = compare(expected, actual)
        self.accuracy(name, agreement.pcc, at_least=bound, note=agreement.sentence)
        for suffix, error in (
            ("max_abs_error", agreement.max_abs_error),
            ("relative_l2", agreement.relative_l2),
        ):
            if error is not None:
                metric = Metric(f"{name}_{suffix}", unit="", kind=Kind.ACCURACY)
                self._series.of(metric, gated=False).samples.append(error)
        return agreement.pcc

    def check_layers(
        self,
        layers: Mapping[str, tuple[object, object]] | Iterable[tuple[str, object, object]],
        *,
        at_least: float | Mapping[str, float] | None = None,
        name: str = "pcc",
    ) -> dict[str, float]:
        """Correlate the outputs of layers; name the first below its limit.

        The worst is gated as ``name``; each is recorded as ``name.layer``.
        """
        from pytest_ttnn_perf.measure.pcc import compare_layers, first_below, worst_layer

        own, usual = {}, self.settings.pcc
        if isinstance(at_least, Mapping):
            own = {layer: self._limit_of_pcc(bound) for layer, bound in at_least.items()}
        elif at_least is not None:
            usual = at_least
        compared = compare_layers(layers, own, self._limit_of_pcc(usual))
        for layer in compared:
            metric = metric_of(metric_in(layer.name, name), unit="", kind=Kind.ACCURACY)
            self._series.of(metric, gated=False).samples.append(layer.pcc)
        worst, first = worst_layer(compared), first_below(compared)
        why = worst.agreement.sentence and f"{worst.name}: {worst.agreement.sentence}"
        bound = worst.at_least if first else min(layer.at_least for layer in compared)
        note = ": ".join(filter(None, (first, why))) or None
        self.accuracy(name, worst.pcc, at_least=bound, note=note)
        return {layer.name: layer.pcc for layer in compared}

    def _limit_of_pcc(self, asked: float) -> float:
        limit = self._least("pcc", finite_number("at_least", asked))
        assert limit is not None
        return limit

    def check_accuracy(
        self,
        *,
        at_least: float | Mapping[str, float] | None = None,
        at_most: float | Mapping[str, float] | None = None,
        **values: float,
    ) -> None:
        """Record accuracies (top-1, token accuracy, FID …) with absolute limits.

        A value with ``at_most`` alone is better when lower; any other when higher.
        """
        lower, upper = (
            bounds_of("at_least", at_least, values),
            bounds_of("at_most", at_most, values),
        )
        for name, value in values.items():
            numbers = numbers_of(name, value)
            if len(numbers) != 1:
                message = f"{name}: expected one number, found {len(numbers)}"
                raise UsageError(message)
            least = lower.get(name) if name in upper else self._least(name, lower.get(name))
            self.accuracy(name, numbers[0], at_least=least, at_most=upper.get(name))

    def attach(
        self,
        path: str | os.PathLike[str],
        *,
        region: str | None = None,
        start: str | None = None,
        end: str | None = None,
    ) -> None:
        """Take a recorded artifact of this test, as metrics of their own.

        Of an op table, that of a ``region``, or between the signposts ``start`` and ``end``; all
        regions without them. Not in a replay, which takes all of them from elsewhere.
        """
        if region is None and start is None and end is None:
            region = self.settings.region
        self._attach(Path(path), f"attach({os.fspath(path)!r})", region, start, end)

    def hardware(self, *, arch: object = None, board: object = None, mesh: object = None) -> None:
        """State the hardware, where the test opens no device itself."""
        from pytest_ttnn_perf.measure.hardware import StatedHardware

        self._stated = StatedHardware.of(arch, board, mesh)

    def facts(self, **facts: object) -> None:
        """State configuration that cannot be observed; another value is another configuration."""
        for name, fact in facts.items():
            infinite = isinstance(fact, (int, float)) and not -LARGEST <= fact <= LARGEST
            if infinite or (fact is not None and not isinstance(fact, (str, int, float))):
                message = f"fact {name}: expected a string, number or boolean, found {fact!r}"
                raise UsageError(message)
            self._facts[name] = plain(fact)


class FunctionalObserver(Observer):
    """The fixture without the gate: one call each, accuracy enforced at once."""

    def _plan(self, *_: int | None) -> Plan:
        self._series.clear()  # the same model may run as often as the test likes
        return 0, 1, None

    def attach(self, path: str | os.PathLike[str], **choice: str | None) -> None:
        """Leave a capture alone: nothing is compared, and there may be none."""

    def accuracy(
        self,
        name: str,
        value: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str | None = None,
    ) -> None:
        """Raise where a value is not within its limits."""
        if at_least is not None and not value >= at_least:  # so that NaN is caught as well
            limit = f"at least {at_least:g}"
        elif at_most is not None and not value <= at_most:
            limit = f"at most {at_most:g}"
        elif not math.isfinite(value):
            limit = "a finite number"
        else:
            return
        message = f"{name} is {value:.6g}, expected {limit}" + (f": {note}" if note else "")
        raise AccuracyError(message)
