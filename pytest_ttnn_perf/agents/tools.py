"""The tools of the server: each is a command of ours, and what an agent says are its words.

What an agent says is somebody else's text: none of it is taken for an option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.text import repr_of, shortened
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    from pytest_ttnn_perf.agents.answers import Message

#: Longer than any id or path that is meant, and more tests than anybody names one by one.
_LONGEST_TEXT: Final = 1000
_MOST_TEXTS: Final = 100
_JSON: Final = ("--format", "json")


@dataclass(frozen=True, slots=True)
class Argument:
    """Something that an agent says: one text, or with ``many`` a list of them.

    ``is_free``: whatever it begins with, it stands where no option could.
    """

    name: str
    meaning: str
    required: bool = False
    many: bool = False
    is_free: bool = False

    def schema(self) -> Message:
        """Return what it must be, as JSON Schema."""
        text: Message = {"type": "string", "minLength": 1, "maxLength": _LONGEST_TEXT}
        if not self.many:
            return {**text, "description": self.meaning}
        least = {"minItems": 1} if self.required else {}
        limits = {**least, "maxItems": _MOST_TEXTS}
        return {"type": "array", "items": text, **limits, "description": self.meaning}

    def read(self, value: object) -> tuple[str, ...]:
        """Return the texts that were said.

        Raises:
            UsageError: it is something else, or would be taken for an option.
        """
        if not self.many:
            return (self._text(value),)
        if not isinstance(value, list) or len(value) > _MOST_TEXTS:
            found = f"{len(value)}" if isinstance(value, list) else _repr(value)
            message = f"{self.name}: expected a list of at most {_MOST_TEXTS} texts, found {found}"
            raise UsageError(message)
        if self.required and not value:
            message = f"{self.name}: expected at least one, found none"
            raise UsageError(message)
        return tuple(map(self._text, value))

    def _text(self, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            message = f"{self.name}: expected a text, found {_repr(value)}"
        elif len(value) > _LONGEST_TEXT:
            most = f"at most {_LONGEST_TEXT} characters"
            message = f"{self.name}: expected {most}, found {len(value)}"
        elif "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
            message = (
                f"{self.name}: expected text without NUL and half characters, found {_repr(value)}"
            )
        # pytest would take "@file" for a file of options.
        elif not self.is_free and value.startswith(("-", "@")):
            message = (
                f"{self.name}: expected a file or a test, found {_repr(value)}: write ./{value}"
            )
        else:
            return value
        raise UsageError(message)


def _repr(value: object) -> str:
    return shortened(repr_of(value), 80)


Said = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A command for agents. ``words`` makes its command line of what was said.

    ``changes``: it writes something; ``replaces``: it changes baselines.
    """

    name: str
    meaning: str
    words: Callable[[Said], Sequence[str]]
    arguments: tuple[Argument, ...] = ()
    command: str | None = None
    changes: bool = False
    replaces: bool = False

    @property
    def needs(self) -> str:
        """The command of ``ttnn-perf`` that it is."""
        return self.command or self.name

    def listed(self) -> Message:
        """Return what a client is told of it."""
        return {
            "name": self.name,
            "description": self.meaning,
            "inputSchema": {
                "type": "object",
                "properties": {each.name: each.schema() for each in self.arguments},
                "required": [each.name for each in self.arguments if each.required],
                "additionalProperties": False,
            },
            "annotations": {
                "readOnlyHint": not self.changes,
                "destructiveHint": self.replaces,
                "openWorldHint": False,
            },
        }

    def command_line(self, given: Mapping[str, object]) -> tuple[str, ...]:
        """Return the arguments of ``ttnn-perf`` for what an agent said.

        Raises:
            UsageError: something is missing, unknown, or not what it should be.
        """
        known = {each.name: each for each in self.arguments}
        for name in given:
            if name not in known:
                expected = ", ".join(known) or "no arguments"
                message = f"{self.name}: expected {expected}, found the unknown {_repr(name)}"
                raise UsageError(message)
        for each in self.arguments:
            if each.required and given.get(each.name) is None:
                message = f"{self.name}: {each.name} is missing: {each.meaning}"
                raise UsageError(message)
        said = {
            name: each.read(given[name]) if given.get(name) is not None else ()
            for name, each in known.items()
        }
        return tuple(self.words(said))


def _accept(said: Said) -> Sequence[str]:
    # Behind the two dashes, a word is the id of a test, whatever it looks like.
    reason = f"--reason={said['reason'][0]}"
    return ("baseline", "accept", *_JSON, *said["record"], reason, "--", *said["tests"])


_TESTS: Final = "ids, files or folders of tests; default: all"
TOOLS: Final = (
    Tool(
        "status",
        "What is stored and what the last run said: baselines, failures, what is missing.",
        lambda _: ("status", *_JSON),
    ),
    Tool(
        "doctor",
        "What this machine can measure, and what would keep a measurement from working.",
        lambda _: ("doctor", *_JSON),
    ),
    Tool(
        "plan",
        "What could be faster, in order: what each step saves, what is left, whether a target is "
        "in reach.",
        lambda said: ("plan", *_JSON, *said["of"]),
        (Argument("of", "captures, or a run record and tests; default: the last run", many=True),),
    ),
    Tool(
        "try",
        "Measure the working tree against the last kept state: KEEP, REVERT, CANNOT_TELL or "
        "NOT_COMPARABLE. Takes minutes, and the devices.",
        # In one word with its option: whatever the message begins with, it is no option.
        lambda said: ("try", f"-m{said['message'][0]}", *_JSON, *said["tests"]),
        (
            Argument("message", "the one thing that was changed", required=True, is_free=True),
            Argument("tests", _TESTS, many=True),
        ),
        changes=True,
    ),
    Tool(
        "explain",
        "What is known of a rule, a test of the last run, a run record or a capture.",
        lambda said: ("explain", *_JSON, *said["what"]),
        (Argument("what", "a code such as TTP203, a test id, or a file", required=True),),
    ),
    Tool("journal", "Every change that was tried, and what it did.", lambda _: ("journal", *_JSON)),
    Tool(
        "compare",
        "What changed between two run records, or which ops between two captures. No verdict.",
        lambda said: ("compare", *_JSON, *said["before"], *said["after"]),
        (
            Argument("before", "a run record or a capture", required=True),
            Argument("after", "a file of the same kind", required=True),
        ),
    ),
    Tool(
        "accept",
        "Make results of a recorded run the baselines of tests, even worse ones. Ask a person.",
        _accept,
        (
            Argument("record", "the run record, as status names it", required=True),
            Argument("tests", "exact ids of tests", required=True, many=True, is_free=True),
            Argument("reason", "why this is right; stored", required=True, is_free=True),
        ),
        command="baseline",
        changes=True,
        replaces=True,
    ),
)


class Toolbox:
    """The tools of a project; ``commands`` are those that ``ttnn-perf`` has.

    What agents may do is read here, once: they can edit the configuration.
    """

    def __init__(self, commands: frozenset[str]) -> None:
        self._tools = {tool.name: tool for tool in TOOLS if tool.needs in commands}
        self._forbidden: str | None = None
        try:
            if not project_settings().agents_accept:
                self._forbidden = "agents_accept is false in the configuration"
        except InputError as error:
            self._forbidden = (
                f"the configuration could not be read when the server started: {error}"
            )

    def listed(self) -> list[Message]:
        """Return what a client is told of each tool that may be used."""
        allowed = self._forbidden is None
        return [tool.listed() for tool in self._tools.values() if allowed or not tool.replaces]

    def find(self, name: object) -> Tool | None:
        """Return a tool, even one that may not be used; None if there is none of this name."""
        return self._tools.get(name) if isinstance(name, str) else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._tools)

    def check_allowed(self, tool: Tool) -> None:
        """Look whether the project lets agents use a tool.

        Raises:
            UsageError: it does not.
        """
        if tool.replaces and self._forbidden is not None:
            message = (
                f"{tool.name} is forbidden here: {self._forbidden}; ask "
                "a person to run ttnn-perf baseline accept"
            )
            raise UsageError(message)
