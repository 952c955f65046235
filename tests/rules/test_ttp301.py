"""Interleaved activations."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table, tensor

ask = Ask("TTP301")
LIMIT = limit(0.5, "of activation bytes")
INPUT = tensor(1, 1, 64, 64)
SPREAD = tensor(1, 1, 32, 96, memory="L1_INTERLEAVED")
SHARDED = tensor(1, 1, 32, 32, memory="L1_WIDTH_SHARDED")


def test_most_bytes_interleaved() -> None:
    ops = table(
        op("UnaryDeviceOperation", [INPUT], [SPREAD]),
        op("UnaryDeviceOperation", [SPREAD], [SHARDED]),
        op("BinaryNgDeviceOperation", [SHARDED, INPUT], [SHARDED]),
    )
    assert ask(ops=ops) == LIMIT.found(
        0.75,
        "interleaved: 1 of 2 activations that ops read, 75.0 % of the bytes",
        [Evidence("Unary 1x1x32x96", 6144.0, "bytes")],
    )


def test_half_is_clean() -> None:
    half = SPREAD._replace(padded=SHARDED.padded, logical=SHARDED.logical)
    ops = table(
        op("UnaryDeviceOperation", [INPUT], [half]),
        op("UnaryDeviceOperation", [half], [SHARDED]),
        op("UnaryDeviceOperation", [SHARDED], [INPUT]),
    )
    assert ask(ops=ops) == LIMIT.clean(0.5)


def test_weights_and_caches_are_no_activations() -> None:
    weights, cache = tensor(1, 1, 64, 32), tensor(8, 1, 128, 32)
    ops = table(
        op("FullDeviceOperation", [], [cache]),
        op("MatmulDeviceOperation", [INPUT, weights], [SHARDED]),
        op("PagedUpdateCacheDeviceOperation", [cache, SHARDED], [cache]),
        op("SdpaDecodeDeviceOperation", [SHARDED, cache], [SHARDED]),
    )
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_what_another_device_made_is_no_activation() -> None:
    ops = table(op("Unary", [INPUT], [SPREAD]), op("Unary", [SPREAD], [SHARDED], device=1))
    assert ask(ops=ops) == not_applicable("no op reads what another one made")


def test_prefill_is_let_off() -> None:
    ops = table(
        op("UnaryDeviceOperation", [INPUT], [SPREAD]),
        op(
            "UpdateKVCacheOperation", [INPUT, SPREAD], [INPUT], attributes="UpdateCacheOpType::FILL"
        ),
    )
    assert ask(ops=ops) == not_applicable(
        "prefill: activations are as long as the prompt, and stream through DRAM"
    )
    decode = table(*ops, op("SdpaDecodeDeviceOperation", [SPREAD], [INPUT]))
    answer = ask(ops=decode)
    assert (answer.value, answer.limit) == (1.0, 0.5)


def test_prefill_outside_the_window_does_not_count() -> None:
    whole = table(
        op("PagedFillCacheDeviceOperation", [INPUT, SPREAD], [INPUT]),
        op("UnaryDeviceOperation", [INPUT], [SHARDED]),
        op("UnaryDeviceOperation", [SHARDED], [SHARDED]),
    )
    assert ask(Subject(ops=whole.select([1, 2]))) == LIMIT.clean(0.0)


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


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Unary"))) == not_measured(
        "the capture tells nothing of the tensors that ops take and give"
    )
    silent = Subject(report=report([Operation(1, "ttnn.relu")]))
    assert ask(silent) == not_measured("the report does not tell what ran inside its operations")
