"""What the nights showed, as Markdown: the table to read first, what must hold, all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.quality.nights import GATES, Row
from benchmarks.quality.runners import GROUPS
from benchmarks.quality.tables import often, table

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The most false reds in a month of 200 tests.
REDS = 1.5
#: The most unchanged runs of five tests that may end with exit code 6.
EXIT_6 = 0.005
#: Regressions of 10 % and of 5 % that must be found where noise is about 1 %.
POWER_10, POWER_5 = 0.98, 0.80

OURS, BEFORE = GATES


def first_table(rows: Sequence[Row]) -> str:
    """Return what a maintainer reads in a minute."""
    head = [
        "runner", "false reds a month", "before", "nights with exit 6",
        "smallest regression found, 80 / 95 %", "what to do",
    ]  # fmt: skip
    lines = [
        [
            row.runner.name,
            _brief(row.reds_a_month()[0]),
            _brief(row.reds_a_month(BEFORE)[0]),
            f"{often(row.share(OURS, 'exit_6'))} %",
            f"{_size(row.smallest_found(0.8))} / {_size(row.smallest_found(0.95))}",
            row.runner.advice,
        ]
        for row in rows
        if row.runner.advice
    ]
    return table(head, lines)


def all_rows(rows: Sequence[Row]) -> str:
    """Return every row, by what is the matter on its runner; each gate a line."""
    head = [
        "runner", "gate", "false reds a month", "too noisy", "test-nights", "exit 6, %",
        "found at 3 %", "at 5 %", "at 10 %", "80 / 95 % found from",
        "measured again a night", "gains taken",
    ]  # fmt: skip
    parts = []
    for group in GROUPS:
        lines = []
        for row in rows:
            if row.runner.group == group:
                lines += [_line(row, gate) for gate in GATES]
        if lines:
            parts.append(f"### {group}\n\n{table(head, lines)}")
    return "\n".join(parts)


def _line(row: Row, gate: str) -> list[str]:
    counts, (mean, low, high) = row.counts[gate], row.reds_a_month(gate)
    return [
        row.runner.name if gate == OURS else "",
        "this" if gate == OURS else "before",
        f"{mean:.2f} ({low:.2f}–{high:.2f})",
        str(counts.noisy),
        f"{row.test_nights:,}" if gate == OURS else "",
        f"{100 * row.share(gate, 'exit_6'):.2f}",
        *(often(row.power(effect, gate)) for effect in (0.03, 0.05, 0.10)),
        f"{_size(row.smallest_found(0.8, gate))} / {_size(row.smallest_found(0.95, gate))}",
        f"{counts.again / counts.nights:.1f}",
        str(counts.gains),
    ]


def bars(rows: Sequence[Row]) -> list[tuple[str, bool]]:
    """Return what must hold on every runner on which it can be told at all."""
    found: list[tuple[str, bool]] = []
    told = {row.runner.name: row.reds_a_month()[0] for row in rows if row.runner.can_be_told}
    if told:
        text = f"at most {REDS:g} false reds in a month of 200 tests"
        found.append(_held(text, told, {n: x for n, x in told.items() if x > REDS}, "{:.2f}"))
    five = {
        row.runner.name: row.share(OURS, "exit_6")
        for row in rows
        if row.runner.tests == 5 and row.runner.is_calm
    }
    if five:
        text = f"at most {EXIT_6:.1%} of unchanged runs of 5 tests end with exit code 6"
        found.append(_held(text, five, {n: x for n, x in five.items() if x > EXIT_6}, "{:.2%}"))
    for effect, least in ((0.10, POWER_10), (0.05, POWER_5)):
        powers = {row.runner.name: row.power(effect) for row in rows if row.runner.promises_power}
        if powers:
            text = f"at least {least:.0%} of {effect:.0%} regressions are found where noise is "
            text += "about 1 % and ten runs have shown it"
            fewer = {n: x for n, x in powers.items() if x < least}
            found.append(_held(text, powers, fewer, "{:.1%}"))
    return found


def _held(
    text: str, values: dict[str, float], broken: dict[str, float], form: str
) -> tuple[str, bool]:
    """Return a target, on how many runners it holds, and where it does not."""
    text += f": on {len(values) - len(broken)} of {len(values)} kinds of runners"
    if broken:
        listed = "; ".join(f"{name}: {form.format(value)}" for name, value in broken.items())
        text += f"; not on these: {listed}"
    elif values:
        text += f" ({form.format(min(values.values()))} to {form.format(max(values.values()))})"
    return text, not broken


def beyond(rows: Sequence[Row]) -> list[str]:
    """Return a line for each runner on which no measurement of the same night can tell."""
    lines = []
    for row in rows:
        if not row.runner.can_be_told:
            reds = row.reds_a_month()[0]
            word = "met" if reds <= REDS else "**not met**"
            before = row.reds_a_month(BEFORE)[0]
            lines.append(f"- {word}: {row.runner.name}: {reds:.2f} (before: {before:.0f})")
    return lines


def assumptions(nights: int, seeds: Sequence[int], checked: int) -> str:
    """Say what the figures stand on; ``checked`` is how many tests the package judged too."""
    listed = ", ".join(map(str, seeds))
    return _ASSUMPTIONS.format(nights=nights, seeds=listed, checked=f"{checked:,}")


def _brief(reds: float) -> str:
    return f"{reds:.1f}" if reds < 10 else f"{reds:.0f}"


def _size(effect: float | None) -> str:
    return "above 20 %" if effect is None else f"{100 * effect:.1f} %"


FIRST = """
## In a minute

Which line is your runner? `ttnn-perf calibrate` on several days tells by how much processes and
nights differ. **False reds a month** are unchanged tests that fail, in 30 nightly runs of 200
tests; **before** is the previous gate on the same draws. On **nights with exit 6** the gate found
the machine slower and named no test. The last figures are how slow a test must have become to be
named on 80 % and on 95 % of nights.
"""

_ASSUMPTIONS = """
What these figures stand on:

- Suites of 200 tests with one wall time each, unless a row says otherwise; 10 samples of 1 % noise
  in a session, some 0.3 s a test; processes differ by 1 % (by 0.5 % where tests are off for a
  night). Ten nights are recorded, then {nights} nights are gated with `--ttnn-perf-update`: what is
  within its limit is appended up to 20 sessions, gains are accepted. All noise is normal unless a
  row says otherwise.
- What is **off for a night** is off in every process of that night, confirm passes and controls
  included; "0.7 of it stays" is the correlation with the next night. What processes differ by is
  drawn anew for each. Timings of one test share half of the variance. What happens from some test
  on, or for the last tenth, is there in all confirm passes too.
- A red test stays red in the next nights if its deviation does: each night counts.
- Regressions are tried in one test per suite, drawn at random, on every second night, and are
  forgotten afterwards. All timings of the test are slower.
- A suite of one test has no controls: nothing there tells the machine from the test.
- Runners are seeded with {seeds}. The constants of the gate were chosen with other seeds.
- The simulation judges whole suites at once. On {checked} tests of small suites it was held against
  the package's own run: the same tests fail, the same shifts are believed, the same results are
  written.
"""

WHY = """
Where a test's own deviation lasts the whole night and is 1 % or more, the target may be missed, and
no constant of the gate would help: every process of that night measures the same, and no control
shares it, so no measurement of that night can tell it from a regression. Only other nights can.
What helps: baselines recorded over weeks and not in one row of nights, so that they have seen how
far such a test wanders (the row "a run a week"); device times instead of wall times; a `tolerance`
for such a test; and `ttnn-perf ab`, which runs both versions in the same hour. False reds in a
month of 200 tests there (the target is {reds:g}):
"""

DETAILS = """
## Night after night

Per kind of runner, this gate and the one before it on the same draws. False reds with their 95 %
interval, by suites where these differ; "too noisy" counts those that fail as `TOO_NOISY`, which a
test then does every night until it is recorded anew. "Measured again" are tests in confirm passes,
controls included, per run. "Gains taken" are unchanged tests whose lucky runs became the new
centre, of all test-nights. The previous gate took a session for its unit, had a limit at Student's
t of 95 %, let a test fail if three measurements were beyond it, had no controls, and let the
furthest timing of five tests vote for a shift.
"""
