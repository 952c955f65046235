"""Functions whose calls are observed stay what they were in every other respect."""

from __future__ import annotations

import functools
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.measure.helper_families import observe_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.measure.helper_families import Call


def plain(a: int, b: int = 2, *, c: int = 3) -> tuple[int, int, int]:
    """Say what it was given."""
    return a, b, c


def _doubling(function: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(function)
    def twice(*args: int, **kwargs: int) -> int:
        return 2 * function(*args, **kwargs)

    return twice


@_doubling
def decorated(args: int) -> int:
    return args


def _closed_over(args: int, kwargs: int) -> Callable[[int], int]:
    def add(value: int) -> int:
        return value + args + kwargs

    return add


class _Base:
    def __init__(self) -> None:
        self.made = True


class _Derived(_Base):
    def method(self, value: int, more: int = 1) -> tuple[bool, int]:
        super().__init__()
        return self.made, value + more


adding = _closed_over(1, 2)
FUNCTIONS: tuple[Any, ...] = (plain, decorated, adding, _Derived.method)


@pytest.fixture
def seen() -> Iterator[list[dict[str, Any]]]:
    """Observe all of these functions; return the arguments of their calls."""
    calls: list[dict[str, Any]] = []

    def handle(call: Call) -> Any:
        calls.append(dict(call.arguments))
        return call.make()

    observed = [observe_calls(function, handle) for function in FUNCTIONS]
    yield calls
    for undo in observed:
        undo()


def test_calls_are_seen_and_return_what_they_did(seen: list[dict[str, Any]]) -> None:
    assert plain(1) == (1, 2, 3)
    assert plain(1, b=5, c=6) == (1, 5, 6)
    assert decorated(4) == 8
    assert adding(4) == 7
    assert _Derived().method(4) == (True, 5)

    assert seen[:2] == [{"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "c": 6}]
    assert (seen[2], seen[3], seen[4]["value"]) == ({"args": 4}, {"value": 4}, 4)


def test_errors_are_those_of_the_function(seen: list[dict[str, Any]]) -> None:
    with pytest.raises(TypeError, match=r"plain\(\) missing 1 required positional argument: 'a'"):
        plain()  # type: ignore[call-arg]
    assert seen == [{}]


@pytest.mark.usefixtures("seen")
def test_name_signature_source_and_identity_stay() -> None:
    assert str(inspect.signature(plain)) == "(a: 'int', b: 'int' = 2, *, c: 'int' = 3) -> " + (
        "'tuple[int, int, int]'"
    )
    assert (plain.__name__, plain.__defaults__) == ("plain", (2,))
    assert (plain.__doc__ or "").startswith("Say what")
    assert inspect.getsource(plain).startswith("def plain")
    assert pickle.loads(pickle.dumps(plain)) is plain
