"""The dataclass that costs little until it is used, beside the one of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from pytest_ttnn_perf.core.dataclass import dataclass

BOTH = pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass], ids=["ours", "standard"])


def point(make: Any) -> Any:
    """Return a class with every kind of field that this package uses."""

    @make(frozen=True, slots=True)
    class Point:
        """A place."""

        SIZE: ClassVar[int] = 2
        x: int
        y: int = 0
        labels: dict[str, str] = field(default_factory=dict)
        kept: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
        unit: str = field(default="m", kw_only=True)

        @property
        def both(self) -> tuple[int, int]:
            return self.x, self.y

    return Point


def family(make: Any) -> tuple[Any, Any]:
    """Return a class, and one that inherits from it."""

    @make(slots=True, eq=False, repr=False)
    class Base:
        a: int
        b: int = 2

        def total(self) -> int:
            return self.a + self.b

    @make(slots=True)
    class Derived(Base):
        b: int = 5
        c: int = 3

        def __post_init__(self) -> None:
            self.c += 1

    return Base, Derived


@dataclass(frozen=True, slots=True)
class Kept:
    """At the top of a module, where a pickle finds it."""

    name: str
    rows: tuple[int, ...] = ()


@BOTH
def test_instances_are_as_the_standard_ones(make: Any) -> None:
    cls = point(make)
    made = cls(1, labels={"a": "b"}, unit="mm")

    assert repr(made).endswith(".Point(x=1, y=0, labels={'a': 'b'}, unit='mm')")
    assert (made.both, made.SIZE, made.kept, cls.__doc__) == ((1, 0), 2, [], "A place.")
    assert made == cls(1, 0, {"a": "b"}, unit="mm") != cls(1, 0, {"a": "b"})
    assert made != (1, 0)
    made.kept.append(1)
    assert made == cls(1, 0, {"a": "b"}, unit="mm")  # what is kept does not count
    assert dataclasses.replace(made, y=3) == cls(1, 3, {"a": "b"}, unit="mm")
    assert [item.name for item in dataclasses.fields(cls)] == ["x", "y", "labels", "kept", "unit"]
    assert dataclasses.asdict(made)["labels"] == {"a": "b"}
    assert cls(1).labels is not cls(1).labels
    assert cls.__match_args__[:3] == ("x", "y", "labels")
    assert copy.deepcopy(made) == made
    match made:
        case cls(1, y):
            assert y == 0


@BOTH
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), r"Point.__init__\(\) missing 1 required positional argument: 'x'"),
        (
            (1, 2, {}, []),
            r"Point.__init__\(\) takes from 2 to 4 positional arguments but 5 were given",
        ),
    ],
    ids=["too few", "too many"],
)
def test_wrong_arguments_are_refused_in_the_same_words(
    make: Any, arguments: tuple[object, ...], words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        point(make)(*arguments)


@BOTH
def test_frozen_instances_refuse_changes(make: Any) -> None:
    made = point(make)(1)

    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del made.x
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)  # as one of its values is


@BOTH
def test_classes_inherit_fields_and_methods(make: Any) -> None:
    base, derived = family(make)
    made = derived(1)

    assert (made.total(), made.c, made) == (6, 4, derived(1, 5, 3))
    assert base(1) != base(1)
    assert not hasattr(made, "__dict__")
    with pytest.raises(AttributeError):
        made.d = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


def test_copies_and_pickles_of_frozen_instances_are_equal() -> None:
    made = Kept("a", (1, 2))

    assert copy.copy(made) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made
    assert hash(pickle.loads(pickle.dumps(made))) == hash(made)


def test_nothing_is_compiled_for_the_first_instances() -> None:
    cls = point(dataclass)
    waiting = cls.__init__

    few = [cls(number) for number in range(3)]
    assert cls.__init__ is waiting
    many = [cls(number) for number in range(3)]

    assert cls.__init__ is not waiting
    assert few == many


@BOTH
@pytest.mark.parametrize("before", [0, 5], ids=["first", "later"])
def test_wrong_names_are_refused_in_the_same_words(make: Any, before: int) -> None:
    cls = point(make)
    for number in range(before):
        cls(number)

    with pytest.raises(TypeError, match="got an unexpected keyword argument 'z'"):
        cls(1, z=2)
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'kept'"):
        cls(1, kept=[2])
    with pytest.raises(TypeError, match="got multiple values for argument 'x'"):
        cls(1, x=2)


def test_fields_are_described_as_the_standard_library_does() -> None:
    ours, standard = (
        dataclasses.fields(point(make)) for make in (dataclass, dataclasses.dataclass)
    )
    assert list(map(repr, ours)) == list(map(repr, standard))
