"""Rules on several devices."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.observation import Observation
from tests.analysis.rules.cases import CLEAN, FOUND, UNKNOWN, Case, of_cases, of_ops
from tests.analysis.rules.reports import COPY, linear, placed, report
from tests.analysis.rules.tables import op, tensor

SHARED = Subject(facts={"data_parallel": True, "batch": 10})
FOUR = of_ops(*(op("Matmul", device=device) for device in range(4)))
OPENED = Observation("test_it", hardware=Hardware("wormhole_b0", "t3k", "2x2"))
SMALL = tensor(1, 1, 32, 4096)
ONE = report([linear(1, placed("1", COPY), placed("1", "PlacementShard(3)"))])
CUT = report([linear(1, placed("2", COPY), placed("2", "PlacementShard(3)"))])

CASES = [
    *(
        Case("TTP701", Subject(facts={"data_parallel": ways, name: 10}), FOUND, 2)
        for name in ("batch", "batch_size")
        for ways in (4, "4")
    ),
    Case("TTP701", replace(SHARED, ops=FOUR.ops), FOUND, 2, told="10 among 4 devices leaves 2"),
    Case("TTP701", replace(SHARED, observation=OPENED), FOUND, 2),
    Case("TTP701", SHARED, UNKNOWN, told="not known how many devices share the batch"),
    Case("TTP702", Subject(report=ONE, facts={"data_parallel": 2}), CLEAN, 0),
    Case("TTP702", Subject(report=CUT, facts={"data_parallel": 2}), FOUND, 1),
    Case(
        "TTP703",
        of_ops(
            *(
                row
                for device in (0, 1)
                for row in (
                    op("Matmul", ns=100_000.0, device=device),
                    op("AllGatherAsync", [SMALL], [SMALL], ns=10_000.0, device=device),
                )
            )
        ),
        CLEAN,
        0,
    ),
]


@of_cases(CASES)
def test_answers(case: Case) -> None:
    case.check()
