"""Power curves at equal false-alarm rate, as a small SVG written by hand."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from benchmarks.quality.tables import equal_rows
from benchmarks.quality.trials import ABLATIONS, OURS

if TYPE_CHECKING:
    from benchmarks.quality.study import Study

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 56, 300, 40, 48
COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#994455",
    "#004488", "#bb5566", "#117733", "#555555",
)  # fmt: skip

#: A legend is sorted: "the same" would not follow what it refers to.
ABLATION_NAMES = {ABLATIONS["flat, fresh"]: "flat margin, all sessions, 2 fresh confirms"}


def power_curves(study: Study) -> str:
    """Draw what share of regressions is found, by their size, averaged over the models."""
    ours = [study.mean("ours, fresh", 1.0, effect) for effect in study.effects]
    curves = [(OURS["ours, fresh"], ours)]
    peers = [
        (label, powers) for label, threshold, powers in equal_rows(study) if threshold is not None
    ]
    at = study.effects.index(0.05)
    curves += sorted(peers, key=lambda curve: -curve[1][at])
    parts = [*_frame(study.effects)]
    colours = cycle(COLOURS)
    for number, (label, powers) in enumerate(curves):
        # Black is this gate: thick as shipped, thin without confirms.
        colour = "#000000" if label in OURS.values() else next(colours)
        points = " ".join(
            f"{_x(effect, study.effects):.1f},{_y(power):.1f}"
            for effect, power in zip(study.effects, powers, strict=True)
        )
        stroke = f'stroke="{colour}" stroke-width="{1.6 if number else 3.5}"'
        # Dashed: no tool's rule.
        stroke += ' stroke-dasharray="5 4"' if label in ABLATIONS.values() else ""
        y = TOP + 14 + 22 * number
        x = WIDTH - RIGHT + 16
        name = ABLATION_NAMES.get(label, label).replace("<", "&lt;")
        parts += [
            f'<polyline points="{points}" fill="none" {stroke}/>',
            f'<line x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}" {stroke}/>',
            f'<text x="{x + 28}" y="{y}">{name}</text>',
        ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">'
    )
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join([head, background, *parts, "</svg>", ""])


def _frame(effects: tuple[float, ...]) -> list[str]:
    right = WIDTH - RIGHT
    parts = [
        f'<text x="{LEFT}" y="22" font-size="14">'
        "Regressions found, % (mean over the noise models, equal false-alarm rate)</text>",
        f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">'
        "regression, %</text>",
    ]
    for power in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        y = _y(power)
        parts += [
            f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{power * 100:.0f}</text>',
        ]
    parts += [
        f'<text x="{_x(effect, effects):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
        f"{effect * 100:.0f}</text>"
        for effect in effects
    ]
    return parts


def _x(effect: float, effects: tuple[float, ...]) -> float:
    return LEFT + (WIDTH - RIGHT - LEFT) * effect / effects[-1]


def _y(power: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * power
