"""Calls that show whether a time means anything: with new inputs, outputs read, by another clock.

What a model is measured with is the same in each call. One that keeps its result, or does not look
at its input, is fast for no good reason, and only another input shows it. A result that is computed
when somebody reads it is not there when the clock stops. What the outputs are is told as a sketch,
short enough to be sent, so that those of two versions can be compared.
"""

from __future__ import annotations

import threading
import time
from hashlib import blake2b
from itertools import islice
from time import CLOCK_MONOTONIC_RAW, clock_gettime_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.measure.pcc import operand
from pytest_ttnn_perf.measure.sketch import MOST_TENSORS, every_nth, sketch_of
from pytest_ttnn_perf.measure.timing import Workload, garbage_collection_off
from pytest_ttnn_perf.records.metric import median

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


#: Of what is shorter, the host's clock tells too little.
_SHORTEST_NS: Final = 20_000.0
#: A host that is busy may take that long for nothing, three times in a row.
_DISTURBED_NS: Final = 100_000.0
#: On a busy host it may take some more tries until a call is not disturbed.
_MOST_TRIES: Final = 10
_AS_FAST: Final = 1.25
#: How long a thread that a call left behind may take to end; one that waits for work stays.
_THREADS_END_IN_S: Final = 2.0
#: What is hashed of one array: the whole of most, and the beginning and the end of the largest.
_MOST_VALUES: Final = 1 << 22
#: Types of these packages are read as they are; another one may compute when it is read.
_TENSORS: Final = frozenset({"numpy", "torch", "ttnn"})


class Probed(NamedTuple):
    """What was found; None is not known, and ``unknown`` says why. See ``Conditions``."""

    reacts: bool | None = None
    sample_ns: float | None = None
    new_input_ns: float | None = None
    pending_ratio: float | None = None
    clock_ratio: float | None = None
    threads: int = 0
    outputs: Mapping[str, tuple[float, ...]] = {}
    unknown: str | None = None


def probe(  # noqa: PLR0913 (what is known of a measurement)
    workload: Workload,
    samples_ns: Sequence[float],
    *,
    by_host: bool,
    tries: int = 3,
    nonce: int = 0,
    depth: int | None = None,
    wait_for_all: Callable[[], object] | None = None,
) -> Probed:
    """Call a model with ``tries`` new inputs or some more, and read what it returns.

    With more than one, it is called with its own input as well: does it react to another one, and
    give the same for the same? ``by_host``: the clock is the host's; no other clock confirms that
    of a simulator. ``nonce`` decides which inputs: nobody knows them before. With ``depth``, that
    many calls are a sample. ``wait_for_all`` waits for all devices, and not only for those that the
    test knows of.
    """
    given = _arguments(workload)
    calls = depth or 1
    if not _changed(given, 1).arrays:
        found = any(True for _ in _leaves(given, _is_on_host))
        why = "no input of it can be changed" if found else "no input of it is an array on the host"
        return Probed(unknown=why)
    second = wait_for_all or workload.sync or _nothing
    own = [_timed(workload, [given], second)] if tries > 1 else []
    if own and own[0].digest is None:
        return Probed(unknown="its output cannot be read")
    before = set(threading.enumerate())
    sample_ns = median(samples_ns)
    timed: list[_Timed] = []
    with garbage_collection_off():
        while len(timed) < tries or (
            len(timed) < _MOST_TRIES and _is_slow(timed, sample_ns * calls)
        ):
            first = nonce + 1 + len(timed) * calls
            block = [_changed(given, first + number).value for number in range(calls)]
            timed.append(_timed(workload, block, second))
    least_ns = _SHORTEST_NS if by_host else 0.0
    new_input_ns = min(one.until_read_ns for one in timed) / calls
    pending_ns = min(one.pending_ns for one in timed)
    is_pending = pending_ns > (_DISTURBED_NS if by_host else 0.0)
    outputs = {one.given: one.sketch for one in (*own, *timed[:tries]) if one.given}
    return Probed(
        reacts=any(one.digest != own[0].digest for one in timed) if own else None,
        sample_ns=sample_ns,
        new_input_ns=new_input_ns if new_input_ns >= least_ns else None,
        pending_ratio=pending_ns / (sample_ns * calls) if sample_ns and is_pending else 0.0,
        clock_ratio=_clock_ratio(timed) if by_host else None,
        threads=_ended(before),
        outputs=outputs,
    )


class _Timed(NamedTuple):
    """One block of calls: the input of the last, its output, and how long what took.

    ``clock_ns`` is what ``host_ns`` is by the clock that samples are taken with.
    """

    given: str | None
    digest: str | None
    sketch: tuple[float, ...]
    clock_ns: float
    host_ns: float
    pending_ns: float
    until_read_ns: float


def _timed(
    workload: Workload,
    inputs: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
    second: Callable[[], object],
) -> _Timed:
    sync, clock = workload.sync or _nothing, workload.clock
    given = content_of(inputs[-1])  # before a model changes it
    sync()
    start, host_start = clock(), _host_ns()
    for args, kwargs in inputs:
        result = workload.call(*args, **kwargs)
    sync()
    stop, host_stop = clock(), _host_ns()
    second()
    again = clock()
    strange = [*_leaves(result, _may_compute)]
    digest = output_digest(result)
    sync()
    read_ns = clock() - again if strange else 0.0
    return _Timed(
        given,
        digest,
        sketch_of(floats_of(result)),
        stop - start,
        host_stop - host_start,
        again - stop,
        stop - start + read_ns,
    )


def _is_slow(timed: Sequence[_Timed], sample_ns: float) -> bool:
    """Tell whether no call was about as fast as a sample: then one more may be."""
    return min(one.until_read_ns for one in timed) > _AS_FAST * sample_ns


def _clock_ratio(timed: Sequence[_Timed]) -> float | None:
    """Return what the clock shows of what the other shows.

    Between reading the one and the other anything may happen, so the call counts for which most is
    shown.
    """
    long = [one for one in timed if one.host_ns >= _SHORTEST_NS]
    return max((one.clock_ns / one.host_ns for one in long), default=None)


def _host_ns() -> int:
    return clock_gettime_ns(CLOCK_MONOTONIC_RAW)


def _ended(known: set[threading.Thread]) -> int:
    """Return how many new threads end by themselves: they were still at work."""
    new = [
        thread
        for thread in threading.enumerate()
        # One that Python did not start cannot be waited for; its kind has no public name.
        if thread not in known and not isinstance(thread, threading._DummyThread)  # noqa: SLF001
    ]
    until = time.monotonic() + _THREADS_END_IN_S
    for thread in new:
        thread.join(max(0.0, until - time.monotonic()))
    return sum(not thread.is_alive() for thread in new)


def _nothing() -> None:
    """Stand in for a synchronisation that nobody asked for."""


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


def output_digest(result: object) -> str | None:
    """Return a hash of all tensors that a model returned, also of those on a device."""
    found = blake2b(digest_size=8)
    leaves = [*_leaves(result, _has_shape)]
    try:
        for leaf in leaves:
            _hash(found, operand(leaf, "output").data)
    except UsageError:
        return None
    return found.hexdigest() if leaves else None


def floats_of(result: object) -> list[Any]:
    """Return what is sketched of a result, as arrays of numpy: no indices and flags.

    Which index is the largest may turn on the last bit.
    """
    arrays = (operand(leaf, "output").data for leaf in _leaves(result, _has_shape))
    floats = (array for array in arrays if "float" in str(array.dtype))
    return [_as_numpy(every_nth(array)) for array in islice(floats, MOST_TENSORS)]


def _arguments(workload: Workload) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what a model is called with, by its set-up if it has one."""
    if workload.setup is None:
        return workload.args, workload.kwargs
    supplied = workload.setup()
    if supplied is None:
        return workload.args, workload.kwargs
    return supplied if isinstance(supplied, tuple) else (supplied,), workload.kwargs


class _Changed(NamedTuple):
    """A value with other arrays in it, and how many of them."""

    value: Any
    arrays: int


def _changed(value: Any, by: int) -> _Changed:
    if _is_on_host(value):
        other = _other_array(value, by)
        return _Changed(other, int(not bool((other == value).all())))
    if isinstance(value, dict):
        parts = {name: _changed(part, by) for name, part in value.items()}
        changed = {name: part.value for name, part in parts.items()}
        return _Changed(changed, sum(part.arrays for part in parts.values()))
    if type(value) in {tuple, list}:
        inside = [_changed(part, by) for part in value]
        return _Changed(type(value)(p.value for p in inside), sum(p.arrays for p in inside))
    return _Changed(value, 0)


def _other_array(array: Any, by: int) -> Any:
    """Return an array of the same values elsewhere: indices, zeros and distributions stay valid.

    They are moved on together, so that what is padding stays in one piece.
    """
    import numpy as np

    count = int(np.prod(tuple(array.shape)))
    flat = array.reshape(-1)
    step = 1 + by * max(1, count // 7) % max(1, count - 1)
    rolled = np.roll(flat, step) if isinstance(array, np.ndarray) else flat.roll(step)
    if bool((rolled == flat).all()) and "float" in str(array.dtype):
        rolled = rolled * (0.5 + 0.25 * (1 + by % 97))  # all alike: move them together
        rolled[: count // 2 + 1] *= -1
        rolled = rolled.astype(array.dtype) if isinstance(array, np.ndarray) else rolled
    elif count and bool((rolled == flat).all()) and "int" in str(array.dtype) and flat[0] > 0:
        largest = int(flat[0])
        rolled = rolled - (1 + by % largest)  # smaller: still an index of what it was one of
    return rolled.reshape(tuple(array.shape))


def _hash(into: Any, array: Any) -> None:
    import numpy as np

    into.update(f"{tuple(array.shape)} {array.dtype}".encode())
    flat = array.reshape(-1)
    half = _MOST_VALUES // 2
    # Parts first: a type that numpy does not have takes more room there.
    parts = (flat,) if len(flat) <= _MOST_VALUES else (flat[:half], flat[-half:])
    for part in parts:
        into.update(np.ascontiguousarray(_as_numpy(part)).view(np.uint8))


def _as_numpy(array: Any) -> Any:
    import numpy as np

    if isinstance(array, np.ndarray):
        return array
    array = operand(array, "input").data
    return array if isinstance(array, np.ndarray) else array.double().numpy()


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


def _may_compute(value: object) -> bool:
    """Tell whether reading something may be more than that."""
    return _has_shape(value) and type(value).__module__.partition(".")[0] not in _TENSORS


def _is_on_host(value: object) -> bool:
    """Tell whether something is an array of numpy, or a tensor of torch in the host's memory."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package == "numpy":
        return kind.__name__ == "ndarray" and getattr(value, "dtype").kind in "biuf"  # noqa: B009
    device = getattr(value, "device", None)
    return package == "torch" and kind.__name__ == "Tensor" and str(device) == "cpu"
