"""Student's t quantile for whole degrees of freedom, without scipy."""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=256)
def t_quantile(probability: float, degrees: int) -> float:
    """Return the value that a t variable stays below with ``probability`` (0.5 to 1, open).

    Newton's method, held in a bracket, on the exact distribution function, which is a finite sum
    for whole ``degrees``; correct to about 1e-12.
    """
    if not 0.5 < probability < 1 or degrees < 1:
        message = f"no quantile for probability {probability}, degrees of freedom {degrees}"
        raise ValueError(message)
    # One degree has a closed form, and more degrees lie below it.
    low, high = 0.0, math.tan(math.pi * (probability - 0.5))
    value = high
    for _ in range(200):
        excess = _distribution(value, degrees) - probability
        low, high = (low, value) if excess > 0 else (value, high)
        density = _density(value, degrees)
        newton = value - excess / density if density else low
        # Far out, the density says nothing of where the quantile lies: halve instead.
        after = newton if low < newton < high else (low + high) / 2
        if abs(after - value) < 1e-14 * max(1.0, value):
            break
        value = after
    return value


def _density(t: float, degrees: int) -> float:
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    scale = math.exp(log_scale) / math.sqrt(degrees * math.pi)
    return float(scale * (1 + t * t / degrees) ** (-(degrees + 1) / 2))


def _distribution(t: float, degrees: int) -> float:
    """Abramowitz and Stegun 26.7.3 and 26.7.4: P(T < t) for t > 0."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    inside = math.sin(angle) * total
    return 0.5 + ((angle + inside) / math.pi if odd else inside / 2)
