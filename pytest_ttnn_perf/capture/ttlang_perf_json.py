"""The JSON form of tt-lang's perf summary: ``python -m ttl._src.perf_summary --json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.json_text import parse_json
from pytest_ttnn_perf.capture.ttlang_lines import bounded_text
from pytest_ttnn_perf.capture.ttlang_perf import UNKNOWN_ARCH
from pytest_ttnn_perf.model.encoding.value import LARGEST_COUNT, Value
from pytest_ttnn_perf.model.ttlang import (
    Barriers,
    Bytes,
    PerfSummary,
    ProgramPerf,
    Span,
    Transfers,
    TransferSize,
)

if TYPE_CHECKING:
    from pathlib import Path


def is_perf_summary_json(head: str) -> bool:
    """Return whether a text begins as the JSON form does."""
    start = head.lstrip("\ufeff \t\r\n")
    return start.startswith("{") and '"freq_mhz"' in head and '"max_compute_cores"' in head


def read_perf_summary_json(file: Path) -> PerfSummary:
    """Read the exact form. It has no kernel times, semaphores or bandwidth.

    Raises:
        InputError: with file, line and what was expected.
    """
    return parse_json(bounded_text(file), _summary, file=file)


def _summary(document: object) -> PerfSummary:
    root = Value(document)
    programs = tuple(_program(program) for program in root.field("programs").array())
    arch = root.field("arch").string()
    clock_mhz = root.field("freq_mhz").number()
    cores = root.field("max_compute_cores").integer()
    if arch == UNKNOWN_ARCH or clock_mhz <= 0:
        return PerfSummary(programs, exact=True)
    return PerfSummary(programs, arch, clock_mhz, cores, exact=True)


def _program(program: Value) -> ProgramPerf:
    def count(name: str) -> int:
        return program.field(name).integer()

    def moved(bytes_: str, transfers: str) -> Transfers:
        return Transfers(Bytes(count(bytes_)), count(transfers))

    name = program.optional("name")
    return ProgramPerf(
        program_id=program.field("program_id").integer(at_least=-LARGEST_COUNT),
        name=None if name is None else name.string(),
        grid=_grid(program.field("grid")),
        cores=count("num_cores"),
        duration=Span(count("duration_cycles"), program.field("duration_us").number()),
        dram_read=moved("dram_bytes_read", "dram_read_count"),
        dram_write=moved("dram_bytes_written", "dram_write_count"),
        l1_read=moved("l1_bytes_read", "l1_read_count"),
        l1_write=moved("l1_bytes_written", "l1_write_count"),
        multicast=Transfers(Bytes(count("multicast_bytes")), None),
        transfer_sizes=_sizes(program.field("transfer_sizes")),
        read_barriers=Barriers(count("read_barriers")),
        write_barriers=Barriers(count("write_barriers")),
        dram_channels=count("dram_channels"),
    )


def _grid(value: Value) -> tuple[int, int]:
    extents = [extent.integer() for extent in value.array()]
    if len(extents) != 2:
        raise value.refusal("two extents of the grid")
    return extents[0], extents[1]


def _sizes(value: Value) -> tuple[TransferSize, ...]:
    sizes = []
    for size, transfers in value.items():
        if not (size.isascii() and size.isdigit() and len(size) <= 15):
            raise transfers.refusal("a size in bytes as the name of this count")
        sizes.append(TransferSize(Bytes(int(size)), transfers.integer()))
    return tuple(sorted(sizes))
