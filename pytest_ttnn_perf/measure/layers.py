"""PCC layer by layer: which layer is the first to go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isnan
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import counted, visible
from pytest_ttnn_perf.measure.pcc import compare

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.measure.pcc import Agreement

#: A line of a terminal.
_WIDTH: Final = 80
_FORMS: Final = "a mapping from names to (expected, actual), or (name, expected, actual) each"


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer, how its output agrees with what was expected, and how much it has to."""

    name: str
    agreement: Agreement
    at_least: float

    @property
    def pcc(self) -> float:
        """The correlation; NaN where there is none."""
        return self.agreement.pcc

    @property
    def is_below(self) -> bool:
        """Whether it is below its limit, or does not exist."""
        return not self.pcc >= self.at_least

    def __str__(self) -> str:
        value = f"{self.pcc:.5g}"
        if self.is_below and float(value) >= self.at_least:  # rounded up to the limit
            value = repr(self.pcc)
        return f"{visible(self.name)} {value}"


def compare_layers(
    layers: object, at_least: Mapping[str, float], otherwise: float
) -> Sequence[Layer]:
    """Compare layers in their order, one at a time; ``otherwise`` limits those without a limit.

    Raises:
        UsageError: there are none, they are not what is expected, or a limit is of none of them.
    """
    __tracebackhide__ = True  # a failure points at the line of the test
    found: dict[str, Layer] = {}
    for name, expected, actual in _named_pairs(layers):
        if name in found:
            message = f"check_layers was given {name} twice; each layer has a name of its own"
            raise UsageError(message)
        found[name] = Layer(name, compare(expected, actual), at_least.get(name, otherwise))
    if not found:
        message = "check_layers was given no layer: nothing was compared"
        raise UsageError(message)
    unknown = [name for name in at_least if name not in found]
    if unknown:
        message = f"at_least names {', '.join(unknown)}, which is not one of the layers"
        raise UsageError(f"{message} ({', '.join(found)})")
    return tuple(found.values())


def _named_pairs(layers: object) -> Iterator[tuple[str, object, object]]:
    __tracebackhide__ = True
    if isinstance(layers, Mapping):
        layers = ((name, *_parts(pair)) for name, pair in layers.items())
    if not isinstance(layers, Iterable):
        message = f"check_layers takes {_FORMS}: found {type(layers).__name__}"
        raise UsageError(message)
    for number, layer in enumerate(layers):
        parts = _parts(layer)
        if len(parts) != 3 or not isinstance(parts[0], str) or not parts[0].strip():
            message = f"check_layers takes {_FORMS}: layer {number} is not"
            raise UsageError(message)
        yield parts[0], parts[1], parts[2]


def _parts(layer: object) -> tuple[object, ...]:
    """Return the parts of a tuple or list; a tensor is none, whatever its length."""
    return tuple(layer) if isinstance(layer, (tuple, list)) else ()


def worst_layer(layers: Sequence[Layer]) -> Layer:
    """Return the layer to judge all by: the worst of those below their limits, else of all."""
    below = [layer for layer in layers if layer.is_below]
    return min(below or layers, key=lambda layer: -inf if isnan(layer.pcc) else layer.pcc)


def first_below(layers: Sequence[Layer]) -> str | None:
    """Name the first layer below its limit, between its neighbours; None where all are above.

    Left out where they do not fit into a line: the count, the layer after it, the layer before it.
    """
    below = [number for number, layer in enumerate(layers) if layer.is_below]
    if not below:
        return None
    first = below[0]
    marked = f"{layers[first]} <- first below {layers[first].at_least:g}"
    count = f"; {len(below)} of {counted(len(layers), 'layer')} below"
    before = [str(layer) for layer in layers[max(first - 1, 0) : first]]
    after = [str(layer) for layer in layers[first + 1 : first + 2]]
    for around in ((before, after, count), (before, after, ""), (before, [], ""), ([], [], "")):
        sentence = ", ".join((*around[0], marked, *around[1])) + around[2]
        if len(sentence) <= _WIDTH:
            break
    return sentence
