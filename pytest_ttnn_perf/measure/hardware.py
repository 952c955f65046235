"""Hardware of tests that open no device: captured, stated, or looked up."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.hardware import ARCHITECTURES, UNKNOWN, Hardware, member_name, system_of
from pytest_ttnn_perf.core.metric import THROUGHPUT_TIME, WALL_TIME, Source
from pytest_ttnn_perf.core.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.core.observation import Artifact, Observation


_WORD: Final = re.compile(r"[a-z][a-z0-9_]*")
_MESH: Final = re.compile(r"[1-9][0-9]*(?:x[1-9][0-9]*)*")
#: Times of this machine's clock, also without a warm-up.
_BY_THE_CLOCK: Final = frozenset({WALL_TIME, THROUGHPUT_TIME, "call_time"})


class StatedHardware(Struct, frozen=True):
    """The hardware that an author states; None where it is open."""

    arch: str | None = None
    board: str | None = None
    mesh: str | None = None

    @classmethod
    def of(cls, arch: object, board: object, mesh: object) -> StatedHardware:
        """Return what the arguments of ``ttnn_perf.hardware`` say.

        Raises:
            UsageError: naming the argument, what was expected and what was found.
        """
        if arch is None and board is None and mesh is None:
            message = "hardware() needs at least one of arch=, board= and mesh="
            raise UsageError(message)
        name = None if arch is None else member_name(str(arch))
        if name is not None and name not in ARCHITECTURES:
            known = f"one of {', '.join(ARCHITECTURES)}"
            raise _mistake("arch", known, f"{arch!r}{did_you_mean(name, ARCHITECTURES)}")
        card = None if board is None else member_name(str(board))
        if card is not None and (not _WORD.fullmatch(card) or card in {UNKNOWN, "host"}):
            raise _mistake("board", "a name such as 'n150' or 't3k'", repr(board))
        shape = None
        if mesh is not None:
            shape = "x".join(map(str, mesh)) if isinstance(mesh, (list, tuple)) else str(mesh)
            if not _MESH.fullmatch(shape):
                raise _mistake("mesh", "a shape such as '1x8' or (1, 8)", repr(mesh))
        system = None if card is None else system_of(card)
        if system is not None and system[1] is not None:  # a known board has one architecture
            own, known_board = system
            if name not in {None, own}:
                message = f"hardware(arch={name!r}, board={card!r}): {card} is a board of {own}"
                raise UsageError(message)
            # TTNN has two kinds of Galaxy, of which one is tg.
            name, card = own, card if card == "tg" else known_board
        return cls(name, card, shape)


def _mistake(argument: str, expected: str, found: str) -> UsageError:
    return UsageError(f"hardware({argument}=...): expected {expected}, found {found}")


def hardware_of(artifact: Artifact) -> Hardware | None:
    if artifact.hardware is not None:
        return artifact.hardware
    if not (artifact.arch or artifact.board or artifact.devices):
        return None
    mesh = f"1x{artifact.devices or 1}"
    return Hardware(artifact.arch or UNKNOWN, artifact.board or UNKNOWN, mesh)


def on_hardware_of_capture(observation: Observation, artifact: Artifact) -> Observation:
    """Return an observation as one of its capture's hardware.

    Times of this machine are gated with captures made meanwhile. With one that was there before,
    which may be of any machine, they are recorded only.
    """
    hardware = hardware_of(artifact)
    if hardware is None or artifact.arch is None:
        return observation
    metrics = observation.metrics
    if any(observed.capture is not None for observed in metrics.values()):
        note = f"of this machine, while the capture is of {hardware.key}: recorded only"
        metrics = {
            name: replace(observed, gated=False, note=note)
            if observed.metric.source is not Source.SIM
            and (observed.warmup or name in _BY_THE_CLOCK)
            else observed
            for name, observed in metrics.items()
        }
    return replace(observation, metrics=metrics, hardware=hardware)


def other_hardware(opened: Hardware, artifact: Artifact) -> str | None:
    if artifact.arch is not None and artifact.arch.lower() != opened.arch.lower():
        found = f"a capture of {artifact.arch}"
    elif artifact.devices is not None and artifact.devices > _devices(opened.mesh or "1"):
        found = f"a capture of {artifact.devices} devices"
    else:
        return None
    return (
        f"{found} is attached, and the test opened {opened.key}: attach one of that hardware, or "
        "gate it in a test of its own that opens no device"
    )


def without_own_times(observation: Observation, artifact: Artifact) -> Observation:
    """Return an observation as one of the recorded hardware.

    Times of this machine are left out: they would be filed as those of a device that it lacks.
    """
    metrics = {
        name: observed
        for name, observed in observation.metrics.items()
        if observed.metric.source is not Source.WALL or not observed.metric.compared_by_ratio
    }
    return replace(observation, metrics=metrics, hardware=hardware_of(artifact))


def with_hardware(
    observation: Observation,
    artifact: Artifact,
    stated: StatedHardware | None,
    environment: Mapping[str, str],
) -> Observation:
    """Return an observation with all that is known of its hardware.

    What the test opened or its captures name comes first, then what its author stated. What is
    still open of a capture that was made while the test ran is of this machine.
    """
    captured, known = hardware_of(artifact), observation.hardware
    is_static = any(observed.capture is not None for observed in observation.metrics.values())
    if known is None and not is_static and (artifact.arch or artifact.devices):
        known = captured  # a device's times are not the host's, whatever else is not known
    if stated is not None:
        problem = _contradiction(stated, known or captured, is_captured=known in {None, captured})
        if problem is not None:
            return replace(observation, problems=(*observation.problems, problem))
        known = known or captured or Hardware(UNKNOWN, UNKNOWN)
        known = replace(
            known,
            arch=stated.arch or known.arch,
            board=stated.board or known.board,
            mesh=stated.mesh or known.mesh,
        )
    if known is not None and captured is not None and not is_static:
        known = _of_this_machine(known, environment)
    return replace(observation, hardware=known)


def _contradiction(
    stated: StatedHardware, known: Hardware | None, *, is_captured: bool
) -> str | None:
    if known is None:
        return None
    for name in ("arch", "board", "mesh"):
        said, found = getattr(stated, name), getattr(known, name)
        if said is None or found in {None, UNKNOWN, said}:
            continue
        if name == "mesh" and is_captured and _devices(said) >= _devices(found):
            continue  # a capture shows how many devices ran something, not how they are arranged
        source = "its capture is of" if is_captured else "it ran on"
        return (
            f"hardware({name}={said!r}) is stated by the test, and {source} {known.key}: "
            "correct it, or leave it out"
        )
    return None


def _of_this_machine(known: Hardware, environment: Mapping[str, str]) -> Hardware:
    if UNKNOWN not in {known.arch, known.board}:
        return known
    from pytest_ttnn_perf.machine.chips import system_here

    here = system_here(environment)
    if here is None or known.arch not in {UNKNOWN, here[0]}:
        return known
    arch, board = here
    return replace(known, arch=arch, board=(known.board == UNKNOWN and board) or known.board)


def _devices(mesh: str) -> int:
    return prod(map(int, re.findall(r"\d+", mesh)))
