"""Searches along rows."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.captures import region_of
from tests.rules.tables import op, table, tensor

ask = Ask("TTP308")
LIMIT = limit(0.02, "of a step")
VOCABULARY = tensor(1, 1, 32, 32768, memory="L1_INTERLEAVED")
EXPERTS = tensor(1, 1, 32, 128)
FOUND = tensor(1, 1, 32, 32)
MATMUL = op("MatmulDeviceOperation", [FOUND], [FOUND], ns=100_000.0)


@pytest.mark.parametrize(
    ("code", "sampling"),
    [
        ("Reduce", ""),
        *((code, "; sampling is 86.5 % of a step") for code in ("ArgMax", "TopK", "Sort")),
    ],
)
def test_a_vocabulary_on_one_core(code: str, sampling: str) -> None:
    search = op(f"{code}DeviceOperation", [VOCABULARY], [FOUND], ns=640_000.0, cores=1)
    assert ask(ops=table(MATMUL, search)) == LIMIT.found(
        630_000 / 740_000,
        f"1 search along rows takes 640.0 µs{sampling}",
        [Evidence(f"{code} 1x1x32x32768 on 1 of 64 cores", 630_000.0, "ns", 630_000 / 740_000)],
    )
    assert ask.saving(ops=table(MATMUL, search)) == (
        630_000.0,
        "640.0 µs → 10.0 µs: on all cores, in tiles, without padding and once",
    )
    assert (ask.fix(ops=table(MATMUL, search)) or "").startswith("Search in two steps")


def test_on_all_cores_and_in_few_tiles_it_is_clean() -> None:
    on_all = op("TopKDeviceOperation", [VOCABULARY], [FOUND], ns=100_000.0, cores=64)
    of_few = op("TopKDeviceOperation", [EXPERTS], [FOUND], ns=640_000.0, cores=1)
    assert ask(ops=table(on_all, of_few)) == LIMIT.clean(0.0)


def test_a_search_of_one_number_after_the_other_is_slow_on_all_cores() -> None:
    # 1,048,576 numbers on 64 cores, 34 ns for each.
    slow = op("ArgMaxDeviceOperation", [VOCABULARY], [FOUND], ns=557_056.0, cores=64)
    answer = ask(ops=table(MATMUL, slow))
    assert answer.evidence[0].subject == (
        "ArgMax 1x1x32x32768 on 64 cores, 34 ns for each element of a core"
    )
    assert ask.saving(ops=table(MATMUL, slow)).ns == pytest.approx(557_056 * (1 - 7 / 34))


def test_rows_that_are_padding() -> None:
    """One row is filled up to 32, which the product and the search take for data."""
    one = tensor(1, 1, 32, 3072, logical=(1, 1, 1, 3072))
    all_rows = tensor(1, 1, 32, 3072)
    in_rows = VOCABULARY._replace(layout="ROW_MAJOR")
    ops = table(
        op("LayerNormDeviceOperation", [one], [one], ns=9_000.0),
        op("MatmulDeviceOperation", [all_rows, tensor(1, 1, 3072, 32768)], [VOCABULARY], ns=8e5),
        op("UntilizeDeviceOperation", [VOCABULARY], [in_rows], ns=9_000.0),
        op("ArgMaxDeviceOperation", [in_rows], [FOUND], ns=557_056.0, cores=64),
    )
    assert ask(ops=ops).evidence[0].subject.endswith("; 31 of 32 rows are padding")
    assert ask.saving(ops=ops).ns == pytest.approx(557_056 * 31 / 32)
    assert ask.fix(ops=ops) == "Slice first: 31 of 32 rows are padding."


def test_the_largest_value_and_its_place_of_one_tensor() -> None:
    largest = "{'math_op': 'ReduceOpMath::MAX'}"
    value = op("ReduceDeviceOperation", [VOCABULARY], [FOUND], ns=3e5, cores=64, attributes=largest)
    place = op("ArgMaxDeviceOperation", [VOCABULARY], [FOUND], ns=50_000.0, cores=64)
    ops = table(MATMUL, value, place)
    assert ask.saving(ops=ops).ns == 300_000.0
    assert (ask.fix(ops=ops) or "").startswith("Drop the reduction")
    assert ask(ops=table(MATMUL, value._replace(kernel_ns=20_000.0))) == LIMIT.clean(0.0)


def test_no_search() -> None:
    assert ask(ops=table(MATMUL)) == not_applicable("no search along rows that takes long enough")


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Reduce", ns=9e4))) == not_measured(
        "the capture says nothing about the tensors that ops take and give"
    )
    unknown = MATMUL._replace(cores=None)
    assert ask(ops=table(unknown, available_cores=None)) == not_measured(
        "the capture does not say how many cores there are"
    )


def test_a_real_decode_step_mostly_samples() -> None:
    decode = region_of("falcon3_full.csv", "decode")
    answer = ask(decode)
    assert answer.reason == "2 searches along rows take 626.9 µs; sampling is 61.7 % of a step"
    assert [each.subject for each in answer.evidence] == [
        "ArgMax 1x1x32x32768 on 110 cores, 34 ns for each element of a core; "
        "31 of 32 rows are padding",
        "Reduce MAX 1x1x32x32768 on 1 of 103 cores, of what ArgMax searches too",
    ]
    assert ask.saving(decode).ns == pytest.approx(327_900 * 31 / 32 + 299_100, abs=500)
