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


@pytest.mark.parametrize("code", ["Reduce", "ArgMax", "TopK", "Sampling", "Sort"])
def test_a_vocabulary_on_one_core(code: str) -> None:
    search = op(f"{code}DeviceOperation", [VOCABULARY], [FOUND], ns=640_000.0, cores=1)
    assert ask(ops=table(MATMUL, search)) == LIMIT.found(
        630_000 / 740_000,
        "1 search along rows of 640.0 µs on few cores",
        [Evidence(f"{code} 1x1x32x32768 on 1 of 64 cores", 630_000.0, "ns", 630_000 / 740_000)],
    )
    assert ask.saving(ops=table(MATMUL, search)) == (
        630_000.0,
        "Σ time × (1 − cores ÷ possible): 640.0 µs → 10.0 µs",
    )


def test_on_all_cores_and_in_few_tiles_it_is_clean() -> None:
    on_all = op("ArgMaxDeviceOperation", [VOCABULARY], [FOUND], ns=640_000.0, cores=64)
    of_few = op("TopKDeviceOperation", [EXPERTS], [FOUND], ns=640_000.0, cores=1)
    assert ask(ops=table(on_all, of_few)) == LIMIT.clean(0.0)


def test_no_search() -> None:
    assert ask(ops=table(MATMUL)) == not_applicable("no search along rows that takes long enough")


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Reduce", ns=9e4))) == not_measured(
        "the capture tells nothing of the tensors that ops take and give"
    )
    assert ask(ops=table(MATMUL, available_cores=None)) == not_measured(
        "the capture does not tell how many cores there are"
    )


def test_a_real_decode_step_samples_on_one_core() -> None:
    decode = region_of("falcon3_full.csv", "decode")
    assert ask(decode).evidence[0].subject == "Reduce MAX 1x1x32x32768 on 1 of 110 cores"
    saved = ask.saving(decode).ns
    assert saved == pytest.approx(294_000, abs=2_000)
