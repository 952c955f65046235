"""The gate's limit for a quiet test, by the number of runs that its baseline has seen.

Runs differ by 0.2 %, as quantiles of normal noise do, and samples by 0.1 %: no chance, the same
figures every time. The first run has three sessions, as recording makes them, every other run one.
"""

from __future__ import annotations

from math import expm1
from statistics import NormalDist

from pytest_ttnn_perf.gate.judge import DEFAULT_POLICY
from pytest_ttnn_perf.gate.ratios import band_of
from pytest_ttnn_perf.records.baseline import MetricBaseline, Session
from pytest_ttnn_perf.records.metric import Metric, Source
from pytest_ttnn_perf.records.observation import NO_LIMITS

#: 18 runs are the most: 20 sessions are kept, and the first run has three.
RUNS = (1, 2, 3, 5, 10, 18)
BETWEEN_RUNS, WITHIN_SESSION = 0.002, 0.001
MEDIAN_NS = 50e6
FIRST_SESSIONS = 3
ROWS = (
    ("wall time", Source.WALL, 10),
    ("wall time, single samples", Source.WALL, 1),
    ("device time", Source.DEVICE, 3),
)


def limit(runs: int, source: Source, samples: int) -> float:
    """Return the limit of a time with so many runs of so many samples, as a fraction."""
    noise = NormalDist(0, BETWEEN_RUNS)
    sessions: list[Session] = []
    for run in range(runs):
        value = MEDIAN_NS * (1 + noise.inv_cdf((run + 0.5) / runs))
        # The median absolute deviation of normal noise; of a single sample there is none.
        mad = WITHIN_SESSION / 1.4826 * value if samples > 1 else 0.0
        count = 1 if run else FIRST_SESSIONS
        sessions += [Session(value, mad, samples, f"run-{run}")] * count
    metric = Metric("time", unit="ns", source=source)
    baseline = MetricBaseline(metric, tuple(sessions))
    return expm1(band_of(baseline, NO_LIMITS, policy=DEFAULT_POLICY).limit)


def main() -> None:
    """Print the table of docs/how-to/record-and-update-baselines.md."""
    print("| runs |", " | ".join(map(str, RUNS)), "|")
    print("|---" * (1 + len(RUNS)) + "|")
    for title, source, samples in ROWS:
        limits = (f"{limit(runs, source, samples):.1%}".replace("%", " %") for runs in RUNS)
        print(f"| {title} |", " | ".join(limits), "|")


if __name__ == "__main__":
    main()
