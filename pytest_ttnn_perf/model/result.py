"""What a command has to say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """The text to print, and whether it is bad news for the shell.

    ``shifted``: no test is to blame, but the machine is slower as a whole.
    """

    text: str
    failed: bool = False
    shifted: bool = False
