"""The tables of the report, as Markdown."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks.quality import peers
from benchmarks.quality.ratchet import NIGHTS
from benchmarks.quality.study import Study, wilson
from benchmarks.quality.trials import ABLATIONS, OURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.quality.ratchet import Ratchet, Walk
    from benchmarks.quality.trials import Result

SHOWN = (0.02, 0.03, 0.05, 0.10)
POWER_HEAD = [f"found at {effect:.0%}".replace("%", " %") for effect in SHOWN]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def rare(rate: float, trials: int) -> str:
    """Write a rate near zero in per cent, with its interval."""
    low, high = wilson(rate, trials)
    return f"{100 * rate:.3f} ({100 * low:.3f}–{100 * high:.3f})"


def often(rate: float) -> str:
    return f"{100 * rate:.1f}"


def rule_rows(study: Study) -> list[tuple[str, str, float]]:
    ours = [(label, family, 1.0) for family, label in OURS.items()]
    return [*ours, *peers.rules(study.setting.sessions)]


def as_shipped(study: Study) -> str:
    head = ["rule", "false alarms, mean", "worst model", *POWER_HEAD, "lowest at 5 %"]
    total = study.trials * len(study.results)
    rows = []
    for label, family, threshold in rule_rows(study):
        worst, name = study.worst(family, threshold)
        powers = [often(study.mean(family, threshold, effect)) for effect in SHOWN]
        lowest = often(min(study.rates(family, threshold, 0.05)))
        shown = rare(study.mean(family, threshold, 0.0), total)
        rows.append([label, shown, f"{100 * worst:.2f}: {name}", *powers, lowest])
    return table(head, rows)


def by_model(study: Study) -> str:
    head = [
        "noise", "in words", "false alarms, fresh", "in-job", "no confirms", *POWER_HEAD,
        "measured again, per test", "false gains", "too noisy",
    ]  # fmt: skip
    rows = []
    for index, result in enumerate(study.results):
        rates = {name: study.rates(name, 1.0, 0.0)[index] for name in OURS}
        rows.append(
            [
                result.noise.name,
                result.noise.words,
                rare(rates["ours, fresh"], study.trials),
                f"{100 * rates['ours, in-job']:.2f}",
                f"{100 * rates['ours, alone']:.2f}",
                *(often(study.rates("ours, fresh", 1.0, effect)[index]) for effect in SHOWN),
                f"{result.unchanged['extra']:.3f}",
                f"{100 * result.unchanged['gain']:.3f}",
                f"{100 * result.unchanged['noisy']:.3f}",
            ]
        )
    return table(head, rows)


def equal_rows(study: Study) -> list[tuple[str, float | None, list[float]]]:
    """Return each family at our false-alarm rate: label, threshold, power by effect."""
    rate = study.mean("ours, fresh", 1.0, 0.0)
    names = {"ours, alone": OURS["ours, alone"], **peers.FAMILIES, **ABLATIONS}
    found: list[tuple[str, float | None, list[float]]] = []
    for family, label in names.items():
        threshold = study.threshold_at(family, rate)
        powers = (
            []
            if threshold is None
            else [study.mean(family, threshold, effect) for effect in study.effects]
        )
        found.append((label, threshold, powers))
    return found


def at_equal_rate(study: Study) -> str:
    """Compare at one false-alarm rate; a family that cannot be that strict has no figures."""
    ours = [often(study.mean("ours, fresh", 1.0, effect)) for effect in SHOWN]
    rows = [[OURS["ours, fresh"], "as shipped", *ours]]
    for label, threshold, powers in equal_rows(study):
        if threshold is None:
            rows.append([label, "cannot be that strict", *["–"] * len(SHOWN)])
            continue
        shown = [often(powers[study.effects.index(effect)]) for effect in SHOWN]
        rows.append([label, f"{threshold:.4g}", *shown])
    return table(["rule", "threshold", *POWER_HEAD], rows)


def best_peer(study: Study) -> tuple[str, float, list[float]]:
    """Return the peer that finds most 5 % regressions at our false-alarm rate."""
    at, names = study.effects.index(0.05), set(peers.FAMILIES.values())
    able = [
        (label, threshold, powers)
        for label, threshold, powers in equal_rows(study)
        if threshold is not None and label in names
    ]
    return max(able, key=lambda row: row[2][at])


def sizes(studies: Sequence[Study]) -> str:
    head = ["iterations, sessions", "rule", "false alarms, mean", "worst model", *POWER_HEAD]
    rows = []
    for study in studies:
        total = study.trials * len(study.results)
        place = f"{study.setting.n}, {study.setting.sessions}"
        for family, label in OURS.items():
            worst, name = study.worst(family, 1.0)
            rows.append(
                [
                    place,
                    label,
                    rare(study.mean(family, 1.0, 0.0), total),
                    f"{100 * worst:.2f}: {name}",
                    *(often(study.mean(family, 1.0, effect)) for effect in SHOWN),
                ]
            )
        label, _, powers = best_peer(study)
        shown = [often(powers[study.effects.index(effect)]) for effect in SHOWN]
        rows.append([place, f"best peer: {label}", "the same as the first", "", *shown])
    return table(head, rows)


def limits(found: Mapping[int, Mapping[float, float]]) -> str:
    spreads = list(next(iter(found.values())))
    head = ["runs", *(f"{100 * spread:g} %" for spread in spreads)]
    rows = [
        [str(count), *(f"{100 * limit:.1f} %" for limit in by_spread.values())]
        for count, by_spread in found.items()
    ]
    return table(head, rows)


def wild(found: Sequence[tuple[str, Result]], effects: tuple[float, ...]) -> str:
    powers = [f"found at {effect:.0%}".replace("%", " %") for effect in effects[1:]]
    rows = [
        [
            name,
            f"{100 * result.rate('ours, fresh', 1.0, 0):.2f}",
            *(often(result.rate("ours, fresh", 1.0, at)) for at in range(1, len(effects))),
        ]
        for name, result in found
    ]
    return table(["limit", "unchanged tests that fail", *powers], rows)


def ratchets(found: Sequence[Ratchet]) -> str:
    head = [
        "noise", "centre, unchanged code", "gains accepted, per test", "failed nights",
        "centre, drifting code", "first failed night", "slower by then",
    ]  # fmt: skip
    rows = []
    for each in found:
        caught = sorted(w.caught for w in each.drifting if w.caught is not None)
        first = f"{median(caught):.0f} ({len(caught)} of {len(each.drifting)})" if caught else "–"
        slower = f"{1.001 ** median(caught) - 1:.1%}".replace("%", " %") if caught else "–"
        nights = NIGHTS * len(each.unchanged)
        rows.append(
            [
                each.noise.name,
                _shifts(each.unchanged),
                f"{sum(w.accepts for w in each.unchanged) / len(each.unchanged):.2f}",
                rare(sum(w.failures for w in each.unchanged) / nights, nights),
                _shifts(each.drifting),
                first,
                slower,
            ]
        )
    return table(head, rows)


def _shifts(walks: Sequence[Walk]) -> str:
    shifts = sorted(100 * walk.shift for walk in walks)
    return f"{median(shifts):+.2f} ({shifts[0]:+.2f} to {shifts[-1]:+.2f})"
