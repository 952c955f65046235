"""A simulated board of two chips, so that optimizing a model can be followed on any machine.

What ops take follows from their shapes, and from figures like those of a Wormhole: nobody sleeps,
and ``clock_ns`` is the same on every machine. What they compute is a small stand-in, 32 values
wide, stored in the formats that are asked for, so that narrow ones cost accuracy. A low fidelity
costs none here.
"""

from __future__ import annotations

import csv
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CORES, BANKS = 64, 12
IN_L1 = "L1_WIDTH_SHARDED"
#: What a core computes, in operations of a nanosecond, and the part of it that kernels reach.
OPERATIONS = {"LoFi": 3640.0, "HiFi2": 2055.0, "HiFi4": 1028.0}
REACHED = 0.8
#: Bytes of a nanosecond: between a chip and its DRAM, if banks are read in turns or each by its
#: own core, inside L1, between host and board, and between the two chips.
DRAM, DRAM_SHARDED, L1, HOST, LINK = 175.0, 260.0, 4000.0, 12.0, 25.0
#: What starting an op takes a chip, sending one the host, and a transfer beside its bytes.
START_NS, SEND_NS, TRANSFER_NS, EXCHANGE_NS = 2_000, 25_000, 5_000, 8_000
GAP_NS = 700
#: Bytes of an element, and the bits behind its sign; 16 elements of a block share an exponent.
BYTES = {"bfloat16": 2.0, "bfloat8_b": 1.0625, "bfloat4_b": 0.5625}
BITS = {"bfloat8_b": 7, "bfloat4_b": 3}


@dataclass(frozen=True)
class Tensor:
    """What is on the board: a shape, where and how it is stored, and a stand-in for its values."""

    values: Any
    rows: int
    columns: int
    dtype: str = "bfloat16"
    memory: str = "DRAM_INTERLEAVED"
    layout: str = "TILE"

    @property
    def size(self) -> float:
        """Its bytes."""
        return self.rows * self.columns * BYTES[self.dtype]


class Kernel(NamedTuple):
    """How an op runs."""

    attributes: str = ""
    fidelity: str = ""
    cores: int = CORES


PLAIN = Kernel()


def stored(values: Any, dtype: str) -> Any:
    """Return what is left of values in a format."""
    if dtype not in BITS:
        return values.astype(np.float32)
    blocks = values.reshape(-1, 16)
    largest = np.abs(blocks).max(axis=1, keepdims=True)
    step = 2.0 ** (np.ceil(np.log2(largest)) - BITS[dtype])
    return (np.round(blocks / step) * step).reshape(values.shape).astype(np.float32)


@dataclass
class Board:
    """Takes ops without waiting for them; ``synchronize`` waits until all are done.

    All ``chips`` in use run the same ops, each on tensors of its own.
    """

    chips: int = 1
    _rows: list[dict[str, object]] = field(default_factory=list, repr=False)
    _traced: bool = False
    _host_ns: float = 0.0
    _chip_ns: float = 0.0
    _queue_ns: float = 0.0

    def weight(
        self,
        values: Any,
        rows: int,
        columns: int,
        dtype: str,
        memory: str = "DRAM_INTERLEAVED",
    ) -> Tensor:
        """Load a weight."""
        return Tensor(stored(values, dtype), rows, columns, dtype, memory)

    def write(self, values: Any, rows: int, columns: int, *, queue: int = 0) -> Tensor:
        """Send an input to the board: a call begins. Queue 1 does not wait for computations."""
        self._rows.clear()
        x = Tensor(values.astype(np.float32), rows, columns)
        taken = TRANSFER_NS + x.size * self.chips / HOST
        if queue == 1:
            self._queue_ns = max(self._queue_ns, self._host_ns) + taken
            self._chip_ns = max(self._chip_ns, self._queue_ns)
        else:
            self._chip_ns = max(self._chip_ns, self._host_ns) + taken
        return x

    @contextmanager
    def trace(self, *, on: bool) -> Iterator[None]:
        """Replay what is inside as a trace: the host sends one command for all of it."""
        self._host_ns += SEND_NS if on else 0
        self._traced = on
        yield
        self._traced = False

    def matmul(self, x: Tensor, weight: Tensor, fidelity: str) -> Tensor:
        """Multiply; weights that are cut to the banks of DRAM are read faster, by fewer cores."""
        sharded = weight.memory == "DRAM_WIDTH_SHARDED"
        cores, speed = (BANKS, DRAM_SHARDED) if sharded else (CORES, DRAM)
        out = replace(x, values=x.values @ weight.values, columns=weight.columns, memory=IN_L1)
        taken = max(weight.size / speed, _computing_ns(x, weight, fidelity, cores))
        config = "MultiCastDRAMSharded" if sharded else "MultiCast1D"
        attributes = f"{{'program_config': 'MatmulMultiCoreReuse{config}ProgramConfig()'}}"
        self._run("Matmul", taken, (x, weight), out, Kernel(attributes, fidelity, cores))
        return out

    def conv(
        self, x: Tensor, weight: Tensor, fidelity: str, *, relu: bool, second_buffer: bool
    ) -> Tensor:
        """Convolve with 3 x 3 weights; activations are read while others are computed with.

        A ``second_buffer`` does the same for weights, unless cores keep all of them in L1.
        """
        values = x.values @ weight.values
        out = replace(x, values=np.maximum(values, 0) if relu else values)
        computing = _computing_ns(x, weight, fidelity, CORES)
        kept = second_buffer or x.memory.startswith("L1")
        loading = 0.0 if kept else weight.size / DRAM
        taken = max(2 * _moving_ns(x), computing) + loading
        buffers = {"act": True, "weights": second_buffer}
        switches = (f"'enable_{name}_double_buffer': '{on}'" for name, on in buffers.items())
        attributes = f"{{{'; '.join(switches).lower()}}}"
        self._run("Conv2d", taken, (x, weight), out, Kernel(attributes, fidelity))
        return out

    def batch_norm(self, x: Tensor, scale: Any, *, relu: bool) -> Tensor:
        """Scale each channel."""
        values = x.values * scale
        return self._elementwise("BatchNorm", x, np.maximum(values, 0) if relu else values)

    def norm(self, x: Tensor) -> Tensor:
        """Scale each row to a mean square of 1."""
        mean = (x.values**2).mean(axis=1, keepdims=True)
        return self._elementwise("LayerNorm", x, x.values / np.sqrt(mean))

    def gate(self, x: Tensor, columns: int) -> Tensor:
        """Join what a matmul made of its two halves, or heads: some columns are left."""
        return self._elementwise("BinaryNg", x, np.maximum(x.values, 0), columns)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Add two tensors."""
        return self._elementwise("BinaryNg", x, x.values + y.values)

    def to_layout(self, x: Tensor, layout: str) -> Tensor:
        """Turn tiles into rows, or rows into tiles."""
        out = replace(x, layout=layout)
        self._run("Tilize" if layout == "TILE" else "Untilize", 3 * _moving_ns(x), (x,), out)
        return out

    def to_memory(self, x: Tensor, memory: str) -> Tensor:
        """Move a tensor, unless it is there."""
        if x.memory == memory:
            return x
        out = replace(x, memory=memory)
        self._run("InterleavedToSharded", _moving_ns(x) + _moving_ns(out), (x,), out)
        return out

    def all_reduce(self, x: Tensor) -> Tensor:
        """Sum what chips have computed in parts."""
        self._run("AllReduceAsync", EXCHANGE_NS + x.size / LINK, (x,), x)
        return x

    def _elementwise(self, code: str, x: Tensor, values: Any, columns: int | None = None) -> Tensor:
        out = replace(x, values=values, columns=columns or x.columns)
        self._run(code, _moving_ns(x) + _moving_ns(out), (x,), out)
        return out

    def _run(
        self,
        code: str,
        taken_ns: float,
        inputs: tuple[Tensor, ...],
        output: Tensor,
        kernel: Kernel = PLAIN,
    ) -> None:
        """Run an op on the chips, and note what a profiler would."""
        self._host_ns += 0 if self._traced else SEND_NS
        taken = round(START_NS + taken_ns)
        start = max(self._chip_ns + GAP_NS, self._host_ns)
        gap, self._chip_ns = round(start - self._chip_ns), start + taken
        replay = dict.fromkeys(("METAL TRACE ID", "METAL TRACE REPLAY SESSION ID"), 1)
        replay = replay if self._traced else {}
        named = [(f"INPUT_{n}", tensor) for n, tensor in enumerate(inputs)]
        cells = [_cells(name, tensor) for name, tensor in (*named, ("OUTPUT_0", output))]
        for chip in range(self.chips):
            self._rows.append({
                "OP CODE": f"{code}DeviceOperation", "OP TYPE": "tt_dnn_device", "DEVICE ID": chip,
                "DEVICE ARCH": "wormhole_b0", "ATTRIBUTES": kernel.attributes,
                "MATH FIDELITY": kernel.fidelity, "CORE COUNT": kernel.cores,
                "AVAILABLE WORKER CORE COUNT": CORES,
                "OP TO OP LATENCY [ns]": gap, "DEVICE KERNEL DURATION [ns]": taken,
                **replay, **{column: cell for part in cells for column, cell in part.items()},
            })  # fmt: skip

    def read(self, x: Tensor) -> Any:
        """Bring a result to the host, once it is there."""
        self._chip_ns += TRANSFER_NS
        return x.values

    def synchronize(self) -> None:
        """Wait until all work is done: the clock goes on to then."""
        self._host_ns = max(self._host_ns, self._chip_ns)

    def clock_ns(self) -> int:
        """Return the simulated time."""
        return round(self._host_ns)

    def write_capture(self, path: Path) -> Path:
        """Write the ops of the last call, as TTNN's profiler writes its ops CSV."""
        columns = dict.fromkeys(column for row in self._rows for column in row)
        posts = [{"OP CODE": name, "OP TYPE": "signpost"} for name in ("forward", "forward_END")]
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(columns), lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows([posts[0], *self._rows, posts[1]])
        return path


def _computing_ns(x: Tensor, weight: Tensor, fidelity: str, cores: int) -> float:
    operations = 2.0 * x.rows * weight.rows * weight.columns
    return operations / (OPERATIONS[fidelity] * REACHED * cores)


def _moving_ns(x: Tensor) -> float:
    return x.size / (L1 if x.memory.startswith("L1") else DRAM)


def _cells(name: str, tensor: Tensor) -> dict[str, object]:
    sizes = zip("WZYX", (1, 1, tensor.rows, tensor.columns), strict=True)
    return {
        **{f"{name}_{axis}_PAD[LOGICAL]": f"{size}[{size}]" for axis, size in sizes},
        f"{name}_LAYOUT": tensor.layout,
        f"{name}_DATATYPE": tensor.dtype.upper(),
        f"{name}_MEMORY": f"DEV_0_{tensor.memory}",
    }
