"""The findings as a page of Markdown, one section per kind of work."""

from __future__ import annotations

import re
import textwrap
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.quality.study import wilson
from benchmarks.quality.tables import table
from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.records.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.e2e.results import Attempt, Findings, Tested

TITLES: Final = {
    "device": "Waiting for a device",
    "compute": "Computing on the host",
    "neighbour": "Beside a neighbour that begins in the middle of the run",
}
_WORDS: Final = {
    "device": """\
Each call starts an operation on a stand-in for an accelerator and waits until it is done,
as a host thread waits for a real one. The device times are constants.""",
    "compute": """\
Each call computes a number of rounds of PBKDF2 on one core. The number is set once, from the
processor time of a few calls before the baseline is recorded, and stays the same from then on. This
needs processors that are otherwise idle. Where other processes take turns on them, unchanged work
does take longer, sessions of the baseline differ by as much, and the bars are missed: read the
figures beside the share that others took.""",
    "neighbour": """\
Calls that wait 20 ms for a stand-in of a device and hash on the host for about a millisecond,
recorded on a quiet machine. In every run that counts, one busy process per processor begins at some
moment between 20 % and 80 % of the time that a quiet run takes, and stays until the run ends: tests
before it are as fast as ever, the host's part of those after it is slower, and so it is in all that
is measured again. An unchanged run may end with exit code 6, for the machine is slower as a whole;
no test may fail.
""",
}
_OPENING: Final = """\
# End to end

The real `pytest --ttnn-perf`, in real processes, on tests that do a known amount of work: does the
test that does more fail by its name, and do those that do the same pass? `benchmarks/end_to_end.py`
measured every figure on this page and wrote it; the command stands above each set of figures.
Another machine, or another hour, gives other figures.

- In a temporary project, `ttnn-perf calibrate --write` records a first run, and
  `pytest --ttnn-perf --ttnn-perf-update` some more. Then come runs of `pytest --ttnn-perf` with all
  settings at their defaults, **changed** and **unchanged** in random order. In a changed run one of
  the tests, drawn at random, does more work.
- Outcomes come from the run records, never from printed text; exit code and JUnit report of pytest
  must agree with them.
- A **first alarm** is a test that the gate would have failed on its first measurement: the record
  judged again without its confirm passes, as with `--ttnn-perf-confirm 0`. A **cleared** suspect is
  one that confirm passes took that back of.
- Brackets hold a 95 % bound: the rule of three (3 / N) for none of N, Wilson's interval otherwise.

What it shows: the parts work together, from the test's process to the exit code, and they do so
again and again, at the noise of the machine that the figures come from. What it does not show: how
small a change is found, and how rare false alarms are beyond the bound in brackets. The bounds take
every test for independent, but tests of one run, and runs of one hour, share the state of their
machine. [How good the gate is](gate-quality.md) goes further, by simulation. And there is no
accelerator here: a real one has noise of its own.
"""


def section(found: Findings) -> str:
    """Return the section of one kind of work."""
    bars = [f"- {'met' if met else '**not met**'}: {_spaced(t)}" for t, met in found.bars()]
    parts = [
        f"## {TITLES[found.kind]}",
        _WORDS[found.kind],
        f"    {found.command}",
        _machine(found),
        _filled(found.note),
        "What must hold:",
        "\n".join(bars),
        _counts(found).rstrip() if found.attempts else "",
        _noise(found).rstrip() if found.calibration else "",
        _wrong(found.attempts),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def page(found: Findings, existing: str = "") -> str:
    """Return the page; the section of other work is kept as the ``existing`` page has it."""
    sections = {**_sections(existing), found.kind: section(found)}
    return "\n".join([_OPENING, *(sections[kind] for kind in TITLES if kind in sections)])


def _sections(text: str) -> dict[str, str]:
    found = {}
    for kind, title in TITLES.items():
        match = re.search(rf"^## {title}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        if match:
            found[kind] = match[0].rstrip() + "\n"
    return found


def _machine(found: Findings) -> str:
    environments = [each.environment for each in found.attempts if each.environment]
    if not environments:
        return ""
    loads = sorted(each.load_1m for each in environments if each.load_1m is not None)
    first = environments[0]
    machine = f"{first.python}, pytest {first.pytest}, {first.cpu_count} processors"
    if loads:
        machine += f"; load when runs began {loads[0]:.1f} to {loads[-1]:.1f}"
    others = [each.ran.others for each in found.attempts if each.ran.others is not None]
    if others:
        machine += (
            f"; other processes kept {median(others):.0%} of all processors busy during a run "
            f"(median; {min(others):.0%} to {max(others):.0%})"
        )
    return _filled(f"{machine}. {_seconds(found)}")


def _seconds(found: Findings) -> str:
    texts = [f"The baseline took {found.calibration_s:.0f} s"]
    for name, changed in (("an unchanged run", False), ("a changed one", True)):
        seconds = [each.ran.seconds for each in found.runs(changed=changed)]
        if seconds:
            texts.append(f"{name} {median(seconds):.1f} s (median)")
    return ", ".join(texts) + "."


def _counts(found: Findings) -> str:
    """Count outcomes by what the tests did."""
    groups = (found.tests(slowed=True), found.tests(slowed=False))
    head = ["tests", f"{found.more:.0%} more work".replace("%", " %"), "the same work"]
    rows = [
        ["measured and judged", *(str(len(group)) for group in groups)],
        ["failed", *(_rate(sum(t.failed for t in group), len(group)) for group in groups)],
        [
            "first alarms: failed without confirms",
            *(_rate(sum(t.failed_alone for t in group), len(group)) for group in groups),
        ],
        ["cleared by a confirm pass", *(str(sum(t.cleared for t in g)) for g in groups)],
    ]
    for outcome in Outcome:
        counts = [sum(t.outcome is outcome for t in group) for group in groups]
        always = outcome in {Outcome.TOO_NOISY, Outcome.NO_DATA}
        if any(counts) or always:
            rows.append([f"`{outcome.value}`", *map(str, counts)])
    rows.append(["first change, lowest to highest", *map(_changes, groups)])
    runs = [
        ["runs", "changed", "unchanged"],
        *(
            [name, *(str(sum(map(holds, found.runs(changed=c)))) for c in (True, False))]
            for name, holds in (
                ("ended as they must", _is_right),
                ("would have failed a test of the same work without confirms", _is_alarm),
                ("environment shifted", _is_shifted),
            )
        ),
    ]
    note = "" if len(found.calibration) >= DEFAULT_POLICY.least_shift_tests else _NO_SHIFT
    unchanged = found.runs(changed=False)
    wrong = sum(not each.right for each in unchanged)
    first = sum(map(_is_alarm, unchanged))
    rates = (
        f"Unchanged runs that failed: {_rate(wrong, len(unchanged))}; without confirms it would "
        f"have been {_rate(first, len(unchanged))}."
    )
    return f"{table(head, rows)}\n{table(runs[0], runs[1:])}\n{_filled(rates + note)}"


_NO_SHIFT: Final = " Of so few tests the gate never says that the environment shifted."


def _noise(found: Findings) -> str:
    """Tell what the baseline says of each test."""
    head = [
        "baseline of", "median", "noise within a session", "between sessions", "limit",
        "smallest change caught in 80 % of runs (estimate)",
    ]  # fmt: skip
    rows = [
        [
            f"`{row['test'].rpartition('::')[2]}`, {row['sessions']} sessions",
            f"{row['median'] / 1e6:.2f} ms",
            *(_percent(row[name]) for name in ("within_sd", "between_sd", "limit")),
            _percent(row["smallest_caught"]),
        ]
        for row in found.calibration
    ]
    return table(head, rows)


def _wrong(attempts: Sequence[Attempt]) -> str:
    """List the runs that went wrong, those that went wrong alike together."""
    words: dict[str, list[str]] = {}
    for number, each in enumerate(attempts, start=1):
        if not each.right:
            kind = "changed" if each.slowed else "unchanged"
            words.setdefault(f"{kind}: {_spaced(each.words)}", []).append(str(number))
    if not words:
        return ""
    lines = [f"- {text} (run {', '.join(numbers)})" for text, numbers in words.items()]
    return "\n".join(["Runs that did not end as they must:\n", *lines])


def _is_right(attempt: Attempt) -> bool:
    return attempt.right


def _is_alarm(attempt: Attempt) -> bool:
    return any(t.failed_alone and not t.slowed for t in attempt.tests)


def _is_shifted(attempt: Attempt) -> bool:
    return attempt.shift is not None


def _changes(tests: Sequence[Tested]) -> str:
    changes = [t.change for t in tests if t.change is not None]
    return f"{_signed(min(changes))} to {_signed(max(changes))}" if changes else "–"


def _rate(count: int, total: int) -> str:
    if not total:
        return "–"
    low, high = wilson(count / total, total)
    bound = f"{low:.1%} to {high:.1%}" if count else f"at most {min(3 / total, 1):.1%}"
    return f"{count} of {total} ({_spaced(bound)})"


def _percent(fraction: float | None) -> str:
    return "–" if fraction is None else _spaced(f"{fraction:.2%}")


def _signed(fraction: float) -> str:
    return _spaced(f"{fraction:+.2%}")


def _filled(text: str) -> str:
    # A number and its per cent sign stay on one line.
    return _spaced(textwrap.fill(text.replace(" %", "%"), 96))


def _spaced(text: str) -> str:
    return re.sub(r"(?<=\d)%", " %", text)
