"""The tensors that ops take and give, from an op table or from a report, and what they weigh."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.checklist.derived import once_per_table
from pytest_ttnn_perf.checklist.op_times import signature_numbers
from pytest_ttnn_perf.model.attribution import short_code
from pytest_ttnn_perf.model.finding import Evidence
from pytest_ttnn_perf.model.ops import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.model.ops import OpTable, Signature
    from pytest_ttnn_perf.model.report import Report, TensorRecord
    from pytest_ttnn_perf.model.subject import Subject

#: Rows and columns of a tile.
TILE: Final = 32
#: Bytes of an element. Block formats share an exponent among 16 elements.
BYTES: Final = {
    "FLOAT32": 4.0,
    "INT32": 4.0,
    "UINT32": 4.0,
    "BFLOAT16": 2.0,
    "UINT16": 2.0,
    "BFLOAT8_B": 1.0625,
    "UINT8": 1.0,
    "BFLOAT4_B": 0.5625,
}
#: Why rules about tensors cannot tell, with a capture that names none.
NO_OPERANDS: Final = "the capture tells nothing of the tensors that ops take and give"


class Operand(NamedTuple):
    """A tensor that an op takes or, if ``given``, gives; ``times`` ops do so alike."""

    op: str
    tensor: Tensor
    times: int
    given: bool

    @property
    def size(self) -> float:
        """The bytes of all of them, padding included; 0 for a format of unknown size."""
        return self.times * size_of(self.tensor)


def operands_of(subject: Subject) -> Sequence[Operand]:
    """Return the operands that the op table tells, or else the report."""
    found = _in_table(subject.ops) if subject.ops is not None else ()
    return found or (tuple(_in_report(subject.report)) if subject.report is not None else ())


@once_per_table
def used_signatures(table: OpTable) -> Sequence[tuple[Signature, int]]:
    """Return the signatures of the ops that ran on a device, and how many have each."""
    counts = Counter(signature_numbers(table))
    return tuple((table.signatures[number], count) for number, count in counts.items())


def device_tensor(record: TensorRecord | None) -> Tensor | None:
    """Return a tensor of a report as an op table would have it; None for one on the host.

    A report tells no padding: tiles are taken to be of 32 by 32.
    """
    if record is None or record.shape is None or record.memory is None:
        return None
    layout = record.layout or ""
    padded = in_tiles(record.shape) if layout == "TILE" else record.shape
    return Tensor(padded, record.shape, layout, record.dtype or "", record.memory)


def in_tiles(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with its last two extents rounded up to whole tiles.

    >>> in_tiles((1, 1, 50, 100)), in_tiles((7,))
    ((1, 1, 64, 128), (32, 32))
    """
    *outer, rows, columns = (*(1,) * (2 - len(shape)), *shape)
    return (*outer, -(-rows // TILE) * TILE, -(-columns // TILE) * TILE)


def size_of(tensor: Tensor) -> float:
    """Return the bytes of a tensor, padding included; 0 for a format of unknown size."""
    return prod(tensor.padded) * BYTES.get(tensor.dtype, 0.0)


def by_weight(
    weights: Iterable[tuple[str, float]], *, unit: str, of: float | None = None
) -> tuple[Evidence, ...]:
    """Return evidence with the weights of the same text added up, the heaviest first.

    They are shares ``of`` a whole, where one is given.
    """
    totals: dict[str, float] = defaultdict(float)
    for text, weight in weights:
        totals[text] += weight
    ordered = sorted(totals, key=lambda text: (-totals[text], text))
    return tuple(
        Evidence(text, totals[text], unit, totals[text] / of if of else None) for text in ordered
    )


def shape_text(shape: Iterable[int]) -> str:
    """Return a shape as people write it.

    >>> shape_text((1, 1, 32, 64))
    '1x1x32x64'
    """
    return "x".join(map(str, shape))


@once_per_table
def _in_table(table: OpTable) -> Sequence[Operand]:
    return tuple(
        Operand(short_code(signature.op), tensor, count, given)
        for signature, count in used_signatures(table)
        for tensors, given in ((signature.inputs, False), (signature.outputs, True))
        for tensor in tensors
    )


def _in_report(report: Report) -> Iterator[Operand]:
    for operation in report.operations:
        for ids, given in ((operation.inputs, False), (operation.outputs, True)):
            for number in ids:
                tensor = device_tensor(report.tensors.get(number))
                if tensor is not None:
                    yield Operand(operation.name, tensor, 1, given)
