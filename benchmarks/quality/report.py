"""The report: the same text on the terminal and on the documentation page."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.quality import nights_page, peers, tables
from benchmarks.quality.ratchet import NIGHTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.quality.nights import Row
    from benchmarks.quality.ratchet import Ratchet
    from benchmarks.quality.study import Study
    from benchmarks.quality.trials import Result

#: What the gate must show at 10 iterations and 10 runs, averaged over the models.
MEAN_ALARMS, WORST_ALARMS, POWER_5, POWER_10 = 0.0005, 0.002, 0.65, 0.99
#: The same where confirm passes share what is off in the job; 0.69 % with the gate before.
IN_JOB_ALARMS = 0.0035
#: Nights that may fail an unchanged test, in the worst model.
FAILED_NIGHTS = 0.0005
#: How far the centre of a usual test may be from the truth after the ratchet's nights.
WALK = 0.001
#: Sizes of the regressions that one wild session may hide.
WILD_EFFECTS = (0.0, 0.05, 0.10, 0.20, 0.25)


@dataclass
class Findings:
    """What has been simulated so far; the first study is the main one."""

    command: str
    #: The kinds of runners, over how many nights, with which seeds.
    rows: list[Row] = field(default_factory=list)
    nights: int = 0
    seeds: tuple[int, ...] = ()
    #: Tests whose night the package judged too.
    checked: int = 0
    studies: list[Study] = field(default_factory=list)
    #: By the name of the limit's formula, where some sessions are wild.
    wild: list[tuple[str, Result]] = field(default_factory=list)
    ratchets: list[Ratchet] = field(default_factory=list)
    walks: int = 0
    #: The usual limit by number of runs, then by how much these differ.
    limits: dict[int, dict[float, float]] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether everything that must hold does."""
        found = (
            *nights_page.bars(self.rows), *bars(self.studies[0]), *ratchet_bars(self.ratchets)
        )  # fmt: skip
        return all(met for _, met in found)


def page(found: Findings) -> str:
    """Return the report of what has been found so far."""
    studies = [study for study in found.studies if study.results]
    parts = [_opening(found)]
    if found.rows:
        parts += [
            nights_page.FIRST,
            nights_page.first_table(found.rows),
            nights_page.assumptions(found.nights, found.seeds, found.checked),
        ]
    parts += ["## What must hold", bar_lines(found)]
    if found.rows:
        parts += [nights_page.DETAILS, nights_page.all_rows(found.rows)]
    if studies:
        parts += _main(studies[0])
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
    return "\n\n".join(part.strip() for part in parts) + "\n"


def bars(study: Study) -> list[tuple[str, bool]]:
    """Return what the gate must show, each with whether it does."""
    mean = study.mean("ours, fresh", 1.0, 0.0)
    in_job = study.mean("ours, in-job", 1.0, 0.0)
    worst, name = study.worst("ours, fresh", 1.0)
    five, ten = (study.mean("ours, fresh", 1.0, effect) for effect in (0.05, 0.10))
    return [
        (f"false alarms, mean: {mean:.3%} (at most {MEAN_ALARMS:.2%})", mean <= MEAN_ALARMS),
        (f"worst model, {name}: {worst:.3%} (at most {WORST_ALARMS:.1%})", worst <= WORST_ALARMS),
        (
            f"false alarms, mean, confirms in the same job: {in_job:.3%} "
            f"(at most {IN_JOB_ALARMS:.2%})",
            in_job <= IN_JOB_ALARMS,
        ),
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


def bar_lines(of: Findings) -> str:
    """Return what must hold: over the nights, beside other tools, and of the ratchet."""
    parts = [("[Night after night](#night-after-night):", nights_page.bars(of.rows))]
    if of.studies and of.studies[0].results:
        study = of.studies[0]
        parts += [
            (f"[Beside other tools](#beside-other-tools), over {title} {len(part.results)}:",
             bars(part))
            for title, part in (
                ("all noise models,", study),
                ("the basic noise models alone, the first", study.basic()),
            )
            if part.results
        ]  # fmt: skip
    if of.ratchets:
        parts.append(("[The ratchet](#the-ratchet):", ratchet_bars(of.ratchets)))
    lines = []
    for title, found in parts:
        lines += [f"{title}\n"] if found else []
        lines += [f"- {'met' if met else '**not met**'}: {_spaced(text)}" for text, met in found]
        lines += [""] if found else []
    untold = nights_page.beyond(of.rows)
    if untold:
        lines += [nights_page.WHY.format(reds=nights_page.REDS).strip(), "", *untold]
    return "\n".join(lines)


def _opening(found: Findings) -> str:
    return f"""
# How good the gate is

A simulation of the gate: night after night on several kinds of runners, and beside the rules of
other tools on the same random draws. Every figure on this page was printed by

    {found.command}

which also writes this page and the plot with `--out docs/explanation/gate-quality.md`. It needs
nothing but the project and numpy, and gives the same figures for the same seeds.
"""


def _main(study: Study) -> list[str]:
    n, sessions = study.setting
    rate = study.mean("ours, fresh", 1.0, 0.0)
    return [
        f"""
## Beside other tools

One test at a time, {n} iterations, {sessions} runs of one session each, {study.trials:,} trials per
model. The gate is used in a form that judges many trials at once; {study.checked:,} of its verdicts
were compared with the package's, with runs of several sessions, after accepts and on machines that
moved: outcomes are the same, limits agree to 1e-9.

- A **trial** is a baseline of some runs of some iterations each, and a candidate session that is
  slower by a known share, or not at all. A session is one process.
- A **false alarm** is an unchanged test that fails, `REGRESSED` or `TOO_NOISY`. Brackets hold the
  95 % Wilson interval.
- **found at 5 %** is the share of 5 % regressions that fail as `REGRESSED`.
- `pytest --ttnn-perf` measures a suspect again, up to twice (`--ttnn-perf-confirm 2`, the default),
  each time in a new process. A **fresh** confirm draws the session's part of the noise anew. A
  confirm **in the same job** keeps all of it: the figure to expect where the new process inherits
  the state of the host that misled the first one. Real hosts lie between the two. **No confirms**
  is `--ttnn-perf-confirm 0`, or a run record without `confirmations`.
- There are no controls here: these trials are of single tests.
- Which models are averaged decides the averages. Read them as a ranking on equal terms and an order
  of magnitude, not as a forecast for one machine.

The limit lies further out than that of the gate before, which took what confirm passes in the same
job measure for new evidence. It found 53 % of regressions of 3 % and 87 % of those of 5 % in these
trials, with 0.025 % false alarms, and 0.690 % where confirms share the job; nightly, on a host that
misleads all processes of a night, it failed unchanged tests [by the dozen](#night-after-night).
The bar for 5 % regressions was 80 %, and none was held for confirms in the same job.
""",
        _SHIPPED,
        tables.as_shipped(study),
        _MODELS,
        tables.by_model(study),
        f"""
### At equal false-alarm rate

Each rule's threshold is set, on these very trials, so that its mean false-alarm rate is this gate's
{100 * rate:.3f} %: the best that one threshold for all tests can do. In per cent, mean over all
models. No peer measures again, and part of this gate's lead rests on that, as its own row without
confirms shows. The last two rows are no tool's rule: a centre over all runs and fresh confirms,
without a limit that follows each test's noise. Such a margin finds large regressions at least as
well, and misses small ones.
""",
        tables.at_equal_rate(study),
        "![Power at equal false-alarm rate](gate-quality.svg)",
    ]


_SHIPPED = """
### Rules as shipped

Mean over all models, in per cent. pytest-benchmark, asv, benchstat and Criterion compare with the
last session alone; Bencher and tt-metal with the means of all of them. Thresholds are those the
tool ships or its documentation shows, or usual ones where it has none (pytest-benchmark). asv and
benchstat: exact Mann-Whitney. Criterion: the lower end of the 95 % bootstrap interval of the ratio.
Bencher: mean + t · standard deviation, median + 3 · IQR. tt-metal also fails what is faster.
"""

_MODELS = """
### By noise model

This gate, in per cent; "measured again" is a number per test. A false gain is an unchanged test
that is `IMPROVED` after two fresh confirms.
"""

_SIZES = """
### Other sizes

In per cent. The best peer is the one that finds most 5 % regressions at the false-alarm rate of
this gate with 2 fresh confirms. What must hold is held at 10 iterations and 10 runs of one session.
"""

_LIMITS = """
## How many sessions

The limit for a wall time, by how many runs the baseline has seen, one session each, and how much
runs really differ (standard deviation): the median of 20,001 random baselines with next to no noise
within a session. Sessions of one run count as one: they share the state of their machine.
"""

_WILD = """
## One wild session

A baseline keeps its runs, so it also keeps one that went wrong. Here 1 session in 50 takes 1.3
times as long, beside 1 % within and 1 % between sessions; 10 iterations, 20 runs of one session, 2
fresh confirms, in per cent. As shipped, a far run counts in the spread only as far as 2.5 robust
deviations; the furthest lifts no limit, two lift it to 4 % at most, three to 20 % at most. The
other rows: without that lift, and with a spread in which every run counts as far out as it is.
"""

_RATCHET = """
## The ratchet

{nights} nights of `--ttnn-perf-update`, judged and planned by the package itself: sessions are
appended up to 20 after the last accept, a gain is accepted after two fresh confirms. {walks:,}
tests per model, with unchanged code and with code that grows slower by 0.1 % each night. The
centre's distance from where the test truly began is in per cent: median (lowest to highest). A slow
drift must fail once it adds up, and the centre must not follow it: there a walk ends when it is
caught. Failed nights are in per cent. Nights are independent of each other here, without controls;
[above](#night-after-night) they are not. Without a walking host, in which the test
itself moves.
"""
