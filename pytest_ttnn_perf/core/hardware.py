"""Hardware, configuration and environment of a test; names of systems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import Coding, Mark, Omit

if TYPE_CHECKING:
    from collections.abc import Iterable


#: What stands in a key for an architecture or a board that nothing tells.
UNKNOWN: Final = "unknown"
#: A value of a configuration or a fact.
Scalar = str | int | float | bool | None


#: A name that may be missing; an empty one is.
_Name = Annotated[str | None, Mark.OMIT, Coding(lambda value: value.string() or None)]


class Hardware(Struct, frozen=True):
    """A system and the mesh that a test opened on it.

    ``mesh`` is None without a device. ``simulated``: a mock or a simulator stands in for it.
    ``host`` is the machine, where machines of one kind have keys of their own.
    """

    arch: str
    board: str
    mesh: _Name = None
    simulated: Omit[bool] = False
    host: _Name = None

    @classmethod
    def from_key(cls, key: str) -> Hardware | None:
        """Return the hardware of a key; None for any other text."""
        found = _KEY.fullmatch(key)
        if found is None:
            return None
        arch, board, mesh, sim, host = found.groups()
        return cls(arch, board, mesh, sim is not None, host)

    @property
    def key(self) -> str:
        """The name that baselines are filed under.

        >>> hardware = Hardware("wormhole_b0", "n150", "1x1", simulated=True, host="lab7")
        >>> hardware.key, Hardware.from_key(hardware.key) == hardware
        ('wormhole_b0-n150-1x1-sim-host_lab7', True)
        """
        simulated, host = "sim" if self.simulated else None, self.host and f"host_{self.host}"
        parts = (self.arch, self.board, self.mesh, simulated, host)
        return "-".join(part for part in parts if part is not None)


_KEY: Final = re.compile(
    r"([a-z]\w*)-([A-Za-z]\w*)(?:-([1-9][0-9]*(?:x[1-9][0-9]*)*))?(-sim)?(?:-host_([a-z0-9_]+))?",
    re.ASCII,
)


def member_name(enumerated: str) -> str:
    """Return the spelling in keys of an enum member of TTNN: ``p150_x4``."""
    return enumerated.rpartition(".")[2].lower()


def first_difference(
    one: Mapping[str, Scalar], other: Mapping[str, Scalar]
) -> tuple[str, Scalar, Scalar] | None:
    """Return the first field in which two configurations differ, with both values.

    A field that only one side has differs: an unknown setting is not the same setting.
    """
    names = sorted({*one, *other})
    differing = (n for n in names if n not in one or n not in other or one[n] != other[n])
    return next(((name, one.get(name), other.get(name)) for name in differing), None)


class Environment(Struct, frozen=True):
    """Host and software during a run; recorded, never keyed on.

    ``branch`` was checked out or, for a ``pull_request`` (its number or ref), is its source.
    ``attempt`` counts the starts of the same CI job, ``shard`` distinguishes parts of a run.
    ``variables`` are those that choose a device or a model, as a shell takes them.
    """

    started_at: Omit[str | None] = None
    python: Omit[str | None] = None
    system: Omit[str | None] = None
    cpu: Omit[str | None] = None
    cpu_count: Omit[int | None] = None
    load_1m: Omit[float | None] = None
    governor: Omit[str | None] = None
    host_hash: Omit[str | None] = None
    pytest: Omit[str | None] = None
    plugin: Omit[str | None] = None
    numpy: Omit[str | None] = None
    torch: Omit[str | None] = None
    ttnn: Omit[str | None] = None
    commit: Omit[str | None] = None
    committed_at: Omit[str | None] = None
    parents: Omit[tuple[str, ...]] = ()
    branch: Omit[str | None] = None
    pull_request: Omit[str | None] = None
    dirty: Omit[bool | None] = None
    runner: Omit[str | None] = None
    attempt: Omit[int | None] = None
    shard: Omit[str | None] = None
    variables: Omit[str | None] = None

    @property
    def lasting(self) -> Mapping[str, Scalar]:
        """The values that stay the same between runs on an untouched machine."""
        named = {name: getattr(self, name) for name in _LASTING}
        return {name: value for name, value in named.items() if value is not None}

    def shared_with(self, other: Environment) -> Environment:
        """Return this without the origins that another shard states differently."""
        unlike = {name: None for name in _ORIGIN if getattr(self, name) != getattr(other, name)}
        parents = self.parents if self.parents == other.parents else ()
        dirty = True if self.dirty or other.dirty else self.dirty
        return replace(self, **unlike, parents=parents, dirty=dirty)


#: Where a run is from, and which part of it a record has.
_ORIGIN: Final = (
    "commit", "committed_at", "branch", "pull_request", "runner", "attempt", "shard",
)  # fmt: skip
#: Not load, time or commit, which always differ; not ttnn, which is stored by itself.
_LASTING: Final = (
    "host_hash", "cpu", "cpu_count", "system", "governor", "python", "numpy", "torch",
)  # fmt: skip


WORMHOLE: Final = "wormhole_b0"
BLACKHOLE: Final = "blackhole"
#: As TTNN names them.
ARCHITECTURES: Final = (WORMHOLE, BLACKHOLE, "quasar")


#: Architecture and board of hardware keys; None for an open board.
System: TypeAlias = "tuple[str, str | None]"


def system_of(name: str) -> System | None:
    """Return the system of a SKU, device name or card type."""
    plain = _QUALIFIER.sub("", name.strip().lower().replace("-", "_"))
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    prefix, _, rest = plain.partition("_")
    found = _BY_NAME.get(_without_build(rest if prefix in _PREFIXES else plain))
    # An LLMBox of Blackhole is another system than one of Wormhole.
    return found if found is None or _PREFIXES.get(prefix, found[0]) == found[0] else None


def system_of_chips(cards: Iterable[str]) -> System | None:
    """Return the system of a machine by the card of each chip.

    Cards are named as tt-smi or the driver does. None for cards of several kinds, or unknown ones.

    >>> system_of_chips(["n300 L", "n300 R"]), system_of_chips(["galaxy-wormhole"] * 32)
    (('wormhole_b0', 'n300'), ('wormhole_b0', 'galaxy'))
    >>> system_of_chips(["p150a"] * 3)
    ('blackhole', None)
    """
    chips = [card_of(card) for card in cards]
    if len(set(chips)) != 1 or chips[0] not in _BY_CARD:
        return None
    arch, boards = _BY_CARD[chips[0]]
    return arch, boards if isinstance(boards, str) else boards.get(len(chips))


def card_of(name: str) -> str:
    """Return a card without its chip's side and its build letter."""
    return _without_build(name.strip().lower().partition(" ")[0])


def _without_build(name: str) -> str:
    found = _CARD.fullmatch(name)
    return found[1] if found else name


#: A card by its number, and the letter of its build.
_CARD: Final = re.compile(r"([np][0-9]{3})[a-z]?")
#: What names of systems begin with, and the architecture that it stands for.
_PREFIXES: Final = {
    **dict.fromkeys(("wh", "wormhole"), WORMHOLE),
    **dict.fromkeys(("bh", "blackhole"), BLACKHOLE),
}
#: What CI adds to a SKU: the same hardware in another pool of machines.
_QUALIFIER: Final = re.compile(r"(?:_(?:perf|civ2|viommu))+$")

#: What TTNN names a system by: the card, and how many chips all cards have together, or one name
#: for any number. What two n300 are depends on the cables between them.
_BY_CARD: Final[dict[str, tuple[str, str | dict[int, str]]]] = {
    "n150": (WORMHOLE, "n150"),
    "n300": (WORMHOLE, {2: "n300", 8: "t3k"}),
    "p100": (BLACKHOLE, {1: "p100"}),
    "p150": (BLACKHOLE, {1: "p150", 2: "p150_x2", 4: "p150_x4", 8: "p150_x8"}),
    "p300": (BLACKHOLE, {2: "p300", 4: "p300_x2"}),
    # As the driver names them, and as tt-smi does.
    "galaxy-wormhole": (WORMHOLE, "galaxy"),
    "tt-galaxy-wh": (WORMHOLE, "galaxy"),
    "galaxy-blackhole": (BLACKHOLE, "blackhole_galaxy"),
    "tt-galaxy-bh": (BLACKHOLE, "blackhole_galaxy"),
}
#: What repositories call boards beside their names in keys.
_ALIASES: Final = {
    "t3000": "t3k",
    "llmbox": "t3k",
    "galaxy_wh": "galaxy",
    "glx": "galaxy",
    "tg": "galaxy",
    "p150x2": "p150_x2",
    "p150x4": "p150_x4",
    "p150x8": "p150_x8",
    "loudbox": "p150_x8",
    "p300x2": "p300_x2",
    "quietbox_2": "p300_x2",
    "bhglx": "blackhole_galaxy",
    "galaxy_bh": "blackhole_galaxy",
    "bh_galaxy": "blackhole_galaxy",
    "bh_glx": "blackhole_galaxy",
    "blackhole_glx": "blackhole_galaxy",
}
_BOARDS: Final[dict[str, System]] = {
    board: (arch, board)
    for arch, boards in _BY_CARD.values()
    for board in ((boards,) if isinstance(boards, str) else boards.values())
}
_BY_NAME: Final[dict[str, System]] = {
    "wormhole": (WORMHOLE, None),
    WORMHOLE: (WORMHOLE, None),
    BLACKHOLE: (BLACKHOLE, None),
    **_BOARDS,
    **{alias: _BOARDS[board] for alias, board in _ALIASES.items()},
}
