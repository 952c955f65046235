from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.finding import RuleOutcome
from tests.rules.answers import Ask, Evidence, Subject, clean, found, not_applicable, not_measured
from tests.rules.reports import Operation, record, report

ask = Ask("TTP505")
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
    assert ask(subject) == found(
        "2.000 MiB of 1 output read on the queue that computes",
        value=2.0 * MIB,
        limit=MIB,
        unit="B",
        evidence=(Evidence("ttnn.from_device 1x4x512x512", 2.0 * MIB, "B"),),
    )


def test_a_queue_of_its_own_is_clean() -> None:
    assert ask(reads("QueueId(1)")) == clean(0, limit=MIB, unit="B")


@pytest.mark.parametrize("queue", ["0", None])
def test_the_limit_itself_is_clean(queue: str | None) -> None:
    assert ask(reads(queue, tensor=2)) == clean(1.0 * MIB, limit=MIB, unit="B")


def test_a_report_without_outputs_raises_no_question() -> None:
    written = Operation(1, "ttnn.from_torch", outputs=(1,))
    assert ask(report=report([written], [LARGE])) == not_applicable(
        "the report has no output that is read by the host"
    )


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
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
    assert ask(subject) == not_measured(reason)


@pytest.mark.parametrize("size", [2 * MIB, MIB])
def test_only_what_is_on_queue_zero_counts(size: int) -> None:
    operations = [
        Operation(1, "ttnn.from_device", arguments={"cq_id": "1"}, inputs=(1,)),
        Operation(2, "ttnn.from_device", arguments={"cq_id": "0"}, inputs=(2,)),
    ]
    subject = Subject(report=report(operations, [LARGE, record(2, 1, 2, 512, 512)]))
    assert ask.with_limits(size=size)(subject) == clean(1.0 * MIB, limit=size, unit="B")


@pytest.mark.parametrize(("separate", "sent"), [(True, 0), (False, 2 * MIB)])
def test_a_pipeline_tells_the_queue_that_a_call_does_not_name(separate: bool, sent: int) -> None:
    subject = reads(None, queues=2)
    facts = {**subject.facts, "all_transfers_on_separate_command_queue": separate}
    answer = ask(replace(subject, facts=facts))
    assert (answer.outcome is RuleOutcome.FOUND, answer.value) == (not separate, sent)
