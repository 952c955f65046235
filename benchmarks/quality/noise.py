"""Noise models: what a session of n iterations measures on machines of several characters.

A session is one process; what shifts it is constant within it. Times are log-additive:

    ln time = sigma·e + ln outlier + ln mode + trend + session shift + walk

A fresh re-measurement draws the session's part anew; one in the same job keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from benchmarks.quality import Array

#: What one iteration takes without noise, in ns: a millisecond, far above any absolute floor.
BASE_NS = 1e6


@dataclass(frozen=True)
class Noise:
    """One noise model; what is not given is off."""

    name: str
    words: str
    sigma: float
    tails: Literal["normal", "t3", "exponential"] = "normal"
    ar: float = 0.0
    p_out: float = 0.0
    out_mul: float = 1.0
    session_sd: float = 0.0
    #: Share of sessions that are slower as a whole, and by what factor.
    p_slow: float = 0.0
    slow: float = 1.0
    #: Share of iterations that run in a second, slower mode, and by what factor.
    p_mode: float = 0.0
    mode: float = 1.0
    #: A session grows slower from its first to its last iteration by this times a half-normal.
    drift: float = 0.0
    #: The first iteration is slower by this; it halves about every second iteration.
    warm_up: float = 0.0
    #: The host itself walks by this from session to session; re-measuring does not undo it.
    walk: float = 0.0
    device: bool = False
    #: One of the plain models that the gate's formulas were first tried on.
    basic: bool = False


MODELS = (
    Noise("iid 1 %", "independent iterations", 0.01, basic=True),
    Noise("iid 3 %", "independent iterations", 0.03, basic=True),
    Noise("heavy tail 1 %", "5 % of iterations take 1.5×", 0.01, p_out=0.05, out_mul=1.5,
          basic=True),
    Noise("heavy tail 3 %", "5 % of iterations take 1.5×", 0.03, p_out=0.05, out_mul=1.5,
          basic=True),
    Noise("session 1 %", "sessions differ by sd 1 %", 0.01, session_sd=0.01, basic=True),
    Noise("session 2 %", "sessions differ by sd 2 %", 0.01, session_sd=0.02, basic=True),
    Noise("AR(0.7) 2 %", "autocorrelated iterations", 0.02, ar=0.7, basic=True),
    Noise("device kernel", "0.3 % within, 0.5 % between sessions; source `device`", 0.003,
          session_sd=0.005, device=True, basic=True),
    Noise("AR(0.9) + session", "strongly autocorrelated 2 %, sessions sd 1 %", 0.02, ar=0.9,
          session_sd=0.01),
    Noise("t3 tails 1 %", "Student's t with 3 degrees within the session", 0.01, tails="t3"),
    Noise("exponential 3 %", "one-sided noise: never faster than the floor", 0.03,
          tails="exponential"),
    Noise("bad host", "5 % of sessions are 6 % slower", 0.01, p_slow=0.05, slow=1.06),
    Noise("bimodal iterations", "30 % of iterations take 1.04×", 0.01, p_mode=0.3, mode=1.04),
    Noise("bimodal sessions", "30 % of sessions are 3 % slower", 0.01, p_slow=0.3, slow=1.03),
    Noise("drift within", "grows slower within it by 2 % times a half-normal", 0.01, drift=0.02),
    Noise("warm-up", "first iteration 10 % slower, decaying", 0.01, warm_up=0.10),
    Noise("host walks", "the host walks by sd 0.3 % per session", 0.01, walk=0.003),
    Noise("mixture", "AR(0.5), outliers 1.3×, sessions sd 1 %, drift 1 %, 5 % bad hosts 3 %",
          0.015, ar=0.5, p_out=0.05, out_mul=1.3, session_sd=0.01, drift=0.01, p_slow=0.05,
          slow=1.03),
)  # fmt: skip

#: Now and then a session is wild: what one of them, stored for good, does to a limit. Apart from
#: the others: it shows one weakness and belongs in no average.
WILD = Noise("wild sessions", "1 in 50 takes 1.3×", 0.01, session_sd=0.01, p_slow=0.02, slow=1.3)


def draw(
    noise: Noise, chance: np.random.Generator, trials: int, places: tuple[int, ...], n: int
) -> Array:
    """Return times of (trials, sessions, n) in ns.

    ``places`` tells for each session which draw of the session's part it has: equal places share
    it, as re-measurements in one job do.
    """
    where = np.asarray(places)
    shape = (trials, int(where.max()) + 1)
    own = noise.session_sd * chance.standard_normal(shape)
    if noise.p_slow:
        own += np.where(chance.random(shape) < noise.p_slow, np.log(noise.slow), 0.0)
    trend = noise.drift * np.abs(chance.standard_normal(shape)) if noise.drift else None
    logs = _iterations(noise, chance, (trials, len(places), n))
    logs += own[:, where, None]
    if trend is not None:
        logs += trend[:, where, None] * np.linspace(0.0, 1.0, n)
    if noise.warm_up:
        logs += np.log1p(noise.warm_up * 0.5 ** (np.arange(n) / 2))
    return BASE_NS * np.exp(logs)


def walked(
    noise: Noise, chance: np.random.Generator, times: Array, steps: tuple[int, ...]
) -> Array:
    """Add the host's walk; ``steps`` tells for each session at which step it was measured."""
    if not noise.walk:
        return times
    where = np.asarray(steps)
    path = chance.standard_normal((times.shape[0], int(where.max()) + 1)).cumsum(axis=1)
    return times * np.exp(noise.walk * path)[:, where, None]


def _iterations(noise: Noise, chance: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    if noise.tails == "t3":
        logs = chance.standard_t(3, shape)
    elif noise.tails == "exponential":
        logs = chance.exponential(size=shape)
    else:
        logs = chance.standard_normal(shape)
    if noise.ar:
        fresh = np.sqrt(1 - noise.ar**2)
        for i in range(1, shape[-1]):
            logs[..., i] = noise.ar * logs[..., i - 1] + fresh * logs[..., i]
    logs *= noise.sigma
    if noise.p_out:
        logs += np.where(chance.random(shape) < noise.p_out, np.log(noise.out_mul), 0.0)
    if noise.p_mode:
        logs += np.where(chance.random(shape) < noise.p_mode, np.log(noise.mode), 0.0)
    return logs
