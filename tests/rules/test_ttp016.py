from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import OperationError
from tests.rules.answers import Ask, Evidence, limit, not_measured
from tests.rules.reports import Operation, report
from tests.rules.tables import op, table

ask = Ask("TTP016")
LIMIT = limit(0, "operations")
CALL = Operation(1, "ttnn.add")
NO_ROOM = (
    "Out of Memory: Not enough space to allocate 134217728 B L1 buffer across 72 banks, where each "
    "bank needs to store 1865728 B, but bank size is 1360544 B (allocated: 0 B, free: 1360544 B, "
    "largest free block: 1048576 B)."
)


def failed(reason: str | None, kind: str | None = "RuntimeError") -> OperationError:
    return OperationError(3, "ttnn.from_torch", kind, reason)


def test_what_failed_is_named_and_lack_of_memory_comes_first() -> None:
    errors = (
        OperationError(2, "ttnn.matmul", "RuntimeError", "the widths differ"),
        failed(NO_ROOM),
        OperationError(9, "ttnn::to_string", "incomplete_operation", "never completed"),
        OperationError(None, None, None, None),
    )
    assert ask(report=replace(report([CALL]), errors=errors)) == LIMIT.found(
        4.0,
        "3 operations failed, 1 for lack of memory; 1 operation did not end",
        [
            Evidence(
                "ttnn.from_torch (operation 3): out of memory: asked for 128.0 MiB of L1, "
                "1.779 MiB in each of 72 banks of 1.298 MiB; the largest free block has 1.000 MiB"
            ),
            Evidence("ttnn.matmul (operation 2): the widths differ"),
            Evidence("unnamed: no reason is given"),
            Evidence("ttnn::to_string (operation 9): never completed"),
        ],
    )


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            "Out of Memory: Not enough space to allocate 2048 B DRAM buffer across 12 banks, where "
            "each bank needs to store 1024 B",
            "out of memory: asked for 2.000 KiB of DRAM, 1.000 KiB in each of 12 banks",
        ),
        (
            "Statically allocated circular buffers on core range [(x=0,y=0) - (x=7,y=7)] grow to "
            "1623456 B which is beyond max L1 size of 1499136 B",
            "out of memory: circular buffers of 1.548 MiB in an L1 of 1.430 MiB",
        ),
        (
            "Statically allocated circular buffers in program 12 clash with L1 buffers on core "
            "range [(x=0,y=0) - (x=7,y=7)]. L1 buffer allocated at 1032192 and static circular "
            "buffer region ends at 1083392",
            "out of memory: circular buffers reach 50.00 KiB into tensors in L1",
        ),
        ("out of memory, says a later release", "out of memory, says a later release"),
    ],
    ids=["no size of a bank", "too large", "clash", "other words"],
)
def test_the_ways_to_run_out_of_memory(reason: str, said: str) -> None:
    answer = ask(report=replace(report([CALL]), errors=(failed(reason),)))
    assert answer.reason == "1 operation failed, 1 for lack of memory"
    assert answer.evidence == (Evidence(f"ttnn.from_torch (operation 3): {said}"),)


def test_a_program_that_only_stopped() -> None:
    cut = failed("started but never completed", "incomplete_operation")
    answer = ask(report=replace(report([CALL]), errors=(cut,)))
    assert answer.reason == "1 operation did not end"


def test_a_program_without_errors_is_clean() -> None:
    assert ask(report=report([CALL])) == LIMIT.clean(0.0)


def test_an_op_table_does_not_tell() -> None:
    assert ask(ops=table(op("Add"))) == not_measured("needs a report database")
