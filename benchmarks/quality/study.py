"""All models in one setting: averages, worst cases, and thresholds at a wanted rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks.quality.trials import Result, Setting


@dataclass
class Study:
    """The results so far of one setting; models are added as they are done."""

    setting: Setting
    effects: tuple[float, ...]
    trials: int
    results: list[Result] = field(default_factory=list)

    def rates(self, family: str, threshold: float, effect: float) -> list[float]:
        """Return how often a rule fires at an effect, by model."""
        index = self.effects.index(effect)
        return [result.rate(family, threshold, index) for result in self.results]

    def mean(self, family: str, threshold: float, effect: float) -> float:
        """Return how often a rule fires at an effect, over all models."""
        return sum(self.rates(family, threshold, effect)) / len(self.results)

    def worst(self, family: str, threshold: float) -> tuple[float, str]:
        """Return the highest false-alarm rate and the model that has it."""
        rates = self.rates(family, threshold, 0.0)
        index = rates.index(max(rates))
        return rates[index], self.results[index].noise.name

    def basic(self) -> Study:
        """Return the study of the plain models alone."""
        chosen = [result for result in self.results if result.noise.basic]
        return Study(self.setting, self.effects, self.trials, chosen)

    def threshold_at(self, family: str, rate: float) -> float | None:
        """Return the least threshold whose mean false-alarm rate is at most ``rate``.

        None where the family cannot be that strict: its highest score is too common.
        """
        pooled = np.concatenate([result.scores[family][0] for result in self.results])
        allowed = math.floor(rate * pooled.size + 1e-9)
        at = pooled.size - 1 - allowed
        threshold = float(np.partition(pooled, at)[at])
        highest = float(pooled.max())
        if threshold == highest and np.isfinite(highest) and (pooled == highest).sum() > 1:
            return None
        return threshold

    @property
    def checked(self) -> int:
        """How many verdicts were compared with the package's."""
        return sum(result.checked for result in self.results)


def wilson(rate: float, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate; right near zero, where the usual one is not."""
    z = 1.959964
    centre = rate + z * z / (2 * trials)
    reach = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - reach) / scale), (centre + reach) / scale
