"""The points of a sweep, as tests of their own."""

from __future__ import annotations

import gc
import itertools
import re
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.observation import SweepPoint
from pytest_ttnn_perf.core.settings import finite_number, whole_number
from pytest_ttnn_perf.core.text import repr_of, text_of
from pytest_ttnn_perf.plugin import OUT_OF_MEMORY

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pytest_ttnn_perf.core.hardware import Scalar

_PLUGIN: Final = "ttnn_perf_sweeps"
#: The axis that says how many samples a call has, as ``batch`` of the marker does.
_BATCH: Final = "batch"


def _check_axes(axes: object) -> None:
    if not isinstance(axes, Mapping) or not axes:
        example = '{"batch": [1, 2, 4]}'
        message = f"sweep: expected axes with their values, e.g. {example}, found {repr_of(axes)}"
        raise UsageError(message)
    for axis, values in axes.items():
        place = f"sweep {axis}"
        if not isinstance(values, (list, tuple, range)) or not values:
            message = f"{place}: expected a list of values, found {repr_of(values)}"
            raise UsageError(message)
        # Compared as ids show them: 1 and "1" would be two tests of one name.
        labels = [str(_label(place, each)) for each in values]
        twice = next((each for each in labels if labels.count(each) > 1), None)
        if twice is not None:
            message = f"{place}: expected each value once, found {twice} again"
            raise UsageError(message)
        for each in values if axis == _BATCH else ():
            whole_number(place, each, least=1)


def _label(place: str, value: Any) -> Scalar:
    """Return a value for records and ids: a scalar, or a name."""
    if isinstance(value, float):
        return finite_number(place, value)
    named = getattr(value, "name", None) or getattr(value, "__name__", None)
    if isinstance(named, str):
        return named.lower()
    if isinstance(value, (str, int)):
        return value
    message = f"{place}: expected a string, a number or what has a name, found {repr_of(value)}"
    raise UsageError(message)


def generate_points(metafunc: pytest.Metafunc, axes: Mapping[str, Sequence[Any]]) -> None:
    try:
        _check_axes(axes)
    except UsageError as error:
        test = metafunc.definition.nodeid
        pytest.fail(f"{test}: @pytest.mark.ttnn_perf: {error}", pytrace=False)
    points = list(itertools.product(*axes.values()))
    metafunc.parametrize(list(axes), points, ids=[_id_of(axes, point) for point in points])
    manager = metafunc.config.pluginmanager
    if not manager.has_plugin(_PLUGIN):
        manager.register(OutOfMemoryPoints(), _PLUGIN)


def _id_of(axes: Mapping[str, object], point: tuple[Any, ...]) -> str:
    return "-".join(
        f"{axis}={_label(axis, value)}" for axis, value in zip(axes, point, strict=True)
    )


def with_point(item: pytest.Item, read: dict[str, Any]) -> dict[str, Any]:
    others = {name: value for name, value in read.items() if name not in {"sweep", "require"}}
    place = f"{item.nodeid}: @pytest.mark.ttnn_perf"
    axes = read.get("sweep")
    if axes is None:
        message = f"{place}: require chooses among the points of a sweep, and there is no sweep="
        raise pytest.UsageError(message)
    callspec = getattr(item, "callspec", None)
    if callspec is None or not set(axes) <= set(callspec.params):
        message = f"{place}: sweep needs a test function, which takes the axes as arguments"
        raise pytest.UsageError(message)
    point = {axis: _label(axis, callspec.params[axis]) for axis in axes}
    if _BATCH in point:
        if _BATCH in others:
            message = f"{place}: batch is an axis of the sweep: leave out batch={others[_BATCH]}"
            raise pytest.UsageError(message)
        others[_BATCH] = point[_BATCH]
    own_id = _id_of(axes, tuple(callspec.params[axis] for axis in axes))
    sweep = _without(item.nodeid, own_id)
    return {**others, "sweep": SweepPoint(sweep, point, read.get("require", {}))}


def _without(test: str, own_id: str) -> str:
    spelt = own_id.encode("unicode_escape").decode("ascii")  # as pytest spells it
    function, bracket, parameters = test.partition("[")
    left = re.sub(rf"(^|-){re.escape(spelt)}(-|(?=\]$))", r"\1", parameters, count=1)
    left = left.removesuffix("]").rstrip("-")
    return f"{function}{bracket}{left}]" if left else function


class OutOfMemoryPoints:
    """Skips points that do not fit; the gate judges them."""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Skip a point without room. Innermost: all others see a skipped test."""
        report = yield
        if call.when == "teardown" or not report.failed or call.excinfo is None:
            return report
        why = _out_of_memory(call.excinfo.value)
        is_point = any("sweep" in marker.kwargs for marker in item.iter_markers("ttnn_perf"))
        if why is None or not is_point:
            return report
        item.stash[OUT_OF_MEMORY] = why
        file, line, _ = report.location
        report.outcome = "skipped"
        report.longrepr = (file, (line or 0) + 1, f"Skipped: out of memory: {why}")
        if not item.config.getoption("usepdb"):
            _let_go(call.excinfo.value)
        return report


def _out_of_memory(error: BaseException) -> str | None:
    if not isinstance(error, RuntimeError):  # TTNN raises no other
        return None
    from pytest_ttnn_perf.machine.ttnn import cause_of
    from pytest_ttnn_perf.measure.profilers import ran_out_of_memory

    text = text_of(error)
    if not ran_out_of_memory(text):
        return None
    lines = cause_of(text).strip().splitlines()
    return re.sub(r"(?i)^out of memory:\s*", "", lines[0]) if lines else "no details"


def _let_go(error: BaseException | None) -> None:
    """Free the tensors in an error's frames for the next point."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
    gc.collect()
