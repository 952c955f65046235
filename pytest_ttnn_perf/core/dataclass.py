"""``dataclass`` as in the standard library, for classes that cost little until they are used.

The standard one writes and compiles up to seven methods per class when a module is imported, and a
gated run imports about 120 records, makes 50 of them, and most of these once. Here the first
instances of a class are filled field by field, then it gets its ``__init__``; it shares the other
methods with all classes. ``fields``, ``replace`` and ``asdict`` work as ever. For classes with
slots only.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

__all__ = ["dataclass", "defaults_of"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from dataclasses import dataclass
else:

    def dataclass(
        *,
        slots: bool,
        frozen: bool = False,
        eq: bool = True,
        repr: bool = True,  # noqa: A002  # as the standard one has it
    ) -> Callable[[type], type]:
        """Return a decorator for a class with slots."""
        assert slots, "without slots, use the one of the standard library"
        methods: dict[str, Any] = {"__getstate__": _values, "__setstate__": _restore}
        if frozen:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if eq:
            methods |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
        if repr:
            methods["__repr__"] = _represent
        return lambda cls: _made_anew(cls, methods)


class _Fields:
    """``__dataclass_fields__``: made when somebody asks for them."""

    __slots__ = ("annotations", "defaults", "owner")

    def __init__(self, annotations: dict[str, str], defaults: dict[str, Any]) -> None:
        self.annotations = annotations
        self.defaults = defaults
        self.owner: Any = None

    def __get__(self, instance: object, owner: object) -> dict[str, Field[Any]]:
        found = {}
        for name, declared in self.described():
            # What the standard library notes of a field, in the place where it does.
            declared.name, declared.type = name, self.annotations[name]
            declared.kw_only = declared.kw_only is True
            declared._field_type = _FIELD_TYPE  # type: ignore[attr-defined]  # noqa: SLF001
            found[name] = declared
        self.owner.__dataclass_fields__ = found
        return found

    def described(self) -> Iterator[tuple[str, Field[Any]]]:
        """Yield the fields by name."""
        for name in self.annotations:
            default = self.defaults.get(name, MISSING)
            yield (
                name,
                default if isinstance(default, Field) else dataclasses.field(default=default),
            )


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Standard:
    """A class as the standard library makes it."""

    one: int


#: How the standard library tells a field from what only looks like one, such as a ``ClassVar``.
_FIELD_TYPE: Final = dataclasses.fields(_Standard)[0]._field_type  # type: ignore[attr-defined]  # noqa: SLF001
#: So many instances of a class are made before its ``__init__`` is compiled, which takes as long as
#: filling thirty. A run makes most of its records once or twice, and some with every test.
_FEW: Final = 3


def _made_anew(cls: type, methods: dict[str, Any]) -> type:
    """Return a class like this one, with slots for its fields and the methods that it lacks."""
    namespace = dict(cls.__dict__)
    own = {
        name: annotation
        for name, annotation in namespace.get("__annotations__", {}).items()
        if "ClassVar" not in annotation
    }
    annotations: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited = base.__dict__.get("_declared")
        if inherited is not None:
            annotations |= inherited.annotations
            defaults |= inherited.defaults
    namespace["__slots__"] = tuple(name for name in own if name not in annotations)
    annotations |= own
    namespace["__match_args__"] = tuple(annotations)
    defaults |= {name: namespace.pop(name) for name in own if name in namespace}
    declared = _Fields(annotations, defaults)
    namespace |= {"__dataclass_fields__": declared, "_declared": declared}
    for name in ("__dict__", "__weakref__"):  # what a class without slots has
        namespace.pop(name, None)

    few = iter(range(_FEW))

    def init(self: object, *args: Any, **kwargs: Any) -> None:
        if next(few, None) is None or not _fill(self, declared, args, kwargs):
            made.__init__ = _compiled_init(made, declared)
            made.__init__(self, *args, **kwargs)

    made: Any = type(cls)(cls.__name__, cls.__bases__, {"__init__": init, **methods, **namespace})
    made.__qualname__ = cls.__qualname__
    declared.owner = made
    return made  # type: ignore[no-any-return]


def _fill(self: Any, declared: _Fields, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Do what a compiled ``__init__`` does; False if the arguments are not what it takes."""
    by_place, by_name = list(reversed(args)), dict(kwargs)
    for name, field in declared.described():
        if field.init and by_place and field.kw_only is not True:
            value = by_place.pop()
        elif field.init and name in by_name:
            value = by_name.pop(name)
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        elif field.default is not MISSING:
            value = field.default
        elif field.init:
            return False
        else:
            continue
        object.__setattr__(self, name, value)
    if by_place or by_name:
        return False
    if hasattr(self, "__post_init__"):
        self.__post_init__()
    return True


def _compiled_init(cls: Any, declared: _Fields) -> Any:
    """Write and compile the ``__init__`` of a class."""
    names: dict[str, Any] = {"MISSING": MISSING}
    positional, by_keyword, body = ["self"], ["*"], []
    for name, field in declared.described():
        parameter, value = name, name
        if field.default_factory is not MISSING:
            names[f"new_{name}"] = field.default_factory
            parameter, value = f"{name}=MISSING", f"new_{name}()"
            value += f" if {name} is MISSING else {name}" if field.init else ""
        elif field.default is not MISSING:
            names[f"default_{name}"] = field.default
            parameter = f"{name}=default_{name}"
            value = name if field.init else f"default_{name}"
        elif not field.init:
            continue
        names[f"set_{name}"] = getattr(cls, name).__set__
        body.append(f"set_{name}(self, {value})")
        if field.init:
            (by_keyword if field.kw_only is True else positional).append(parameter)
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = positional if by_keyword == ["*"] else positional + by_keyword
    heading = f"def __init__({', '.join(parameters)}):"
    exec("\n  ".join([heading, *body, "pass"]), names)  # as dataclasses does it
    init = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def defaults_of(cls: Any) -> dict[str, object]:
    """Return the defaults of a class' fields, in less time than ``dataclasses.fields`` takes."""
    found: dict[str, object] = {}
    for name, default in cls.__dict__["_declared"].defaults.items():
        if not isinstance(default, Field):
            found[name] = default
        elif default.default is not MISSING:
            found[name] = default.default
        elif default.default_factory is not MISSING:
            found[name] = default.default_factory()
    return found


@cache
def _compared(cls: Any) -> Callable[[object], Any]:
    """Return what takes those values of an instance that tell whether it equals another."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    return attrgetter(*names) if names else lambda _: ()


def _equal(self: Any, other: Any) -> Any:
    cls = self.__class__
    if other.__class__ is not cls:
        return NotImplemented
    values = _compared(cls)
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(_compared(self.__class__)(self))


@recursive_repr()
def _represent(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{self.__class__.__qualname__}({values})"


def _refuse_to_set(_: object, name: str, value: object) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


# For copies and pickles: a frozen instance refuses what they would do by themselves.


def _values(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, values: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), values, strict=True):
        object.__setattr__(self, field.name, value)
