"""The ops of two tables by number, so that sequences of thousands compare as integers."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.analysis.ops.names import ELEMENTWISE
from pytest_ttnn_perf.analysis.ops.settings import function_in
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pytest_ttnn_perf.records.ops import OpTable, Signature, Tensor


#: Codes that TTNN renamed; the op is the same. Until 2025 a convolution was OptimizedConvNew.
_RENAMED: Final = {"OptimizedConvNew": "Conv2d"}


class Variant(NamedTuple):
    """An op with everything that may explain its time."""

    signature: Signature
    cores: int | None
    fidelity: str | None
    attributes: str


@dataclass(frozen=True, slots=True)
class Likeness:
    """In what variants can be alike: for each variant a number; equal ones are alike in that.

    ``code``: what it computes. ``exact``: that and its operands. ``padded``, ``logical``: that and
    those shapes of all operands. ``ends``: that and the padded shapes of the first input and the
    first output. ``format``: whatever is told of the operands but sizes and memory.
    """

    exact: list[int] = field(default_factory=list)
    padded: list[int] = field(default_factory=list)
    logical: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    format: list[int] = field(default_factory=list)


class _Numbered(dict[tuple[int, int | None, int, int], int]):
    """The number of a row's variant by what its table holds of it."""

    def __init__(self, table: OpTable, catalogue: Catalogue) -> None:
        super().__init__()
        self._table = table
        self._catalogue = catalogue

    def __missing__(self, key: tuple[int, int | None, int, int]) -> int:
        number = self[key] = self._catalogue.number_of(_variant(self._table, *key))
        return number


class Catalogue:
    """Numbers the variants of two tables, in the order they are met."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.alike = Likeness()
        self._numbers: dict[Variant, int] = {}
        self._traits: dict[Hashable, int] = {}

    def numbered(self, table: OpTable) -> list[int]:
        """Return the variants of a table's rows, by number."""
        c = table.columns
        keys = zip(c.signature, c.cores, c.fidelity, c.attributes, strict=True)
        return list(map(_Numbered(table, self).__getitem__, keys))

    def number_of(self, variant: Variant) -> int:
        """Return the number of a variant."""
        number = self._numbers.setdefault(variant, len(self.variants))
        if number == len(self.variants):
            self.variants.append(variant)
            self._add_likeness(variant)
        return number

    def _add_likeness(self, variant: Variant) -> None:
        code, alike = _code(variant), self.alike
        inputs, outputs = variant.signature.inputs, variant.signature.outputs
        padded = code, _padded(inputs), _padded(outputs)
        alike.code.append(self._same(code))
        alike.exact.append(self._same((code, inputs, outputs)))
        alike.padded.append(self._same(padded))
        alike.logical.append(self._same((code, _logical(inputs), _logical(outputs))))
        alike.ends.append(self._same((code, padded[1][:1], padded[2][:1])))
        alike.format.append(self._same((_formats(inputs), _formats(outputs))))

    def _same(self, trait: Hashable) -> int:
        """Return the number that stands for a trait."""
        return self._traits.setdefault(trait, len(self._traits))


def _variant(
    table: OpTable, signature: int, cores: int | None, fidelity: int, attributes: int
) -> Variant:
    return Variant(
        table.signatures[signature],
        cores,
        None if fidelity < 0 else table.fidelities[fidelity],
        "" if attributes < 0 else table.attribute_texts[attributes],
    )


def _code(variant: Variant) -> str:
    """Return what an op computes, without what differs between releases."""
    code = _plain_code(variant.signature.op)
    return code + function_in(variant.attributes) if code.startswith(ELEMENTWISE) else code


@lru_cache(maxsize=1024)
def _plain_code(op: str) -> str:
    short = short_code(op)
    return _RENAMED.get(short, short)


def _padded(tensors: tuple[Tensor, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple([tensor.padded for tensor in tensors])


def _logical(tensors: tuple[Tensor, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple([tensor.logical or tensor.padded for tensor in tensors])


def _formats(tensors: tuple[Tensor, ...]) -> tuple[tuple[str, str, int], ...]:
    return tuple([(tensor.dtype, tensor.layout, len(tensor.padded)) for tensor in tensors])
