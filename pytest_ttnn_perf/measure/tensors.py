"""Reads numbers out of tensors, block by block, without copying a whole tensor."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import text_of

# numpy is imported where it is used: a run that compares nothing does not pay for it.
Array: TypeAlias = Any
Index: TypeAlias = tuple[int | slice, ...]
_ACCEPTED: Final = "a numpy array, a torch tensor, a ttnn tensor or an object with __array__"
# More elements than this torch converts in several threads, and the next step, in this thread, then
# waits for the caches of other cores: twice as slow in all.
_TORCH_GRAIN: Final = 32_768


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a comparison.

    ``data`` is a numpy array, or a torch tensor of a type numpy lacks (bfloat16, float8).
    """

    data: Any
    shape: tuple[int, ...]
    dtype: str
    is_complex: bool
    is_contiguous: bool

    def flattened(self) -> Operand:
        """Return the same elements in one dimension; they must be contiguous: nothing is copied."""
        flat = self.data.reshape(-1)
        return Operand(flat, (len(flat),), self.dtype, self.is_complex, is_contiguous=True)

    def read(self, index: Index, out: Array) -> int:
        """Convert one block to float64 at the start of ``out``; return its number of elements."""
        import numpy as np

        block = self.data[index]
        if isinstance(block, np.ndarray):
            np.copyto(out[: block.size].reshape(block.shape), block, casting="unsafe")
            return int(block.size)
        flat = block.reshape(-1)
        for start in range(0, len(flat), _TORCH_GRAIN):
            piece = flat[start : start + _TORCH_GRAIN].double().numpy()
            np.copyto(out[start : start + piece.size], piece)
        return len(flat)


def operand(value: object, side: str) -> Operand:
    """Make ``value`` readable; ``side`` is its name in messages.

    Raises:
        UsageError: not a tensor, or not one of numbers.
    """
    import numpy as np

    if isinstance(value, np.ma.MaskedArray):
        raise UsageError(
            f"{side} is a masked array, and every element counts in a comparison: "
            "pass .filled(...) or .compressed()"
        )
    if isinstance(value, type):  # a class has the methods its instances have
        raise _unreadable(value, side)
    if isinstance(value, np.ndarray):
        return _from_numpy(np.asarray(value), side)
    if hasattr(value, "to_torch"):
        return _from_torch(_from_ttnn(value, side), side)
    if all(hasattr(value, name) for name in ("detach", "cpu", "numpy")):
        return _from_torch(value, side)
    if hasattr(value, "__array__"):
        return _from_numpy(np.asarray(value), side)
    raise _unreadable(value, side)


def _unreadable(value: object, side: str) -> UsageError:
    return UsageError(f"{side} must be {_ACCEPTED}, not {_name(value)}")


def _from_numpy(array: Array, side: str) -> Operand:
    import numpy as np

    kind = array.dtype.kind
    # The second test lets in what other packages register with numpy, such as jax's bfloat16.
    if kind not in "biufc" and not np.can_cast(array.dtype, np.float64):
        raise UsageError(f"{side} must hold numbers, not elements of dtype {array.dtype}")
    return Operand(
        array,
        tuple(array.shape),
        str(array.dtype),
        is_complex=kind == "c",
        is_contiguous=bool(array.flags.c_contiguous),
    )


def _from_ttnn(value: Any, side: str) -> Any:
    """Bring a ttnn tensor to the host; only there can it become a torch tensor."""
    try:
        host = value.cpu() if hasattr(value, "cpu") else value
        return host.to_torch()
    except RuntimeError as cause:
        raise UsageError(
            f"{side}: {_name(value)} cannot become a torch tensor ({_first_line(cause)}); if it "
            "lies on several devices, pass ttnn.to_torch(tensor, mesh_composer=...)"
        ) from cause


def _from_torch(value: Any, side: str) -> Operand:
    """Share memory with numpy if numpy has the type; else keep the tensor and convert by block."""
    import numpy as np

    try:
        tensor = value.detach().cpu()
        is_complex = bool(tensor.is_complex())
        if not is_complex:
            tensor = tensor.resolve_neg()  # numpy cannot see a negation torch has put off
        data = tensor if is_complex else _shared_or_probed(tensor)
    except (AttributeError, TypeError, RuntimeError) as cause:
        reason = _first_line(cause)
        raise UsageError(f"{side}: {_name(value)} cannot be read as numbers: {reason}") from cause
    if isinstance(data, np.ndarray):
        return _from_numpy(data, side)
    return Operand(
        data,
        tuple(int(length) for length in data.shape),
        str(data.dtype).removeprefix("torch."),
        is_complex=is_complex,
        is_contiguous=bool(data.is_contiguous()),
    )


def _shared_or_probed(tensor: Any) -> Any:
    """Return a numpy array on the same memory, or a tensor of which blocks convert to float64."""
    try:
        return tensor.numpy()
    except TypeError as unsupported:
        # bfloat16 gets here, and so do sparse tensors, which have no blocks: one element tells.
        try:
            tensor[(slice(0, 1),) * tensor.dim()].double().numpy()
        except RuntimeError:
            raise unsupported from None
        return tensor


def _name(value: object) -> str:
    kind = type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _first_line(error: Exception) -> str:
    return text_of(error).partition("\n")[0]
