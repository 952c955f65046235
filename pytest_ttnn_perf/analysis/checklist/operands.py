"""The tensors that ops take and give, from an op table or from a report, and what they weigh."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import size
from pytest_ttnn_perf.analysis.captures.report_calls import device_tensor, in_tiles
from pytest_ttnn_perf.analysis.checklist.op_times import signature_numbers
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import in_dram, rooflines, size_of
from pytest_ttnn_perf.records.finding import Evidence, RuleOutcome
from pytest_ttnn_perf.records.ops import Category, Tensor, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.ops import OpTable, Signature
    from pytest_ttnn_perf.records.ttnn_report import Operation, Report


#: Why rules about tensors cannot tell, with a capture that names none.
NO_OPERANDS: Final = "the capture says nothing about the tensors that ops take and give"
#: What a report, which tells no times, must name to be worth advice.
WORTH_BYTES: Final = Limit(
    576_000, "B", "the DRAM of a Wormhole moves them in 2 µs, as long as launching an op takes"
)


def if_worth(answer: Answer, moved: float, worth: Limit, *, where: str = "DRAM") -> Answer:
    """Return a finding only where that many bytes are worth advice: else it is clean."""
    if answer.outcome is not RuleOutcome.FOUND or moved >= worth.value:
        return answer
    reason = f"{size(moved)} in all: too little to matter in {where}"
    return Answer.clean(answer.value, limit=answer.limit, unit=answer.unit, reason=reason)


class Operand(NamedTuple):
    """A tensor that an op takes or, if ``given``, gives; ``times`` ops do so alike.

    ``number`` is its id in a report; an op table does not tell tensors apart.
    """

    op: str
    tensor: Tensor
    times: int
    given: bool
    number: int | None = None

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


def by_weight(
    weights: Iterable[tuple[str, float]], *, unit: str, of: float | None = None
) -> Iterator[Evidence]:
    """Yield evidence with the weights of the same text added up, the heaviest first.

    They are shares ``of`` a whole, where one is given.
    """
    totals: dict[str, float] = defaultdict(float)
    for text, weight in weights:
        totals[text] += weight
    for text in sorted(totals, key=lambda text: (-totals[text], text)):
        yield Evidence(text, totals[text], unit, totals[text] / of if of else None)


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
    for operation in report.completed:
        for ids, given in ((operation.inputs, False), (operation.outputs, True)):
            for number in ids:
                tensor = device_tensor(report.tensors.get(number))
                if tensor is not None:
                    yield Operand(operation.name, tensor, 1, given, number)


@once_per_table
def stale_signatures(table: OpTable) -> frozenset[Signature]:
    """Return the signatures of ops that are too fast for their shapes, in any step of a table."""
    lines = rooflines(table)
    numbers = {table.columns.signature[row] for row, line in enumerate(lines) if line.stale}
    return frozenset(table.signatures[number] for number in numbers)


#: Ops that multiply with weights.
PRODUCTS: Final = frozenset({Category.MATMUL, Category.CONV})
#: Operations of a report that bring a tensor onto the device, or fill one, and compute nothing.
_LOADS: Final = re.compile(r"from_|as_tensor|load|to_device|ones|zeros|full|empty|rand|prepare")
#: The weights of a convolution, as an argument of it in a report.
_HOST_WEIGHTS: Final = re.compile(r"shape=Shape\(\[(\d+), (\d+), (\d+), (\d+)\]\)")
_NUMBER: Final = re.compile(r"tensor_id=(\d+)")


class Weight(NamedTuple):
    """A weight. ``key`` tells it from others: its id in a report, else only what it looks like."""

    key: object
    tensor: Tensor


#: Ops that leave the values of their operand as they are: what they make of a weight is a weight.
_CONVERTS: Final = re.compile(
    r"tilize|to_?layout|to_memory_config|to_dtype|typecast|copy|move|clone|interleaved_?to|"
    r"sharded_?to|reshard|permute|transpose|reshape|view|pad|slice|split|concat|repeat|squeeze",
    re.IGNORECASE,
)


def weights_by_row(table: OpTable) -> Mapping[int, Tensor]:
    """Return the weights that matmuls and convolutions read from DRAM, by the row of these.

    A capture does not name tensors. The second operand of a convolution is always a weight, that
    of a matmul unless it looks like what an op before it computed on the same device, as in
    attention, or has a matrix for each head of each user, as a state. What ops make of a tensor
    that none of them computed, by tilizing, converting or moving it, was not computed either: that
    is how weights are loaded.
    """
    return _followed(table).weights


def loading_rows(table: OpTable) -> frozenset[int]:
    """Return the rows that only convert or move what no op before them computed, as weights."""
    return _followed(table).loading


class _Followed(NamedTuple):
    weights: Mapping[int, Tensor]
    loading: frozenset[int]


@once_per_table
def _followed(table: OpTable) -> _Followed:
    columns = table.columns
    computed: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    found: dict[int, Tensor] = {}
    loading: set[int] = set()
    for row, (number, device) in enumerate(zip(columns.signature, columns.device, strict=True)):
        if columns.host[row]:
            continue
        signature, known = table.signatures[number], computed[device]
        category = category_of(signature.op)
        if category in PRODUCTS and len(signature.inputs) > 1:
            second = signature.inputs[1]
            if in_dram(second) and (category is Category.CONV or _is_weight(second, known)):
                found[row] = second
        if category not in PRODUCTS and _only_converts(signature, known):
            loading.add(row)
        else:
            known.update(map(look_of, signature.outputs))
    return _Followed(found, frozenset(loading))


def _is_weight(second: Tensor, computed: set[tuple[object, ...]]) -> bool:
    return prod(second.padded[:-3]) == 1 and look_of(second) not in computed


def look_of(tensor: Tensor) -> tuple[object, ...]:
    """Return what a capture tells tensors apart by; views of one may have other logical shapes."""
    return (tensor.padded, tensor.dtype, tensor.memory)


def _only_converts(signature: Signature, computed: set[tuple[object, ...]]) -> bool:
    # Weights are loaded to DRAM: what lies in L1 at the beginning is an activation.
    return _CONVERTS.search(signature.op) is not None and all(
        in_dram(tensor) and look_of(tensor) not in computed for tensor in signature.inputs
    )


def weights_in_table(table: OpTable) -> frozenset[Weight]:
    """Return the weights, those that look the same as one: a table does not tell them apart."""
    return frozenset(Weight(tensor, tensor) for tensor in set(weights_by_row(table).values()))


def computed_in_report(report: Report) -> frozenset[int]:
    """Return the tensors that operations computed: no weights, and nothing made of these alone."""
    computed: set[int] = set()
    for operation in report.completed:
        name = operation.name.rpartition(".")[2]
        loaded = _LOADS.search(name) is not None or (
            _CONVERTS.search(name) is not None and computed.isdisjoint(operation.inputs)
        )
        if not loaded:
            computed.update(operation.outputs)
    return frozenset(computed)


def weights_in_report(report: Report) -> frozenset[Weight]:
    """Return the weights, each once."""
    computed = computed_in_report(report)
    found: set[Weight] = set()
    for operation in report.completed:
        if operation.conv is not None:
            found.update(_of_convolution(operation))
        elif _runs_product(operation) and len(operation.inputs) > 1:
            number = operation.inputs[1]
            tensor = device_tensor(report.tensors.get(number))
            if tensor is not None and in_dram(tensor) and number not in computed:
                found.add(Weight(number, tensor))
    return frozenset(found)


def operands_of_products(subject: Subject) -> list[int]:
    """Return how many operands are told of each matmul and convolution."""
    calls = subject.report.completed if subject.report is not None else ()
    used = used_signatures(subject.ops) if subject.ops is not None else ()
    return [
        *(len(call.inputs) for call in calls if _runs_product(call)),
        *(len(one.inputs) for one, _ in used if is_product(one)),
    ]


def is_product(signature: Signature) -> bool:
    """Tell whether an op is a matmul or a convolution."""
    return category_of(signature.op) in PRODUCTS


def _runs_product(operation: Operation) -> bool:
    names = (operation.name, *operation.device_operations)
    return any(category_of(name.rpartition(".")[2]) in PRODUCTS for name in names)


def _of_convolution(operation: Operation) -> Iterator[Weight]:
    """Yield the weights that a convolution lays out on the device, in the format asked for."""
    text = operation.arguments.get("weight_tensor", "")
    shape, number = _HOST_WEIGHTS.search(text), _NUMBER.search(text)
    if shape is not None and operation.conv is not None and operation.conv.weights_dtype:
        outputs, inputs, height, width = map(int, shape.groups())
        logical = (1, 1, inputs * height * width, outputs)
        dtype = operation.conv.weights_dtype
        tensor = Tensor(in_tiles(logical), logical, "TILE", dtype, "DRAM_INTERLEAVED")
        yield Weight(number[1] if number else operation.id, tensor)
