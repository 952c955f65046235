"""Calls that show whether a time means anything: with other inputs, and by another clock.

What a model is measured with is the same in each call. One that keeps its result, or does not look
at its input, is fast for no good reason, and only another input shows it.
"""

from __future__ import annotations

from hashlib import blake2b
from statistics import median
from time import CLOCK_MONOTONIC_RAW, clock_gettime_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.measure.pcc import operand
from pytest_ttnn_perf.measure.timing import Timings, Workload, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


#: Other inputs that are tried: the fastest call counts, so that one slow call proves nothing.
_TRIES: Final = 3
#: Of a call that is shorter, the clock tells too little.
_SHORTEST_NS: Final = 20_000.0
#: What is hashed of one array: the whole of most, and the beginning and the end of the largest.
_MOST_BYTES: Final = 1 << 24


class Probed(NamedTuple):
    """What was found; None is not known, and ``unknown`` says why. See ``Conditions``."""

    reacts: bool | None = None
    new_input_ratio: float | None = None
    pending_ratio: float | None = None
    clock_ratio: float | None = None
    unknown: str | None = None


def probe(workload: Workload, samples_ns: Sequence[float], *, by_host: bool) -> Probed:
    """Call a model with other inputs, and wait for it twice.

    ``by_host``: the clock is the host's; no other clock confirms that of a simulator.
    """
    sample_ns = median(samples_ns)
    args, kwargs = _arguments(workload)
    others = [_changed((args, kwargs), by) for by in range(1, _TRIES + 1)]
    if not any(other.arrays for other in others):
        return Probed(unknown="no input of it is an array on the host")
    same = _output(_call(workload, args, kwargs)[0])
    if same is None:
        return Probed(unknown="its output cannot be read")
    outputs, times_ns, raw_ns = [], [], 0
    for other in others:
        start = clock_gettime_ns(CLOCK_MONOTONIC_RAW)
        result, elapsed_ns = _call(workload, *other.value)
        raw_ns += clock_gettime_ns(CLOCK_MONOTONIC_RAW) - start
        outputs.append(_output(result))
        times_ns.append(elapsed_ns)
    long_enough = not by_host or sample_ns >= _SHORTEST_NS
    return Probed(
        reacts=any(output != same for output in outputs),
        new_input_ratio=min(times_ns) / sample_ns if long_enough and sample_ns else None,
        pending_ratio=_pending_ns(workload) / sample_ns if workload.sync and sample_ns else None,
        clock_ratio=sum(times_ns) / raw_ns if by_host and long_enough else None,
    )


def shapes_of(workload: Workload) -> tuple[str, ...]:
    """Return the shapes of a model's inputs, in their order; other inputs are left out."""
    given = (workload.args, workload.kwargs)
    return tuple(f"{'x'.join(map(str, leaf.shape))}" for leaf in _leaves(given, _has_shape))


def content_of(value: object) -> str | None:
    """Return a hash of the arrays on the host that something holds; None where it holds none."""
    found = blake2b(digest_size=8)
    leaves = [*_leaves(value, _is_on_host)]
    for leaf in leaves:
        _hash(found, leaf)
    return found.hexdigest() if leaves else None


def _arguments(workload: Workload) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what a model is called with, by its set-up if it has one."""
    if workload.setup is None:
        return workload.args, workload.kwargs
    supplied = workload.setup()
    if supplied is None:
        return workload.args, workload.kwargs
    return supplied if isinstance(supplied, tuple) else (supplied,), workload.kwargs


def _call(workload: Workload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, float]:
    timings = Timings()
    once = Workload(workload.call, args, kwargs, sync=workload.sync, clock=workload.clock)
    result = measure(once, timings, warmup=0, iterations=1)
    return result, timings.samples_ns[0]


def _pending_ns(workload: Workload) -> float:
    """Return how long a second synchronisation takes: nothing is left to wait for."""
    assert workload.sync is not None
    workload.sync()
    args, kwargs = _arguments(workload)
    workload.call(*args, **kwargs)
    workload.sync()
    start = workload.clock()
    workload.sync()
    return workload.clock() - start


class _Changed(NamedTuple):
    """A value with other arrays in it, and how many of them."""

    value: Any
    arrays: int


def _changed(value: Any, by: int) -> _Changed:
    if _is_on_host(value):
        return _Changed(_other_array(value, by), 1)
    if isinstance(value, dict):
        parts = {name: _changed(part, by) for name, part in value.items()}
        changed = {name: part.value for name, part in parts.items()}
        return _Changed(changed, sum(part.arrays for part in parts.values()))
    if type(value) in {tuple, list}:
        inside = [_changed(part, by) for part in value]
        return _Changed(type(value)(p.value for p in inside), sum(p.arrays for p in inside))
    return _Changed(value, 0)


def _other_array(array: Any, by: int) -> Any:
    """Return an array of the same values elsewhere: indices and distributions stay valid."""
    import numpy as np

    count = int(np.prod(tuple(array.shape)))
    flat = array.reshape(-1)
    step = by * max(1, count // 7)
    rolled = np.roll(flat, step) if isinstance(array, np.ndarray) else flat.roll(step)
    if bool((rolled == flat).all()) and "float" in str(array.dtype):
        rolled = rolled * (0.5 + 0.25 * by)  # all alike: move them together
        rolled[: count // 2 + 1] *= -1
        rolled = rolled.astype(array.dtype) if isinstance(array, np.ndarray) else rolled
    return rolled.reshape(tuple(array.shape))


def _output(result: object) -> str | None:
    """Return a hash of all tensors that a model returned, also of those on a device."""
    found = blake2b(digest_size=8)
    leaves = [*_leaves(result, _has_shape)]
    try:
        for leaf in leaves:
            _hash(found, operand(leaf, "output").data)
    except UsageError:
        return None
    return found.hexdigest() if leaves else None


def _hash(into: Any, array: Any) -> None:
    import numpy as np

    if not isinstance(array, np.ndarray):
        array = operand(array, "input").data
        array = array if isinstance(array, np.ndarray) else array.double().numpy()
    into.update(f"{array.shape} {array.dtype}".encode())
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    half = _MOST_BYTES // 2
    parts = (content,) if content.size <= _MOST_BYTES else (content[:half], content[-half:])
    for part in parts:
        into.update(part)


def _leaves(value: object, wanted: Callable[[object], bool]) -> Iterator[Any]:
    if wanted(value):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part, wanted)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _leaves(part, wanted)


def _has_shape(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)


def _is_on_host(value: object) -> bool:
    """Tell whether something is an array of numpy, or a tensor of torch in the host's memory."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package == "numpy":
        return kind.__name__ == "ndarray" and getattr(value, "dtype").kind in "biuf"  # noqa: B009
    device = getattr(value, "device", None)
    return package == "torch" and kind.__name__ == "Tensor" and str(device) == "cpu"
