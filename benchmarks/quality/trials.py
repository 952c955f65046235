"""One noise model in one setting: all rules on the same draws."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.quality import Array, ours, peers
from benchmarks.quality.history import Histories
from benchmarks.quality.noise import Noise, draw, walked

CHUNK = 2000
#: Trials of each model and setting that the package judges too.
CHECKED = 10

OURS = {
    "ours, fresh": "this gate, 2 fresh confirms",
    "ours, in-job": "this gate, 2 confirms in the same job",
    "ours, alone": "this gate, no confirms",
}
#: No tool's rule: what of the gate's lead comes from where.
ABLATIONS = {
    "flat": "flat margin on the median of all runs",
    "flat, fresh": "the same, 2 fresh confirms",
}


class Setting(NamedTuple):
    """Iterations per session, and sessions in the baseline: one of each run."""

    n: int
    sessions: int


@dataclass(frozen=True)
class Result:
    """What one model gave in one setting: scores by family, each (effects, trials)."""

    noise: Noise
    scores: dict[str, Array]
    #: Per unchanged test: fresh re-measurements, TOO_NOISY, and gains that were confirmed.
    unchanged: dict[str, float]
    checked: int

    def rate(self, family: str, threshold: float, effect: int) -> float:
        """Return how often a rule fires at the effect of this index."""
        return float((self.scores[family][effect] > threshold).mean())


def run(
    noise: Noise,
    setting: Setting,
    effects: tuple[float, ...],
    *,
    trials: int,
    seed: tuple[int, ...],
    formula: ours.Formula = ours.SHIPPED,
) -> Result:
    """Simulate one model in one setting, in chunks that fit the cache."""
    parts: list[dict[str, Array]] = []
    unchanged, checked = Counter[str](), 0
    for number, start in enumerate(range(0, trials, CHUNK)):
        chance = np.random.default_rng((*seed, number))
        size = min(CHUNK, trials - start)
        history, now = _measure(noise, chance, size, setting)
        metric = ours.metric_of(device=noise.device)
        if not number:
            # The same draws, slower and faster: outcomes other than "within" must agree as well.
            checked = sum(
                ours.check(history[:CHECKED], now[:CHECKED, :3] * factor, metric, chance)
                for factor in (1.0, 1.04, 0.96)
            )
        of = ours.band(Histories.of(history), metric, formula)
        found, more = _ours(history, now, effects, of, formula)
        if formula == ours.SHIPPED:
            found |= peers.scores(history, now[:, 0], effects, chance)
        parts.append({name: score.astype(np.float32) for name, score in found.items()})
        unchanged.update(more)
    joined = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    return Result(noise, joined, {k: v / trials for k, v in unchanged.items()}, checked)


def _measure(
    noise: Noise, chance: np.random.Generator, trials: int, setting: Setting
) -> tuple[Array, Array]:
    """Return the history and what is measured now: once, twice fresh, twice in the same job."""
    stored = setting.sessions
    places = (*range(stored), stored, stored + 1, stored + 2, stored, stored)
    times = draw(noise, chance, trials, places, setting.n)
    times = walked(noise, chance, times, (*range(stored), *[stored] * 5))
    return times[:, :stored], times[:, stored:]


def _ours(
    history: Array, now: Array, effects: tuple[float, ...], of: ours.Band, formula: ours.Formula
) -> tuple[dict[str, Array], dict[str, int]]:
    """Return our scores (above 1: fails), and counts over the tests without any effect."""
    policy = formula.policy
    changes = np.log(np.median(now, axis=-1)) - of.centre[:, None]
    slower = np.log1p(np.asarray(effects))
    # A limit beyond 20 % fails an unchanged test as "too noisy"; it finds no regression.
    noisy = (of.noise > np.log1p(policy.too_noisy)) & (slower == 0)[:, None]
    found = {}
    for name, columns in (("fresh", (0, 1, 2)), ("in-job", (0, 3, 4)), ("alone", (0,))):
        taken = changes[:, columns]
        scores = np.stack([ours.fails(of, taken, effect, policy) for effect in slower])
        found[f"ours, {name}"] = np.where(noisy, np.inf, scores)
    flat = np.log(np.median(history, axis=-1))
    flat = np.log(np.median(now, axis=-1)) - np.median(flat, axis=1)[:, None]
    found["flat"] = np.expm1(flat[:, 0] + slower[:, None])
    found["flat, fresh"] = np.expm1(flat[:, :3].min(axis=1) + slower[:, None])
    suspect = changes[:, 0] > policy.screen * of.limit
    again = suspect & (changes[:, 1] > policy.agree * of.limit)
    better = [
        ours.outcomes(of, changes[:, :count], policy=policy) == ours.IMPROVED for count in (1, 2, 3)
    ]
    return found, {
        "extra": int(suspect.sum() + again.sum()),
        "noisy": int(noisy[0].sum()),
        "gain": int(np.logical_and.reduce(better).sum()),
    }
