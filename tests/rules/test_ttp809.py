"""Kernels that read much more than they write."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.readers.ttlang import SimCounters, SimTensor, TtlangLog
from pytest_ttnn_perf.cli.main import main
from tests.harness.corpus import corpus
from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP809")
LIMIT = limit(4, "read per written")


def test_a_program_that_reads_again_and_again() -> None:
    subject = printed(
        program(1, bytes_read=12 << 20, bytes_written=1 << 20), program(2, bytes_read=4 << 20)
    )
    assert ask(subject) == LIMIT.found(
        12.0,
        "program 1 (kernel) reads 12.0 bytes from DRAM for each that it writes",
        [Evidence("program 1 (kernel)", 12.0, "read per written")],
    )
    assert ask.with_limits(reads=12)(subject).evidence == ()


def test_what_a_simulator_counted() -> None:
    tensors = tuple(
        SimTensor(name, {"dram_read_tiles": tiles})
        for name, tiles in {"b": 8, "a": 60, "y": 0}.items()
    )
    sim = SimCounters({"dram_read_tiles": 68, "dram_write_tiles": 4}, tensors)
    assert ask(kernels=TtlangLog(sim=sim)) == LIMIT.found(
        17.0,
        "the simulated program reads 17.0 tiles from DRAM for each that it writes",
        [Evidence("tensor a", 60, "tiles read"), Evidence("tensor b", 8, "tiles read")],
    )
    without_times = "a simulator counts what is moved, and has no times"
    assert Ask("TTP801")(kernels=TtlangLog(sim=sim)) == not_measured(without_times)
    assert Ask("TTP804")(kernels=TtlangLog(sim=sim)) == not_measured(without_times)


def test_what_cannot_be_told() -> None:
    assert ask(kernels=TtlangLog()) == not_measured(
        "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"
    )
    assert ask(printed(program(bytes_written=0))) == not_applicable("nothing is written to DRAM")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sim/mm4_small.jsonl.gz", "reads 17.0 tiles from DRAM"),
        ("v1_1_1_perf_summary.json", "program 1024 (__demo_kernel) on 4 of 64 cores"),
    ],
)
def test_all_that_tt_lang_writes_is_taken_as_its_output(
    name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["check", "--log", str(corpus(f"ttlang/{name}"))])
    assert told in capsys.readouterr().out
