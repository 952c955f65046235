"""Which ttnn is installed, what it can do, and which settings keep a time from being measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Build:
    """An installed ttnn; ``version`` is None where there is none.

    ``tracy`` and ``arch`` are None where they are not known: ``arch`` also where there is no
    hardware. ``problem`` says in one line why ttnn cannot be used.
    """

    version: str | None
    location: str | None = None
    tracy: bool | None = None
    arch: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A variable of the environment, or several joined by ``+``, with which no time means anything.

    ``why`` goes on from the variable: "makes kernels check themselves".
    """

    variable: str
    value: str
    why: str
    remedy: str

    @property
    def sentence(self) -> str:
        """What is set, and why it must not be."""
        several = " + " in self.variable  # the names say it all
        return f"{self.variable if several else f'{self.variable}={self.value}'} {self.why}"

    def __str__(self) -> str:
        return f"{self.sentence}: {self.remedy}"
