from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.rules.ttp505_output_on_compute_queue import (
    output_on_compute_queue,
)
from pytest_ttnn_perf.records.finding import Evidence, RuleOutcome, Subject
from pytest_ttnn_perf.records.ttnn_report import Operation
from tests.rules.answers import ask
from tests.rules.reports import record, report

MIB = 2**20
LARGE = record(1, 1, 4, 512, 512)  # 2 MiB


def reads(queue: str | None, *, queues: int | None = None, tensor: int = 1) -> Subject:
    arguments = {"cq_id": queue} if queue is not None else {}
    operation = Operation(1, "ttnn.from_device", arguments=arguments, inputs=(tensor,))
    tensors = [LARGE, record(2, 1, 2, 512, 512), record(3, 1, 1, 32, 32)]
    facts = {"num_command_queues": queues} if queues is not None else {}
    return Subject(report=report([operation], tensors), facts=facts)


@pytest.mark.parametrize(
    "subject", [reads("0", queues=2), reads(None, queues=1)], ids=["named", "the only queue"]
)
def test_a_large_output_on_queue_zero_is_found(subject: Subject) -> None:
    assert ask(output_on_compute_queue, subject) == Answer(
        RuleOutcome.FOUND,
        "2.000 MiB of 1 output read on the queue that computes",
        2.0 * MIB,
        MIB,
        "B",
        (Evidence("ttnn.from_device 1x4x512x512", 2.0 * MIB, "B"),),
    )


def test_a_queue_of_its_own_is_clean() -> None:
    assert ask(output_on_compute_queue, reads("QueueId(1)")) == Answer(
        RuleOutcome.CLEAN, None, 0, MIB, "B"
    )


@pytest.mark.parametrize("queue", ["0", None])
def test_the_limit_itself_is_clean(queue: str | None) -> None:
    assert ask(output_on_compute_queue, reads(queue, tensor=2)) == Answer(
        RuleOutcome.CLEAN, None, 1.0 * MIB, MIB, "B"
    )


def test_a_report_without_outputs_raises_no_question() -> None:
    written = Operation(1, "ttnn.from_torch", outputs=(1,))
    assert ask(output_on_compute_queue, Subject(report=report([written], [LARGE]))) == Answer(
        RuleOutcome.NOT_APPLICABLE, "the report has no output that is read by the host"
    )


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Subject(), "needs a report database"),
        *(
            (
                reads(None, queues=queues),
                "the report does not say on which command queue outputs are read: pass cq_id, or "
                "state the fact num_command_queues if there is one queue only",
            )
            for queues in (None, 2)
        ),
    ],
)
def test_a_queue_that_is_not_told_is_not_measured(subject: Subject, reason: str) -> None:
    assert ask(output_on_compute_queue, subject) == Answer(RuleOutcome.NOT_MEASURED, reason)


@pytest.mark.parametrize("size", [2 * MIB, MIB])
def test_only_what_is_on_queue_zero_counts(size: int) -> None:
    operations = [
        Operation(1, "ttnn.from_device", arguments={"cq_id": "1"}, inputs=(1,)),
        Operation(2, "ttnn.from_device", arguments={"cq_id": "0"}, inputs=(2,)),
    ]
    subject = Subject(report=report(operations, [LARGE, record(2, 1, 2, 512, 512)]))
    assert ask(output_on_compute_queue.with_limits(size=size), subject) == Answer(
        RuleOutcome.CLEAN, None, 1.0 * MIB, size, "B"
    )
