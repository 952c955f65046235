"""Interleaved activations."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import OperationError
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table

#: Whatever it weighs.
ask = Ask("TTP301", {"worth": 0.0})
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
        "1 of 1 activation that ops read lie interleaved in L1, 100.0 % of the bytes",
        [Evidence("ttnn.relu → ttnn.gelu 1x1x1x20", 2048.0, "B")],
    )


def test_little_is_clean_and_dram_is_left_to_another_rule() -> None:
    operations = [
        Operation(1, "ttnn.relu", outputs=(1,), device_operations=("Unary",)),
        Operation(2, "ttnn.gelu", inputs=(1,), device_operations=("Unary",)),
    ]
    near, far = record(1, 1, 1, 32, 32, memory="L1_INTERLEAVED"), record(1, 1, 1, 32, 32)
    assert Ask("TTP301")(report=report(operations, [near], [(1, 1, 2)])) == LIMIT.clean(
        1.0, reason="2.000 KiB in all: too little to matter in L1"
    )
    assert ask(report=report(operations, [far], [(1, 1, 2)])) == LIMIT.clean(0.0)


def test_what_failed_hands_nothing_on() -> None:
    operations = [
        Operation(1, "ttnn.relu", outputs=(1,), device_operations=("Unary",)),
        Operation(2, "ttnn.gelu", inputs=(1,), device_operations=("Unary",)),
    ]
    made = report(operations, [record(1, 32, 32, memory="L1_INTERLEAVED")], [(1, 1, 2)])
    failed = replace(made, errors=(OperationError(2, "ttnn.gelu", None, "no room"),))
    assert ask(report=made).value == 1.0
    assert ask(report=failed) == not_applicable("no op reads what another one made")


def test_half_is_clean() -> None:
    operations = [
        Operation(1, "ttnn.relu", outputs=(1,), device_operations=("Unary",)),
        Operation(2, "ttnn.relu", inputs=(1,), outputs=(2,), device_operations=("Unary",)),
        Operation(3, "ttnn.gelu", inputs=(2,), outputs=(3,), device_operations=("Unary",)),
    ]
    tensors = [
        record(1, 1, 1, 32, 32, memory="L1_INTERLEAVED"),
        record(2, 1, 1, 32, 32, memory="L1_WIDTH_SHARDED"),
    ]
    asked = Subject(report=report(operations, tensors, [(1, 1, 2), (2, 2, 3)]))
    assert ask(asked) == LIMIT.clean(0.5)


def test_inputs_that_do_not_tell() -> None:
    silent = Subject(report=report([Operation(1, "ttnn.relu")]))
    assert ask(silent) == not_measured("the report does not say what ran inside its operations")


def test_with_an_op_table_another_rule_tells_what_it_costs() -> None:
    asked = Subject(ops=table(op("Unary")), report=report([Operation(1, "ttnn.relu")]))
    assert ask(asked) == not_applicable("an op table says what that costs: TTP303")
