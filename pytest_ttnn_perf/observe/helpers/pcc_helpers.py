"""PCC helpers: what they tell is recorded, and held against the values that they compared.

One helper calls another: the innermost has the number, the outermost the line of the test. Calls
in one line are samples of one metric, of which the worst counts; lines are numbered as they come.
"""

from __future__ import annotations

import re
import sys
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.finding import HelperPcc

if TYPE_CHECKING:
    from pytest_ttnn_perf.observe.helpers.patches import Call
    from pytest_ttnn_perf.observe.recorder import Recorder

    #: The file and line of a call.
    Line = tuple[str, int]


#: What helpers call the least PCC that they let pass.
_LIMITS: Final = ("pcc", "pcc_threshold", "required_pcc", "expected_pcc", "min_pcc", "threshold")
_NUMBER: Final = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan)"
_PCC_IN_TEXT: Final = re.compile(rf"(?i)pcc\W*(?:is|of|value)?\W*{_NUMBER}")
_ONLY_NUMBER: Final = re.compile(rf"(?i)\s*{_NUMBER}\s*")
#: Frames between a helper's caller and ``handle``: the helper's own and those that hand it on.
_FRAMES: Final = 4


@dataclass(slots=True)
class _Open:
    """A call that has not returned, made in the test's ``line``."""

    line: Line
    calls_another: bool = False


class _Told(NamedTuple):
    """What a helper returned: whether it is content, and the PCC; None for what it did not tell."""

    passed: bool | None
    pcc: float | None


class PccCalls:
    """The comparisons that one test makes."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        recorder.helper_pccs = []
        self._open: list[_Open] = []
        self._names: dict[Line, str] = {}

    def handle(self, name: str, call: Call) -> Any:
        """Make the call; record it unless another helper that it called was recorded."""
        __tracebackhide__ = True
        if self._open:
            self._open[-1].calls_another = True
            opened = _Open(self._open[0].line)
        else:
            frame = sys._getframe(_FRAMES)  # noqa: SLF001 (as warnings and logging find a caller)
            opened = _Open((frame.f_code.co_filename, frame.f_lineno))
        self._open.append(opened)
        try:
            result = call.make()
        finally:
            self._open.pop()
        if not opened.calls_another:
            with self._recorder.observing():
                self._record(name, call, _told(result), opened.line)
        return result

    def _record(self, helper: str, call: Call, told: _Told, line: Line) -> None:
        values = list(call.arguments.items())
        if len(values) < 2 or (told.passed is None and told.pcc is None):
            return  # something else of the same name
        metric = self._name(line)
        if told.pcc is None:
            told = told._replace(pcc=self._computed(values[0][1], values[1][1]))
        limit = next((v for n, v in values[2:] if n in _LIMITS and _is_number(v)), None)
        if told.pcc is not None:
            # What a test goes on after is not its limit.
            held = limit if told.passed else None
            self._recorder.observed_pcc(metric, told.pcc, at_least=held)
        if told.passed is not False:
            self._check(helper, metric, values[0][1], values[1][1], told.pcc)

    def _computed(self, expected: object, actual: object) -> float | None:
        """Return the PCC of a comparison that told no number; None if it is too large, or lacks one."""
        from pytest_ttnn_perf.measure.pcc import compare

        if not self._is_small(expected, actual):
            return None
        pcc = compare(expected, actual).pcc
        return pcc if isfinite(pcc) else None

    def _is_small(self, *tensors: object) -> bool:
        """Tell whether tensors are on the host, and few enough elements to look at again."""
        from pytest_ttnn_perf.measure.pcc_told import elements_of

        sizes = map(elements_of, tensors)
        most = self._recorder.run.observe_pcc_elements
        return most > 0 and all(size is not None and size <= most for size in sizes)

    def _name(self, line: Line) -> str:
        if line not in self._names:
            number = 1
            while (name := f"pcc_{number}" if number > 1 else "pcc") in self._names.values() or (
                self._recorder.series_of(name) is not None
            ):
                number += 1
            self._names[line] = name
        return self._names[line]

    def _check(
        self, helper: str, metric: str, expected: object, actual: object, told: float | None
    ) -> None:
        from pytest_ttnn_perf.measure.pcc_told import passed_over

        if not self._is_small(expected, actual):
            return
        ours = passed_over(expected, actual, told)
        if ours is not None and self._recorder.helper_pccs is not None:
            found = HelperPcc(metric, helper, told, ours.pcc, ours.sentence or "")
            self._recorder.helper_pccs.append(found)

    def finish(self) -> None:
        """Nothing is left to do."""


def _told(result: Any) -> _Told:
    if result is None:  # an assertion that held
        return _Told(passed=True, pcc=None)
    if isinstance(result, tuple) and len(result) >= 2 and _is_verdict(result[0]):
        return _Told(bool(result[0]), _pcc_in(result[1]))
    return _Told(None, _pcc_in(result) if _is_number(result) else None)


def _is_verdict(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool_", "bool", "Tensor"}


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, str, bytes)) or value is None:
        return False
    return isinstance(value, (int, float)) or getattr(value, "ndim", None) == 0


def _pcc_in(value: Any) -> float | None:
    """Return the PCC that a number or a message tells; NaN is one."""
    if isinstance(value, str):
        found = _PCC_IN_TEXT.search(value) or _ONLY_NUMBER.fullmatch(value)
        return float(found[1]) if found else None
    if not _is_number(value):
        return None
    number = float(value)
    return number if not isfinite(number) or abs(number) <= 1.001 else None


FAMILY: Final = PccCalls
