"""How far the optimization of a model has come."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """What is known of a step."""

    DONE = "done"
    OPEN = "open"
    NOT_MEASURED = "not measured"
    NOT_APPLICABLE = "not applicable"


class ModelKind(Enum):
    """What decides which step pays most."""

    HOST_BOUND = "host-bound model"
    LLM = "LLM"
    CNN = "CNN"
    MEMORY_BOUND = "memory-bound model"


@dataclass(frozen=True, slots=True)
class Step:
    """A step; ``open_rules`` are the codes of the rules that keep it open.

    Of a step that is done, ``unmeasured`` rules could not tell.
    """

    name: str
    state: State
    open_rules: tuple[str, ...] = ()
    unmeasured: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """From the first measurement to the last check; ``steps`` are in the order of their numbers.

    ``kind`` is None where the ops do not tell it. ``first`` is the open step to take first, by its
    number; None where none is open. ``invalid`` are the rules that say that the numbers cannot be
    trusted, which comes before any step.
    """

    baseline: Step
    steps: tuple[Step, ...]
    pcc: Step
    kind: ModelKind | None = None
    first: int | None = None
    invalid: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Step, ...]:
        """Everything in the order in which it is done."""
        return (self.baseline, *self.steps, self.pcc)
