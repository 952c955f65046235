"""Records as JSON: how one is written and read is declared by the annotations of its fields.

Documents of others, and what no annotation can tell, are read by ``json_value.Value``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from inspect import get_annotations
from operator import attrgetter
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import NODEFAULT

from pytest_ttnn_perf.core.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.core.hardware import Scalar


# A JSON value that knows its place in the document.

E = TypeVar("E", bound=Enum)
#: No measurement is larger, in any unit: what is counts as not finite, and arithmetic stays so.
LARGEST: Final = 1e100
#: Nothing here is counted further; floats hold every whole number up to it.
LARGEST_COUNT: Final = 10**15


class Value:
    """Reads one JSON value as the type the schema asks for, or raises DecodeError with its path."""

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
        """Return the error that says what was expected here."""
        return DecodeError(self.path, expected, describe(self.raw))

    def field(self, name: str) -> Value:
        """Return a member that must be there."""
        members = self.members()
        if name not in members:
            raise DecodeError((*self.path, name), "a value", "nothing: the field is missing")
        return Value(members[name], self, name)

    def optional(self, name: str) -> Value | None:
        """Return a member, or None where it is absent or null."""
        raw = self.members().get(name)
        return None if raw is None else Value(raw, self, name)

    def members(self) -> dict[str, object]:
        """Return the members of an object, undecoded."""
        if not isinstance(self.raw, dict):
            raise self.refusal("an object")
        return self.raw

    def items(self) -> Iterator[tuple[str, Value]]:
        """Iterate over the members of an object."""
        for name, raw in self.members().items():
            yield name, Value(raw, self, name)

    def array(self) -> Iterator[Value]:
        """Iterate over the elements of an array."""
        if not isinstance(self.raw, list):
            raise self.refusal("a list")
        for index, raw in enumerate(self.raw):
            yield Value(raw, self, index)

    def string(self) -> str:
        """Read a string."""
        if not isinstance(self.raw, str):
            raise self.refusal("a string")
        return self.raw

    def strings(self) -> tuple[str, ...]:
        """Read an array of strings."""
        if isinstance(self.raw, list) and all(isinstance(raw, str) for raw in self.raw):
            return tuple(self.raw)
        return tuple(item.string() for item in self.array())  # which says what is wrong

    def boolean(self) -> bool:
        """Read true or false."""
        if not isinstance(self.raw, bool):
            raise self.refusal("true or false")
        return self.raw

    def number(self) -> float:
        """Read a finite number."""
        # JSON's true is Python's 1: a boolean among samples is a mistake, not a measurement.
        if isinstance(self.raw, bool) or not isinstance(self.raw, (int, float)):
            raise self.refusal("a number")
        if not -LARGEST <= self.raw <= LARGEST:
            raise self.refusal("a finite number")
        return self.raw

    def integer(self, *, at_least: int = 0) -> int:
        """Read a whole number."""
        raw = self.raw
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise self.refusal(f"a whole number of at least {at_least}")
        if not at_least <= raw <= LARGEST_COUNT:
            raise self.refusal(f"a whole number of at least {at_least}")
        return raw

    def sample(self) -> float:
        """Read a number, or what stands for "not finite": null here, NaN by other producers."""
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
        """Read a member of a closed enum by its value."""
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
    """What a field's type does not tell; stands in its annotation: ``Annotated[str, Mark.KEY]``."""

    #: The name of the member that holds the record, which is no member of its own.
    KEY = "key"
    #: Left out where it is the default; ``Omit[...]`` for short.
    OMIT = "omit"
    #: Must be there, though the record has a default.
    REQUIRED = "required"
    #: A tuple of records that is written as an object, by their keys.
    BY_KEY = "by key"
    #: Read, but written by those who lay out the file.
    READ = "read"
    #: No part of the document.
    ABSENT = "absent"


class Coded(NamedTuple):
    """Reads, and if need be writes, a field whose JSON its type does not tell."""

    read: Callable[[Value], Any]
    write: Callable[[Any], object] | None = None


class Inline(NamedTuple):
    """The members of this record stand among those of the one that holds it.

    ``read`` takes these members and their key; None for what the record's class declares.
    """

    read: Callable[[dict[str, object], str], Any] | None = None


INLINE: Final = Inline()
#: A field that is left out where it is the default; others are always written.
Omit = Annotated[T, Mark.OMIT]


def decode(kind: type[T], raw: object, *, key: str = "") -> T:
    """Read a record, as its annotations declare it; members that these do not name are ignored.

    Absent and null are the default; a field that has none must be there, unless it may be None.
    What goes by another name in JSON has that name in its annotation. Lists and dictionaries are
    taken as they are, tuples and mappings are read. A class may have a ``from_json`` that makes its
    records of the fields that were there.

    Raises:
        DecodeError: with the path of the value that is not what it should be.
    """
    return cast("T", _codec_of(cast("Any", kind)).decode(raw, key))


def decode_known(kind: type[T], value: Value) -> T:
    """Read those members of a record that are as they should be."""
    known = {}
    for name, raw in value.members().items():
        with contextlib.suppress(DecodeError):
            decode(kind, {name: raw})
            known[name] = raw
    return decode(kind, known)


def encode(record: object) -> dict[str, Any]:
    """Return a record as plain JSON, all but its key."""
    return _codec_of(cast("Any", type(record))).encode(record)


class _Codec:
    """How the records of one class are read and written."""

    __slots__ = ("_absent", "_key", "_parts", "_read", "_written", "key_path", "make")

    def __init__(self, kind: Any) -> None:
        self.make = getattr(kind, "from_json", kind)
        self._key: str | None = None
        self.key_path = ""
        self._parts: list[tuple[str, Any, bool]] = []
        self._absent: dict[str, Any] = {}
        self._read: list[tuple[str, str, _Read, bool]] = []
        self._written: list[tuple[str, str, Callable[..., Any] | None, object]] = []
        defaults = defaults_of(kind)
        for name, hint in _hints(kind).items():
            kept, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            default = defaults.get(name, _ALWAYS)
            part = next((mark for mark in marks if isinstance(mark, Inline)), None)
            if Mark.KEY in marks:
                self._key = self.key_path = name
            elif part is not None:
                self._add_part(name, _codec_of(kept), part.read, default)
            elif Mark.ABSENT not in marks:
                self._add_member(name, kept, marks, default)

    def _add_part(self, name: str, codec: _Codec, read: Any, default: object) -> None:
        self._parts.append((name, read or codec, default is not _ALWAYS))
        self._written.append(("", name, codec.add_to, default))
        if codec.key_path:
            self.key_path = f"{name}.{codec.key_path}"

    def _add_member(self, name: str, hint: Any, marks: list[Any], default: object) -> None:
        member = next((mark for mark in marks if isinstance(mark, str)), name)
        coded = next((mark for mark in marks if isinstance(mark, Coded)), None)
        read, write = _coding(hint, coded, by_key=Mark.BY_KEY in marks)
        if default is _ALWAYS and type(None) in get_args(hint):
            self._absent[name] = None
        required = default is _ALWAYS and name not in self._absent
        self._read.append((member, name, read, required or Mark.REQUIRED in marks))
        if Mark.READ not in marks:
            self._written.append((member, name, write, default if Mark.OMIT in marks else _ALWAYS))

    def decode(self, raw: object, key: str = "") -> Any:
        """Read a record that stands under a key."""
        return self.make(**self.fields(raw, key))

    def fields(self, raw: object, key: str) -> dict[str, Any]:
        """Return the fields that are there."""
        if not isinstance(raw, dict):
            raise Value(raw).refusal("an object")
        found = self._absent.copy()
        if self._key is not None:
            found[self._key] = key
        for name, part, has_default in self._parts:
            if not isinstance(part, _Codec):
                found[name] = part(raw, key)
            elif (fields := part.fields(raw, key)) or not has_default:
                found[name] = part.make(**fields)
        member = ""
        try:
            for member, name, read, required in self._read:
                value = raw.get(member)
                if value is not None:
                    found[name] = read(value)
                elif required:
                    found[name] = read(_there(raw, member))
        except DecodeError as error:
            raise error.below(member) from None
        return found

    def encode(self, record: object) -> dict[str, Any]:
        """Write a record."""
        encoded: dict[str, Any] = {}
        self.add_to(encoded, record)
        return encoded

    def add_to(self, encoded: dict[str, Any], record: object) -> None:
        """Write the members of a record among others."""
        for member, name, write, default in self._written:
            value = getattr(record, name)
            if value is default:
                continue
            if default is not _ALWAYS and value == default:
                continue
            if write is None or value is None:
                encoded[member] = value
            elif member:
                encoded[member] = write(value)
            else:
                write(encoded, value)


#: Stands for the default of a field that has none, or that is written in any case.
_ALWAYS: Final = object()


#: How records of a class are read and written; found out when the first one is.
_codec_of: Final[Callable[[Any], _Codec]] = cache(_Codec)


def _hints(kind: Any) -> dict[str, Any]:
    """Return the annotations of a named tuple's fields, or of a dataclass'."""
    if _is_named_tuple(kind):
        return get_type_hints(kind, include_extras=True)
    # In half the time of get_type_hints, which also looks for names within what it evaluates.
    found: dict[str, Any] = {}
    for base in reversed(cast("type", kind).__mro__[:-1]):
        found |= get_annotations(base, eval_str=True)
    return found


def defaults_of(kind: Any) -> dict[str, object]:
    """Return the defaults of a record's fields."""
    if _is_named_tuple(kind):
        return dict(kind._field_defaults)
    names, values = kind.__struct_fields__, kind.__struct_defaults__
    defaults = zip(names[len(names) - len(values) :], values, strict=True)
    return {
        name: default.factory() if hasattr(default, "factory") else default
        for name, default in defaults
        if default is not NODEFAULT
    }


def _there(raw: dict[str, object], member: str) -> object:
    if member not in raw:
        raise DecodeError((), "a value", "nothing: the field is missing")
    return raw[member]


def _coding(
    hint: Any, coded: Coded | None = None, *, by_key: bool = False
) -> tuple[_Read, _Write | None]:
    """Return how values of a type are read and written; None for those that are plain JSON."""
    if get_origin(hint) is Annotated:
        hint, coded = get_args(hint)[:2]
    if coded is not None:
        custom = coded.read
        write = coded.write or _coding(hint)[1]
        return lambda raw: custom(Value(raw)), write
    arguments = get_args(hint)
    if type(None) in arguments and len(arguments) == 2:
        (hint,) = (argument for argument in arguments if argument is not type(None))
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum_reader(hint), attrgetter("_value_")
    if _is_record(hint):
        codec = _codec_of(hint)
        return codec.decode, codec.encode
    return _collection_coding(get_origin(hint), get_args(hint), by_key=by_key)


def _collection_coding(
    origin: Any, arguments: tuple[Any, ...], *, by_key: bool
) -> tuple[_Read, _Write | None]:
    if origin is list or origin is dict:
        return _list if origin is list else lambda raw: Value(raw).members(), None
    if origin is Union or origin is UnionType:
        return _scalar, None
    if arguments[0] is str and origin is not Mapping:
        if origin is tuple:
            return _strings, list
        return lambda raw: frozenset(_strings(raw)), sorted
    if by_key:
        codec = _codec_of(arguments[0])
        key_of, read_all = attrgetter(codec.key_path), _members_reader(codec.decode, keyed=True)
        return (
            lambda raw: tuple(read_all(raw).values()),
            lambda records: {key_of(record): codec.encode(record) for record in records},
        )
    item = arguments[1] if origin is Mapping else arguments[0]
    read, write = _coding(item)
    if origin is Mapping:
        read_members = _members_reader(read, keyed=_is_record(item))
        if write is None:
            return read_members, dict
        return read_members, lambda items: {name: write(item) for name, item in items.items()}
    if write is None:
        return _items_reader(read), list
    return _items_reader(read), lambda items: [write(item) for item in items]


def _items_reader(read: _Read) -> _Read:
    def items(raw: object) -> tuple[Any, ...]:
        given, found = _list(raw), []
        try:
            for item in given:
                found.append(read(item))  # noqa: PERF401  # their number is the place of an error
        except DecodeError as error:
            raise error.below(len(found)) from None
        return tuple(found)

    return items


def _members_reader(read: Callable[..., Any], *, keyed: bool) -> Callable[[object], dict[str, Any]]:
    def members(raw: object) -> dict[str, Any]:
        given, found, name = Value(raw).members(), {}, ""
        try:
            for name, item in given.items():
                found[name] = read(item, name) if keyed else read(item)
        except DecodeError as error:
            raise error.below(name) from None
        return found

    return members


def _is_named_tuple(hint: Any) -> bool:
    return hasattr(hint, "_field_defaults")


def _is_record(hint: Any) -> bool:
    return _is_named_tuple(hint) or hasattr(hint, "__struct_fields__")


def _enum_reader(kind: type[Enum]) -> _Read:
    by_value = {member.value: member for member in kind}

    def member(raw: object) -> Enum:
        found = by_value.get(raw) if isinstance(raw, str) else None
        return Value(raw).one_of(kind) if found is None else found

    return member


# Most values are right: a closer look, and the words for what is wrong, are those of Value.


def _string(raw: object) -> str:
    return raw if isinstance(raw, str) else Value(raw).string()


def _strings(raw: object) -> tuple[str, ...]:
    return tuple(raw) if _is_strings(raw) else Value(raw).strings()


def _is_strings(raw: object) -> TypeGuard[list[str]]:
    return type(raw) is list and set(map(type, raw)) <= _STRINGS


def _number(raw: object) -> float:
    return raw if type(raw) is float and -LARGEST <= raw <= LARGEST else Value(raw).number()


def _integer(raw: object) -> int:
    return raw if type(raw) is int and 0 <= raw <= LARGEST_COUNT else Value(raw).integer()


def _scalar(raw: object) -> Scalar:
    return raw if raw is None or isinstance(raw, (str, bool)) else Value(raw).scalar()


def _list(raw: object) -> list[Any]:
    if not isinstance(raw, list):
        raise Value(raw).refusal("a list")
    return raw


_STRINGS: Final = frozenset({str})
_PLAIN: Final[Mapping[Any, tuple[_Read, _Write | None]]] = {
    str: (_string, None),
    float: (_number, None),
    int: (_integer, None),
    bool: (lambda raw: Value(raw).boolean(), None),
    Path: (lambda raw: Path(_string(raw)), str),
}
