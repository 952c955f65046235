"""Kinds of runners over many nights: what stays off for a whole night, and what does not.

ln time = machine that night + test that night + session + samples + what happens within the run

A confirm pass of the same night draws the session's part and the samples anew. The rest stays:
what is off that night is off in every process of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmarks.quality.suite import MEASUREMENTS

if TYPE_CHECKING:
    from benchmarks.quality import Array

#: What one sample takes without noise, in ns.
BASE_NS = 1e6
#: Hosts of a pool, as logarithms.
POOL = (-0.03, -0.01, 0.01, 0.03)
#: One night in so many is one on which something happens.
EVERY = 3


@dataclass(frozen=True)
class Runner:
    """A kind of runner, and how a suite is gated on it. Fractions; what is not given is off."""

    name: str
    group: str
    #: Deviations of a test that last the whole night, and how much of them the next one keeps.
    test_sd: float = 0.0
    test_rho: float = 0.0
    #: The same for the machine as a whole.
    machine_sd: float = 0.0
    machine_rho: float = 0.0
    #: New in every process, and new in every sample.
    session_sd: float = 0.01
    sample_sd: float = 0.01
    tails: Literal["normal", "t3"] = "normal"
    #: Share of processes that are slower, and by how much.
    slow_share: float = 0.0
    slow: float = 0.0
    #: The machine grows slower by this in 30 nights.
    drift: float = 0.0
    pool: bool = False
    #: One night in three everything is slower by this, from some point of the run on.
    throttle: float = 0.0
    begins: Literal["before", "within", "late"] = "before"
    tests: int = 200
    timings: int = 1
    samples: int = 10
    #: Nights that were recorded before the first one that counts; or so many sessions in one hour.
    recorded: int = 10
    one_hour: int = 0
    updates: bool = True
    #: Nights from one run that is recorded, or updates, to the next.
    apart: int = 1
    #: All tests are recorded anew every 30 nights.
    anew: bool = False
    #: What to do on such a runner: it is in the first table then.
    advice: str = ""

    @property
    def noise(self) -> float:
        """The deviation of one measurement of a test from another night's, without the machine."""
        of_samples = 1.2533 * self.sample_sd / np.sqrt(self.samples)
        return float(np.hypot(np.hypot(self.test_sd, self.session_sd), of_samples))

    @property
    def is_calm(self) -> bool:
        """Whether nothing happens to the machine as a whole."""
        return not (self.machine_sd or self.drift or self.throttle or self.pool)

    @property
    def promises_power(self) -> bool:
        """Whether regressions must be found: noise of about 1 %, and ten runs that showed it."""
        usual = self.is_calm and self.tails == "normal" and not self.slow and self.can_be_told
        return usual and self.noise < 0.011 and self.recorded >= 10 and not self.one_hour

    @property
    def can_be_told(self) -> bool:
        """Whether measuring again in the same night can tell noise from a regression at all."""
        return self.test_sd < 0.01


class Weather:
    """What the runners of some suites do, night after night."""

    def __init__(self, runner: Runner, chance: np.random.Generator, suites: int) -> None:
        self.runner, self.chance, self.suites = runner, chance, suites
        shape = (suites, runner.tests, runner.timings)
        self.test = self._parted(shape) * runner.test_sd
        self.machine = chance.standard_normal(suites) * runner.machine_sd
        self.host = chance.integers(0, len(POOL), suites)
        self.night = 0
        #: How long tests take, which decides who is a control; about 0.3 s.
        self.seconds = 0.3 * np.exp(0.8 * chance.standard_normal(shape[:2]))

    def _parted(self, shape: tuple[int, ...]) -> Array:
        """Return deviations of timings; those of one test share half of their variance."""
        normal = self._normal
        if shape[-1] == 1:
            return normal(shape)
        return np.sqrt(0.5) * (normal((*shape[:-1], 1)) + normal(shape))

    def _normal(self, shape: tuple[int, ...]) -> Array:
        if self.runner.tails == "t3":
            return self.chance.standard_t(3, shape) / np.sqrt(3)  # of deviation 1
        return self.chance.standard_normal(shape)

    def next_night(self) -> None:
        """Go on to the next night."""
        runner, chance = self.runner, self.chance
        self.night += 1
        if runner.test_sd:
            fresh = np.sqrt(1 - runner.test_rho**2) * runner.test_sd
            self.test = runner.test_rho * self.test + fresh * self._parted(self.test.shape)
        if runner.machine_sd:
            fresh = np.sqrt(1 - runner.machine_rho**2) * runner.machine_sd
            self.machine = runner.machine_rho * self.machine
            self.machine += fresh * chance.standard_normal(self.suites)
        self.host = chance.integers(0, len(POOL), self.suites)

    def levels(self, *, calm: bool = False) -> tuple[Array, Array]:
        """Return tonight's level of each timing in the first pass, and of the machine by pass.

        Natural logarithms; ``calm`` for a night on which nothing happens. The first is (suites,
        tests, timings), the second (suites, measurements).
        """
        runner = self.runner
        whole = self.machine + runner.drift * self.night / 30
        if runner.pool:
            whole = whole + np.asarray(POOL)[self.host]
        by_pass = np.repeat(whole[:, None], MEASUREMENTS, axis=1)
        at_first = np.zeros((self.suites, runner.tests))
        if runner.throttle and self.night % EVERY == 0 and not calm:
            start = {"before": 0.0, "late": 0.9}.get(runner.begins)
            place = np.arange(runner.tests) / runner.tests
            starts = self.chance.random((self.suites, 1)) if start is None else start
            at_first = np.where(place >= starts, np.log1p(runner.throttle), 0.0) + at_first
            by_pass[:, 1:] += np.log1p(runner.throttle)
        return at_first[..., None], by_pass

    def measure(self, count: int, *, calm: bool = False) -> Array:
        """Return (measurements, suites, tests, timings, samples) times."""
        at_first, by_pass = self.levels(calm=calm)
        last = MEASUREMENTS - 1
        passes = [
            self._one_pass(by_pass[:, min(number, last)], 0.0 if number else at_first)
            for number in range(count)
        ]
        return np.stack(passes)

    def _one_pass(self, machine: Array, happening: Array | float) -> Array:
        runner, shape = self.runner, self.test.shape
        level = self.test + machine[:, None, None] + happening
        level = level + runner.session_sd * self._parted(shape)
        if runner.slow_share:
            slow = self.chance.random(shape[:2]) < runner.slow_share
            level = level + np.where(slow, np.log1p(runner.slow), 0.0)[..., None]
        samples = runner.sample_sd * self._normal((*shape, runner.samples))
        return BASE_NS * np.exp(level[..., None] + samples)


def _named(per_cent: float) -> str:
    return f"{100 * per_cent:g} %"


_OWN = "A test's own deviation that lasts the night"
_WHOLE = "The machine as a whole"
_PROCESS = "Processes that differ"
_BASELINE = "What the baseline has seen"
_SUITE = "The size of the suite"
GROUPS = (_PROCESS, _WHOLE, _OWN, _BASELINE, _SUITE)


def _off(per_cent: float, stays: float, **more: Any) -> Runner:
    kept = f"{stays:g} of it stays" if stays else "nothing stays"
    name = f"tests {per_cent:g} % off for a night, {kept}"
    return Runner(name, _OWN, test_sd=per_cent / 100, test_rho=stays, session_sd=0.005, **more)


def _sized(tests: int, timings: int = 1, words: str = "", **more: Any) -> Runner:
    name = f"{tests} {'test' if tests == 1 else 'tests'}"
    name += f" of {timings} timings" if timings > 1 else ""
    return Runner(name + words, _SUITE, tests=tests, timings=timings, **more)


RUNNERS = (
    Runner("processes differ by 0.5 %", _PROCESS, session_sd=0.005, advice="nothing to do"),
    Runner("processes differ by 1 %", _PROCESS, advice="nothing to do"),
    Runner("processes differ by 2 %", _PROCESS, session_sd=0.02,
           advice="fix clocks, use more iterations: small regressions pass"),
    Runner("30 % of processes are 3 % slower", _PROCESS, slow_share=0.3, slow=0.03),
    Runner("5 % of processes are 6 % slower", _PROCESS, slow_share=0.05, slow=0.06,
           advice="nothing to do: measuring again clears them"),
    Runner("heavy tails (Student's t, 3 degrees), 1 %", _PROCESS, tails="t3"),
    _off(0.5, 0.5),
    _off(0.5, 0.9),
    _off(1, 0, advice="record on ten nights, not in one hour"),
    _off(1, 0.5),
    _off(1, 0.7, advice="record a run a week; decide doubtful ones with `ttnn-perf ab`"),
    _off(1, 0.9),
    _off(2, 0),
    _off(2, 0.5),
    _off(2, 0.7, advice="do not gate wall times here: device times, or `ttnn-perf ab`"),
    _off(2, 0.9),
    Runner("the machine 2 % off for a night, nothing stays", _WHOLE, machine_sd=0.02),
    Runner("the machine 2 % off for a night, 0.7 of it stays", _WHOLE, machine_sd=0.02,
           machine_rho=0.7,
           advice="exit 6 is the machine: run again; a machine of its own sees more"),
    Runner("the machine 2 % off for a night, 0.9 of it stays", _WHOLE, machine_sd=0.02,
           machine_rho=0.9),
    Runner("the machine grows slower by 2 % a month", _WHOLE, drift=0.02,
           advice="find out why; then accept, or record anew"),
    Runner("the same, recorded anew every month", _WHOLE, drift=0.02, anew=True),
    Runner("one night in three 7 % slower", _WHOLE, throttle=0.07),
    Runner("one night in three 7 % slower from some test on", _WHOLE, throttle=0.07,
           begins="within", advice="exit 6 is the machine: run again without neighbours"),
    Runner("one night in three 7 % slower for the last tenth", _WHOLE, throttle=0.07,
           begins="late"),
    Runner("a pool of four hosts, ± 3 %", _WHOLE, pool=True,
           advice="gate on one of them: what hosts differ by passes"),
    Runner("1 run, no updates", _BASELINE, recorded=1, updates=False,
           advice="record more nights: one run says nothing about the next"),
    *(
        Runner(f"{count} runs, no updates", _BASELINE, recorded=count, updates=False)
        for count in (2, 3, 5)
    ),
    Runner("10 sessions in one hour, no updates; tests 1 % off for a night", _BASELINE,
           one_hour=10, updates=False, test_sd=0.01, session_sd=0.005,
           advice="record on ten nights, not in one hour"),
    Runner("10 sessions in one hour, no updates; the machine 2 % off", _BASELINE,
           one_hour=10, updates=False, machine_sd=0.02),
    Runner("a run a week; tests 1 % off for a night, 0.9 of it stays", _BASELINE,
           test_sd=0.01, test_rho=0.9, session_sd=0.005, apart=7),
    Runner("one sample a session", _BASELINE, samples=1),
    Runner("three samples a session", _BASELINE, samples=3),
    *(
        _sized(tests, timings)
        for tests, timings in ((1, 1), (3, 1), (5, 1), (5, 4), (5, 8), (20, 1), (20, 8), (200, 4),
                               (200, 8))
    ),
    *(
        _sized(tests, words="; the machine 2 % off, 0.7 of it stays", machine_sd=0.02,
               machine_rho=0.7)
        for tests in (1, 3, 5, 20)
    ),
    *(
        _sized(tests, words="; one night in three 7 % slower from some test on", throttle=0.07,
               begins="within")
        for tests in (3, 5, 20)
    ),
)  # fmt: skip
