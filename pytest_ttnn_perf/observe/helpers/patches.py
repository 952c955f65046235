"""Lets calls of a function be observed, wherever its name was imported to.

Most tests say ``from helpers import comp_pcc``, and keep the function under a name of their own, in
a table or as a local. So it is the function itself that changes, not the names of it: its code is
replaced by one that hands every call on. Name, signature, identity and attributes stay as they are.
"""

from __future__ import annotations

import inspect
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    #: Takes the original, its positional and its keyword arguments; returns what it returns.
    Handler = Callable[["Call"], Any]


class Call(NamedTuple):
    """One call of an observed function, which has not been made yet."""

    original: Callable[..., Any]
    signature: inspect.Signature
    #: The names that the function sees: those of its own module.
    names: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def make(self, **instead: Any) -> Any:
        """Make the call; with other values for some arguments if they are given."""
        __tracebackhide__ = True
        if not instead:
            return self.original(*self.args, **self.kwargs)
        bound = self.signature.bind(*self.args, **self.kwargs)
        bound.arguments.update(instead)
        return self.original(*bound.args, **bound.kwargs)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by their names, defaults included; none where they do not fit."""
        try:
            bound = self.signature.bind(*self.args, **self.kwargs)
        except TypeError:  # the call is about to say so itself
            return {}
        bound.apply_defaults()
        return bound.arguments


#: Stands in the code below for what a call is handed on to: a constant, since the names that a
#: function can see are those of its own module.
_PLACE: Final = "ttnn-perf: what a call is handed on to"
#: The code that takes the place of a function's. It names the variables of other functions that
#: the function sees, and never reads them: their number belongs to the function and cannot change.
_TEMPLATE: Final = """\
def around({seen}):
    def handing_on(*ttnn_perf_args, **ttnn_perf_kwargs):
        __tracebackhide__ = True
        ttnn_perf_observed = {place!r}
        return ttnn_perf_observed(*ttnn_perf_args, **ttnn_perf_kwargs)
        {seen}
    return handing_on
"""
_NO_PLAIN_CALL: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _code_for(code: CodeType, handler: Callable[..., Any]) -> CodeType:
    """Return code that hands calls on, in the place of that of a function."""
    seen = ", ".join(code.co_freevars)
    source = _TEMPLATE.format(seen=seen, place=_PLACE)
    module = compile(source, code.co_filename, "exec")
    around = next(each for each in module.co_consts if isinstance(each, CodeType))
    own = next(each for each in around.co_consts if isinstance(each, CodeType))
    return own.replace(
        co_consts=tuple(handler if each == _PLACE else each for each in own.co_consts),
        co_name=code.co_name,
        co_firstlineno=code.co_firstlineno,
    )


def can_be_observed(function: object) -> bool:
    """Tell whether something is a function of Python whose calls end when they return."""
    return isinstance(function, FunctionType) and not function.__code__.co_flags & _NO_PLAIN_CALL


@dataclass(slots=True)
class Observed:
    """A function whose calls are observed, until that is undone."""

    function: FunctionType
    code: CodeType
    has_own_signature: bool

    def undo(self) -> None:
        """Make the function what it was."""
        self.function.__code__ = self.code
        if not self.has_own_signature:
            del self.function.__signature__  # type: ignore[attr-defined]


def observe_calls(function: FunctionType, handle: Handler) -> Observed:
    """Have ``handle`` make every call of a function from now on."""
    code = function.__code__
    original = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    original.__qualname__ = function.__qualname__
    original.__dict__.update(function.__dict__)

    signature = inspect.signature(function)

    def hand_on(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return handle(Call(original, signature, function.__globals__, args, kwargs))

    observed = Observed(function, code, has_own_signature="__signature__" in vars(function))
    if not observed.has_own_signature:
        function.__signature__ = signature  # type: ignore[attr-defined]
    function.__code__ = _code_for(code, hand_on)
    return observed
