"""The report: the same text on the terminal and on the documentation page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.quality import peers, tables

if TYPE_CHECKING:
    from benchmarks.quality.ratchet import Ratchet
    from benchmarks.quality.study import Study

#: What the gate must show at 10 iterations and 10 sessions, averaged over the models.
MEAN_ALARMS, WORST_ALARMS, POWER_5, POWER_10 = 0.0005, 0.002, 0.80, 0.99


@dataclass
class Findings:
    """What has been simulated so far; the first study is the main one."""

    command: str
    studies: list[Study] = field(default_factory=list)
    ratchets: list[Ratchet] = field(default_factory=list)
    walks: int = 0


def page(found: Findings) -> str:
    """Return the report of what has been found so far."""
    studies = [study for study in found.studies if study.results]
    parts = [_opening(found)]
    if studies:
        parts += _main(studies[0])
    if studies[1:]:
        parts += ["## Other sizes", "In per cent.", tables.sizes(studies[1:])]
    if found.ratchets:
        parts += [_RATCHET.format(walks=found.walks), tables.ratchets(found.ratchets)]
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


def _ahead(study: Study) -> tuple[str, bool]:
    closest, behind = "", []
    lead = 1.0
    names = set(peers.FAMILIES.values())
    for label, threshold, powers in tables.equal_rows(study):
        if threshold is None or label not in names:
            continue
        leads = [
            study.mean("ours, fresh", 1.0, effect) - powers[study.effects.index(effect)]
            for effect in tables.SHOWN
        ]
        behind += [label] if min(leads) <= 0 else []
        if leads[2] < lead:
            lead, closest = leads[2], label
    text = (
        "ahead of every peer at equal false-alarm rate, at 2, 3, 5 and 10 %; "
        f"closest at 5 %: {closest}, {100 * lead:.1f} points behind"
    )
    return (text, True) if not behind else (f"{text}; not ahead of {', '.join(behind)}", False)


def _spaced(text: str) -> str:
    return text.replace(" %", "%").replace("%", " %")


def bar_lines(study: Study) -> str:
    """Return the bars over all models, and over the plain ones alone."""
    lines = []
    for title, part in (
        ("all models", study),
        ("the basic models alone, the first", study.basic()),
    ):
        if part.results:
            lines.append(f"Over {title} ({len(part.results)} of them):\n")
            lines += [
                f"- {'met' if met else '**not met**'}: {_spaced(text)}" for text, met in bars(part)
            ]
            lines.append("")
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
- A **fresh** confirm is a new process: it draws the session's part of the noise anew. A confirm
  **in the same job** keeps all of it: the figure to expect where a new process inherits the state
  of the host that misled the first one. The gate takes confirms from a run record
  (`confirmations`); `pytest --ttnn-perf` does not make any yet: **no confirms** is its figure.
- Which models are averaged decides the averages. Read them as a ranking on equal terms and an order
  of magnitude, not as a forecast for one machine.
"""


def _main(study: Study) -> list[str]:
    n, sessions = study.setting
    rate = study.mean("ours, fresh", 1.0, 0.0)
    return [
        f"""
## What must hold

{n} iterations, {sessions} sessions, 2 fresh confirms, {study.trials:,} trials per model. The
simulation uses a form of the gate that judges many trials at once; {study.checked:,} of its
verdicts were compared with the package's: outcomes are the same, limits agree to 1e-9.
""",
        bar_lines(study),
        _SHIPPED,
        tables.as_shipped(study),
        _MODELS,
        tables.by_model(study),
        f"""
## At equal false-alarm rate

Each rule's threshold is set, on these very trials, so that its mean false-alarm rate is this gate's
{100 * rate:.3f} %: the best that one threshold for all tests can do. In per cent, mean over all
models. The last two rows are no tool's rule; they show what a centre over all sessions and fresh
confirms give without a limit that follows each test's noise.
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

_RATCHET = """
## The ratchet

250 nights of `--ttnn-perf-update`, judged and planned by the package itself: sessions are appended
up to 20 after the last accept, a gain is accepted after two fresh confirms. {walks} tests per
model, with unchanged code and with code that grows slower by 0.1 % each night. The centre's
distance from where the test truly began is in per cent: median (lowest to highest). A slow drift
must fail once it adds up, and the centre must not follow it. Failed nights are in per cent.
Without the model of a walking host, in which the test itself moves.
"""
