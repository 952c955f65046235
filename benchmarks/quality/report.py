"""The report: the same text on the terminal and on the documentation page."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.quality import peers, tables
from benchmarks.quality.ratchet import NIGHTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.quality.machine import Shifted
    from benchmarks.quality.ratchet import Ratchet
    from benchmarks.quality.study import Study
    from benchmarks.quality.trials import Result

#: What the gate must show at 10 iterations and 10 sessions, averaged over the models.
MEAN_ALARMS, WORST_ALARMS, POWER_5, POWER_10 = 0.0005, 0.002, 0.80, 0.99
#: Nights that may fail an unchanged test, in the worst model.
FAILED_NIGHTS = 0.0005
#: Unchanged tests that a run of 200 on a slower machine may name.
INNOCENT = 0.5
#: How far the centre of a usual test may be from the truth after the ratchet's nights.
WALK = 0.005
#: Sizes of the regressions that one wild session may hide.
WILD_EFFECTS = (0.0, 0.05, 0.10, 0.20, 0.25)


@dataclass
class Findings:
    """What has been simulated so far; the first study is the main one."""

    command: str
    studies: list[Study] = field(default_factory=list)
    #: By the name of the limit's formula, where some sessions are wild.
    wild: list[tuple[str, Result]] = field(default_factory=list)
    ratchets: list[Ratchet] = field(default_factory=list)
    walks: int = 0
    machines: list[Shifted] = field(default_factory=list)
    #: The usual limit by number of sessions, then by how much these differ.
    limits: dict[int, dict[float, float]] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether everything that must hold does."""
        found = (*bars(self.studies[0]), *ratchet_bars(self.ratchets), *machine_bars(self.machines))
        return all(met for _, met in found)


def page(found: Findings) -> str:
    """Return the report of what has been found so far."""
    studies = [study for study in found.studies if study.results]
    parts = [_opening(found)]
    if studies:
        parts += _main(studies[0], found)
    if studies[1:]:
        parts += [_SIZES, tables.sizes(studies[1:])]
    if found.limits:
        parts += [_LIMITS, tables.limits(found.limits)]
    if found.wild:
        parts += [_WILD, tables.wild(found.wild, WILD_EFFECTS)]
    if found.ratchets:
        parts += [
            _RATCHET.format(walks=found.walks, nights=NIGHTS),
            tables.ratchets(found.ratchets),
        ]
    if found.machines:
        parts += [_MACHINE, tables.machines(found.machines)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def bars(study: Study) -> list[tuple[str, bool]]:
    """Return what the gate must show, each with whether it does."""
    mean = study.mean("ours, fresh", 1.0, 0.0)
    worst, name = study.worst("ours, fresh", 1.0)
    five, ten = (study.mean("ours, fresh", 1.0, effect) for effect in (0.05, 0.10))
    return [
        (f"false alarms, mean: {mean:.3%} (at most {MEAN_ALARMS:.2%})", mean <= MEAN_ALARMS),
        (f"worst model, {name}: {worst:.3%} (at most {WORST_ALARMS:.1%})", worst <= WORST_ALARMS),
        (f"5 % regressions found: {five:.1%} (at least {POWER_5:.0%})", five >= POWER_5),
        (f"10 % regressions found: {ten:.1%} (at least {POWER_10:.0%})", ten >= POWER_10),
        _ahead(study),
    ]


def ratchet_bars(ratchets: Sequence[Ratchet]) -> list[tuple[str, bool]]:
    """Return what the nightly updates must show, each with whether they do."""
    if not ratchets:
        return []
    nights = NIGHTS * len(ratchets[0].unchanged)
    failed = [(sum(walk.failures for walk in each.unchanged) / nights, each) for each in ratchets]
    often, noisiest = max(failed, key=lambda pair: pair[0])
    shifts = [(median(walk.shift for walk in each.unchanged), each) for each in ratchets]
    worst, where = max(shifts, key=lambda pair: abs(pair[0]))
    drifting = [walk for each in ratchets for walk in each.drifting]
    caught = sum(walk.caught is not None for walk in drifting)
    return [
        (
            f"after {NIGHTS} nights the centre of a usual test is where it was; furthest off, "
            f"{where.noise.name}: {worst:+.2%} (at most {WALK:.1%})",
            abs(worst) <= WALK,
        ),
        (
            f"nights that fail an unchanged test; most of them, {noisiest.noise.name}: "
            f"{often:.3%} (at most {FAILED_NIGHTS:.2%})",
            often <= FAILED_NIGHTS,
        ),
        (
            f"code that grows slower by 0.1 % a night fails: {caught} of {len(drifting)} tests",
            caught == len(drifting),
        ),
    ]


def machine_bars(machines: Sequence[Shifted]) -> list[tuple[str, bool]]:
    """Return what runs on a slower machine must show."""
    if not machines:
        return []
    worst = max(machines, key=lambda each: each.innocent / each.runs)
    names = worst.innocent / worst.runs
    text = (
        f"unchanged tests named in a run of 200; most of them, {worst.noise.name}, "
        f"{worst.slower:.0%} slower: {names:.2f} (at most {INNOCENT:.1f})"
    )
    return [(text, names <= INNOCENT)]


def _ahead(study: Study) -> tuple[str, bool]:
    behind = []
    names = set(peers.FAMILIES.values())
    for label, threshold, powers in tables.equal_rows(study):
        if threshold is None or label not in names:
            continue
        leads = [
            study.mean("ours, fresh", 1.0, effect) - powers[study.effects.index(effect)]
            for effect in tables.SHOWN
        ]
        behind += [label] if min(leads) <= 0 else []
    closest, _, powers = tables.best_peer(study)
    lead = study.mean("ours, fresh", 1.0, 0.05) - powers[study.effects.index(0.05)]
    text = (
        "ahead of every peer at equal false-alarm rate, at 2, 3, 5 and 10 %; "
        f"closest at 5 %: {closest}, {100 * lead:.1f} points behind"
    )
    return (text, True) if not behind else (f"{text}; not ahead of {', '.join(behind)}", False)


def _spaced(text: str) -> str:
    return text.replace(" %", "%").replace("%", " %")


def bar_lines(study: Study, of: Findings) -> str:
    """Return the bars over all models, over the plain ones alone, and over the nights."""
    parts = [
        (f"Over {title} {len(part.results)}:", bars(part))
        for title, part in (
            ("all noise models,", study),
            ("the basic noise models alone, the first", study.basic()),
        )
        if part.results
    ]
    if of.ratchets:
        parts.append(("[The ratchet](#the-ratchet):", ratchet_bars(of.ratchets)))
    if of.machines:
        parts.append(("[A slower machine](#a-slower-machine):", machine_bars(of.machines)))
    lines = []
    for title, found in parts:
        lines += [f"{title}\n"]
        lines += [f"- {'met' if met else '**not met**'}: {_spaced(text)}" for text, met in found]
        lines += [""]
    return "\n".join(lines)


def _opening(found: Findings) -> str:
    return f"""
# How good the gate is

A simulation of the gate beside the rules of other tools, on the same random draws. Every figure
on this page was printed by

    {found.command}

which also writes this page and the plot with `--out docs/explanation/gate-quality.md`. It needs
nothing but the project and numpy, and gives the same figures for the same seed.

How to read it:

- A **trial** is a baseline of some sessions of some iterations each, and a candidate session that
  is slower by a known share, or not at all. A session is one process.
- A **false alarm** is an unchanged test that fails, `REGRESSED` or `TOO_NOISY`. Brackets hold the
  95 % Wilson interval.
- **found at 5 %** is the share of 5 % regressions that fail as `REGRESSED`.
- `pytest --ttnn-perf` measures a suspect again, up to twice (`--ttnn-perf-confirm 2`, the default),
  each time in a new process. A **fresh** confirm draws the session's part of the noise anew. A
  confirm **in the same job** keeps all of it: the figure to expect where the new process inherits
  the state of the host that misled the first one. Real hosts lie between the two. **No confirms**
  is `--ttnn-perf-confirm 0`, or a run record without `confirmations`.
- Which models are averaged decides the averages. Read them as a ranking on equal terms and an order
  of magnitude, not as a forecast for one machine.
"""


def _main(study: Study, of: Findings) -> list[str]:
    n, sessions = study.setting
    rate = study.mean("ours, fresh", 1.0, 0.0)
    return [
        f"""
## What must hold

{n} iterations, {sessions} sessions, 2 fresh confirms, {study.trials:,} trials per model. The
simulation uses a form of the gate that judges many trials at once; {study.checked:,} of its
verdicts were compared with the package's: outcomes are the same, limits agree to 1e-9.
""",
        bar_lines(study, of),
        _SHIPPED,
        tables.as_shipped(study),
        _MODELS,
        tables.by_model(study),
        f"""
## At equal false-alarm rate

Each rule's threshold is set, on these very trials, so that its mean false-alarm rate is this gate's
{100 * rate:.3f} %: the best that one threshold for all tests can do. In per cent, mean over all
models. No peer measures again, and this gate's lead rests on that, as its own row without confirms
shows. The last two rows are no tool's rule: a centre over all sessions and fresh confirms, without
a limit that follows each test's noise. Such a margin finds large regressions at least as well, and
misses small ones.
""",
        tables.at_equal_rate(study),
        "![Power at equal false-alarm rate](gate-quality.svg)",
    ]


_SHIPPED = """
## Rules as shipped

Mean over all models, in per cent. pytest-benchmark, asv, benchstat and Criterion compare with the
last session alone; Bencher and tt-metal with the means of all of them. Thresholds are those the
tool ships or its documentation shows, or usual ones where it has none (pytest-benchmark). asv and
benchstat: exact Mann-Whitney. Criterion: the lower end of the 95 % bootstrap interval of the ratio.
Bencher: mean + t · standard deviation, median + 3 · IQR. tt-metal also fails what is faster.
"""

_MODELS = """
## By noise model

This gate, in per cent; "measured again" is a number per test. A false gain is an unchanged test
that is `IMPROVED` after two fresh confirms.
"""

_SIZES = """
## Other sizes

In per cent. The best peer is the one that finds most 5 % regressions at the false-alarm rate of
this gate with 2 fresh confirms. What must hold is held at 10 iterations and 10 sessions: with fewer
of either, false alarms are more common or regressions go unnoticed.
"""

_LIMITS = """
## How many sessions

The limit for a wall time, by how many sessions the baseline has and how much sessions really differ
(standard deviation): the median of 20,001 random baselines without noise within a session.
"""

_WILD = """
## One wild session

A baseline keeps its sessions, so it also keeps one that went wrong. Here 1 session in 50 takes 1.3
times as long, beside 1 % within and 1 % between sessions; 10 iterations, 20 sessions, 2 fresh
confirms, in per cent. As shipped, the furthest session widens the limit to 4 % at most, and only
two of them widen it further, to 20 % at most. The other rows: without any such part, and with one
session that counts up to 20 % by itself. What hides small regressions in the first two rows is the
part of a wild session in the spread: a baseline with one in it is better recorded anew.
"""

_RATCHET = """
## The ratchet

{nights} nights of `--ttnn-perf-update`, judged and planned by the package itself: sessions are
appended up to 20 after the last accept, a gain is accepted after two fresh confirms. {walks:,}
tests per model, with unchanged code and with code that grows slower by 0.1 % each night. The
centre's distance from where the test truly began is in per cent: median (lowest to highest). A slow
drift must fail once it adds up, and the centre must not follow it: there a walk ends when it is
caught. Failed nights are in per cent. Nights are independent of each other, which those of a real
machine are not. Without the model of a walking host, in which the test itself moves.
"""

_MACHINE = """
## A slower machine

Runs of 200 tests with 10 sessions each, on a machine that is slower as a whole; one of the tests is
slower by another 10 %. Judged by the package itself, with two fresh confirms of what is slower than
the machine. The shift is taken off every measurement. The column beside is without that for
confirms: what the machine did to the second measurement was held against the test. Both are tests
per run. The machine is as slow in confirms as before; one that recovers, or slows down only within
the run, is not in this table.
"""
