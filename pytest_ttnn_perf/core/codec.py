"""Records as JSON, read and written by the annotations of their fields.

``msgspec`` makes the records but does not read them: its errors lose the keys of objects, it
refuses null for a default, turns whole numbers into floats, and has no record whose members stand
among those of another. Documents of others are read by ``Value``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, partial
from inspect import get_annotations
from operator import attrgetter
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from pytest_ttnn_perf.core.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.core.hardware import Scalar


E = TypeVar("E", bound=Enum)
#: No measurement is larger, in any unit: what is counts as not finite, and arithmetic stays so.
LARGEST: Final = 1e100
#: Nothing here is counted further; floats hold every whole number up to it.
LARGEST_COUNT: Final = 10**15


class Value:
    """A JSON value with its path, to be read as a type."""

    __slots__ = ("_parent", "_step", "raw")

    def __init__(
        self, raw: object, parent: Value | None = None, step: str | int | None = None
    ) -> None:
        self.raw = raw
        # The path is walked only when something is wrong: most values are right.
        self._parent = parent
        self._step = step

    @property
    def path(self) -> tuple[str | int, ...]:
        """The keys and indices that lead here from the document's root."""
        if self._parent is None or self._step is None:
            return ()
        return (*self._parent.path, self._step)

    def refusal(self, expected: str) -> DecodeError:
        return DecodeError(self.path, expected, describe(self.raw))

    def field(self, name: str) -> Value:
        members = self.members()
        if name not in members:
            raise DecodeError((*self.path, name), "a value", "nothing: the field is missing")
        return Value(members[name], self, name)

    def optional(self, name: str) -> Value | None:
        """Return a member, or None where it is absent or null."""
        raw = self.members().get(name)
        return None if raw is None else Value(raw, self, name)

    def members(self) -> dict[str, object]:
        if not isinstance(self.raw, dict):
            raise self.refusal("an object")
        return self.raw

    def items(self) -> Iterator[tuple[str, Value]]:
        for name, raw in self.members().items():
            yield name, Value(raw, self, name)

    def array(self) -> Iterator[Value]:
        if not isinstance(self.raw, list):
            raise self.refusal("a list")
        for index, raw in enumerate(self.raw):
            yield Value(raw, self, index)

    def string(self) -> str:
        if not isinstance(self.raw, str):
            raise self.refusal("a string")
        return self.raw

    def strings(self) -> tuple[str, ...]:
        return tuple(item.string() for item in self.array())

    def boolean(self) -> bool:
        if not isinstance(self.raw, bool):
            raise self.refusal("true or false")
        return self.raw

    def number(self) -> float:
        # JSON's true is Python's 1: a boolean among samples is a mistake, not a measurement.
        if isinstance(self.raw, bool) or not isinstance(self.raw, (int, float)):
            raise self.refusal("a number")
        if not -LARGEST <= self.raw <= LARGEST:
            raise self.refusal("a finite number")
        return self.raw

    def integer(self, *, at_least: int = 0) -> int:
        raw = self.raw
        if isinstance(raw, int) and not isinstance(raw, bool) and at_least <= raw <= LARGEST_COUNT:
            return raw
        raise self.refusal(f"a whole number of at least {at_least}")

    def sample(self) -> float:
        """Read a number; NaN for null and for infinite numbers."""
        raw = self.raw
        if raw is None:
            return math.nan
        if isinstance(raw, (int, float)) and not -LARGEST <= raw <= LARGEST:
            return math.nan
        return self.number()

    def scalar(self) -> Scalar:
        """Read a string, number, boolean or null."""
        if isinstance(self.raw, (int, float)) and not isinstance(self.raw, bool):
            return self.number()
        if self.raw is not None and not isinstance(self.raw, (str, bool)):
            raise self.refusal("a string, a number, true, false or null")
        return self.raw

    def one_of(self, choices: type[E]) -> E:
        try:
            return choices(self.raw)
        except ValueError:
            known = ", ".join(repr(choice.value) for choice in choices)
            raise self.refusal(f"one of {known}") from None


def describe(raw: object) -> str:
    """Name a JSON value briefly, for an error message."""
    if isinstance(raw, dict):
        return "an object"
    if isinstance(raw, list):
        return f"a list of {len(raw)}"
    if raw is None:
        return "null"
    text = repr(raw)
    return text if len(text) <= 60 else text[:57] + "..."


def decode_format(document: Value, *, current: int, what: str) -> int:
    """Read the schema's version; refuse files of a newer one."""
    version = document.field("format").integer(at_least=1)
    if version > current:
        raise DecodeError(
            (*document.path, "format"),
            f"{what} of format {current} or older",
            f"format {version}: it was written by a newer pytest-ttnn-perf; upgrade this one",
        )
    return version


T = TypeVar("T")
_Read = Callable[[Any], Any]
_Write = Callable[[Any], Any]


class Mark(Enum):
    """A property of a field beyond its type: ``Annotated[str, Mark.KEY]``."""

    #: The name of the member that holds the record, which is no member of its own.
    KEY = "key"
    #: Left out where it is the default; ``Omit[...]`` for short.
    OMIT = "omit"
    #: Must be there, though the record has a default.
    REQUIRED = "required"
    #: A record whose members stand among those of the one that holds it.
    INLINE = "inline"


class Coding:
    """Functions that read and write a field of an unusual form."""

    def __init__(
        self, read: Callable[[Value], Any], write: Callable[[Any], object] | None = None
    ) -> None:
        self.read = read
        self.write = write


#: A field that is left out where it is the default; others are always written.
Omit = Annotated[T, Mark.OMIT]


def decode(kind: type[T], raw: object, *, key: str = "") -> T:
    """Read a record by its annotations.

    Other members are ignored. Absent and null are the default; a field that has none must be there,
    unless it may be None. A field with another name in JSON has that name in its annotation. Lists
    and dictionaries are taken as they are, tuples and mappings are read. A class may have a
    ``from_json`` that makes its records of the fields that were there.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    return cast("T", _codec_of(cast("Any", kind)).decode(raw, key))


def decode_known(kind: type[T], value: Value) -> T:
    """Read the valid members of a record, and leave out the others."""
    known = {}
    for name, raw in value.members().items():
        with contextlib.suppress(DecodeError):
            decode(kind, {name: raw})
            known[name] = raw
    return decode(kind, known)


def encode(record: Struct) -> dict[str, Any]:
    """Return a record as plain JSON, all but its key."""
    return _codec_of(type(record)).encode(record)


#: Stands for the default of a field that has none, or that is written in any case.
_ALWAYS: Final = object()


class _Codec:
    """Reader and writer for the records of one class."""

    def __init__(self, kind: type[Struct]) -> None:
        self._make = getattr(kind, "from_json", kind)
        self._key: str | None = None
        #: What fields are that may be None, have no default, and are absent.
        self._absent: dict[str, Any] = {}
        #: Field, member (none of a record between others), reader, writer, whether it must be
        #: there, and the value of which it is left out.
        self._fields: list[tuple[str, str, Callable[..., Any], _Write | None, bool, object]] = []
        defaults = {field.name: field for field in fields(kind)}
        for base in reversed(kind.__mro__[:-1]):
            annotations: dict[str, Any] = get_annotations(base, eval_str=True)
            for name, hint in annotations.items():
                kept, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
                if Mark.KEY in marks:
                    self._key = name
                else:
                    self._add(name, kept, marks, _default_of(defaults[name]))

    def _add(self, name: str, hint: Any, marks: list[Any], default: object) -> None:
        if default is _ALWAYS and type(None) in get_args(hint):
            self._absent[name] = None
        required = default is _ALWAYS and name not in self._absent
        own_name = next((mark for mark in marks if isinstance(mark, str)), name)
        member = "" if Mark.INLINE in marks else own_name
        read, write = _coding(hint, next((m for m in marks if isinstance(m, Coding)), None))
        omitted = default if Mark.OMIT in marks else _ALWAYS
        self._fields.append(
            (name, member, read, write, required or Mark.REQUIRED in marks, omitted)
        )

    def decode(self, raw: object, key: str = "") -> Any:
        """Read a record that stands under a key."""
        if not isinstance(raw, dict):
            raise Value(raw).refusal("an object")
        found = self._absent.copy()
        if self._key is not None:
            found[self._key] = key
        for name, member, read, _, required, _ in self._fields:
            if not member:
                found[name] = read(raw, key)
                continue
            value = raw.get(member)
            if value is None and not required:
                continue
            try:
                if member not in raw:
                    raise DecodeError((), "a value", "nothing: the field is missing")
                found[name] = read(value)
            except DecodeError as error:
                raise error.below(member) from None
        return self._make(**found)

    def encode(self, record: object) -> dict[str, Any]:
        encoded: dict[str, Any] = {}
        for name, member, _, write, _, omitted in self._fields:
            value = getattr(record, name)
            if value == omitted:
                continue
            written = value if write is None or value is None else write(value)
            encoded |= {member: written} if member else written
        return encoded


#: How records of a class are read and written; found out when the first one is.
_codec_of: Final[Callable[[Any], _Codec]] = cache(_Codec)


def _default_of(field: FieldInfo) -> object:
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return _ALWAYS if field.default is NODEFAULT else field.default


def _coding(hint: Any, coding: Coding | None = None) -> tuple[_Read, _Write | None]:
    """Return reader and writer for a type; no writer for plain JSON."""
    if get_origin(hint) is Annotated:
        hint, coding = get_args(hint)[:2]
    if coding is not None:
        custom = coding.read
        return lambda raw, _="": custom(Value(raw)), coding.write or _coding(hint)[1]
    arguments = get_args(hint)
    if type(None) in arguments and len(arguments) == 2:
        (hint,) = (argument for argument in arguments if argument is not type(None))
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda raw: Value(raw).one_of(hint), attrgetter("value")
    if isinstance(hint, type) and issubclass(hint, Struct):
        codec = _codec_of(hint)
        return codec.decode, codec.encode
    return _collection_coding(get_origin(hint), get_args(hint))


def _collection_coding(origin: Any, arguments: Any) -> tuple[_Read, _Write | None]:
    if origin is list:
        return lambda raw: [item.raw for item in Value(raw).array()], None
    if origin is dict:
        return lambda raw: Value(raw).members(), None
    if origin is Union or origin is UnionType:
        return lambda raw: Value(raw).scalar(), None
    if origin is frozenset:
        return lambda raw: frozenset(Value(raw).strings()), sorted
    if origin is Mapping:
        kind = arguments[1]
        read, write = _coding(kind)
        keyed = isinstance(kind, type) and issubclass(kind, Struct)
        members = partial(_read_members, read, keyed=keyed)
        if write is None:
            return members, dict
        return members, lambda items: {name: write(item) for name, item in items.items()}
    read, write = _coding(arguments[0])
    if write is None:
        return partial(_read_items, read), list
    return partial(_read_items, read), lambda items: [write(item) for item in items]


def _read_items(read: _Read, raw: object) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise Value(raw).refusal("a list")
    found: list[Any] = []
    try:
        for item in raw:
            found.append(read(item))  # noqa: PERF401  # their number is the place of an error
    except DecodeError as error:
        raise error.below(len(found)) from None
    return tuple(found)


def _read_members(read: Callable[..., Any], raw: object, *, keyed: bool) -> dict[str, Any]:
    given, found, name = Value(raw).members(), {}, ""
    try:
        for name, item in given.items():
            found[name] = read(item, name) if keyed else read(item)
    except DecodeError as error:
        raise error.below(name) from None
    return found


_PLAIN: Final[Mapping[Any, tuple[_Read, _Write | None]]] = {
    str: (lambda raw: raw if isinstance(raw, str) else Value(raw).string(), None),
    float: (lambda raw: Value(raw).number(), None),
    int: (lambda raw: Value(raw).integer(), None),
    bool: (lambda raw: Value(raw).boolean(), None),
    Path: (lambda raw: Path(Value(raw).string()), str),
}
