"""Interleaved activations."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.convolving import DEVICE
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table

ask = Ask("TTP301")
LIMIT = limit(0.5, "of activation bytes")


def test_a_report_without_a_table() -> None:
    operations = [
        Operation(1, "ttnn.from_torch", outputs=(1,)),
        Operation(2, "ttnn.relu", inputs=(1,), outputs=(2,), device_operations=("Unary",)),
        Operation(3, "ttnn.gelu", inputs=(2,), outputs=(3,), device_operations=("Unary",)),
    ]
    tensors = [record(1, 1, 1, 32, 32), record(2, 1, 1, 1, 20, memory="L1_INTERLEAVED")]
    asked = Subject(report=report(operations, tensors, [(1, 1, 2), (2, 2, 3)]))
    assert ask(asked) == LIMIT.found(
        1.0,
        "interleaved: 1 of 1 activation that ops read, 100.0 % of the bytes",
        [Evidence("ttnn.relu → ttnn.gelu 1x1x1x20", 2048.0, "bytes")],
    )


def test_half_is_clean() -> None:
    operations = [
        Operation(1, "ttnn.relu", outputs=(1,), device_operations=("Unary",)),
        Operation(2, "ttnn.relu", inputs=(1,), outputs=(2,), device_operations=("Unary",)),
        Operation(3, "ttnn.gelu", inputs=(2,), outputs=(3,), device_operations=("Unary",)),
    ]
    tensors = [record(1, 1, 1, 32, 32), record(2, 1, 1, 32, 32, memory="L1_WIDTH_SHARDED")]
    asked = Subject(report=report(operations, tensors, [(1, 1, 2), (2, 2, 3)]))
    assert ask(asked) == LIMIT.clean(0.5)


def test_inputs_that_do_not_tell() -> None:
    silent = Subject(report=report([Operation(1, "ttnn.relu")]))
    assert ask(silent) == not_measured("the report does not tell what ran inside its operations")


def test_with_an_op_table_another_rule_tells_what_it_costs() -> None:
    asked = Subject(ops=table(op("Unary")), report=report([Operation(1, "ttnn.relu")]))
    assert ask(asked) == not_applicable("an op table tells what that costs: TTP303")


def test_what_another_rule_wants_in_l1_does_not_count() -> None:
    operations = [
        Operation(1, "ttnn.relu", outputs=(1,), device_operations=("Unary",)),
        Operation(2, "ttnn.gelu", inputs=(1,), outputs=(2,), device_operations=("Unary",)),
    ]
    told = report(operations, [record(1, 1, 1, 32, 32)], [(1, 1, 2)])
    assert ask(
        report=replace(told, devices=(DEVICE._replace(total_l1_bytes=10**6),))
    ) == LIMIT.clean(0.0)
    assert ask(report=told).value == 1.0
