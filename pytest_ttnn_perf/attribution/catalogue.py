"""The ops of two tables by number, so that sequences of thousands compare as integers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.attribution.config import function_in
from pytest_ttnn_perf.model.attribution import short_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.model.ops import OpTable, Signature, Tensor

#: Codes that TTNN renamed; the op is the same. Until 2025 a convolution was OptimizedConvNew.
_RENAMED: Final = {"OptimizedConvNew": "Conv2d"}
#: Codes of ops that are many: which, stands in their attributes.
_ELEMENTWISE: Final = ("Unary", "Binary", "Ternary")


class Variant(NamedTuple):
    """An op with everything that may explain its time."""

    signature: Signature
    cores: int | None
    fidelity: str | None
    attributes: str


class Likeness(NamedTuple):
    """In what two variants can be alike, as numbers: equal ones are alike in that.

    ``code``: what it computes. ``exact``: that and its operands. ``padded``, ``logical``: that and
    those shapes of all operands. ``ends``: that and the padded shapes of the first input and the
    first output.
    """

    exact: int
    padded: int
    logical: int
    ends: int
    code: int


class _Numbers(dict[Hashable, int]):
    """Numbers what it is asked for, from 0."""

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = len(self)
        return number


class Catalogue:
    """Numbers the variants of two tables, in the order they are met."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.likenesses: list[Likeness] = []
        self._numbers: dict[Variant, int] = {}
        self._likeness_numbers = _Numbers()

    def numbered(self, table: OpTable, rows: Iterable[int]) -> tuple[int, ...]:
        """Return the variants of some rows of a table, by number."""
        c = table.columns
        known: dict[tuple[int, int | None, int, int], int] = {}
        numbers = []
        for row in rows:
            key = (c.signature[row], c.cores[row], c.fidelity[row], c.attributes[row])
            number = known.get(key)
            if number is None:
                number = known[key] = self._number_of(_variant(table, *key))
            numbers.append(number)
        return tuple(numbers)

    def _number_of(self, variant: Variant) -> int:
        number = self._numbers.get(variant)
        if number is None:
            number = self._numbers[variant] = len(self.variants)
            self.variants.append(variant)
            self.likenesses.append(self._likeness(variant))
        return number

    def _likeness(self, variant: Variant) -> Likeness:
        number, code = self._likeness_numbers, _code(variant)
        inputs, outputs = variant.signature.inputs, variant.signature.outputs
        return Likeness(
            number["exact", code, inputs, outputs],
            number["padded", code, _padded(inputs), _padded(outputs)],
            number["logical", code, _logical(inputs), _logical(outputs)],
            number["ends", code, _padded(inputs[:1]), _padded(outputs[:1])],
            number["code", code],
        )


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
    short = short_code(variant.signature.op)
    function = function_in(variant.attributes) if short.startswith(_ELEMENTWISE) else ""
    return _RENAMED.get(short, short) + function


def _padded(tensors: tuple[Tensor, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(tensor.padded for tensor in tensors)


def _logical(tensors: tuple[Tensor, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(tensor.logical or tensor.padded for tensor in tensors)
