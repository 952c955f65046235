"""How tt-xla compiles models, as far as that can be seen. Neither torch_xla nor jax is imported.

Compile options of torch are set for a process; those of jax are given with each function. The
runtime reads variables of its own when it opens the device.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.device.ttnn import plain, when_imported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from pytest_ttnn_perf.records.hardware import Scalar

#: ``torch_xla.runtime.set_device_type("TT")`` sets it.
_DEVICE: Final = "PJRT_DEVICE"
_TRACE_REGION: Final = "TT_RUNTIME_TRACE_REGION_SIZE"
_PROGRAM_CACHE: Final = "TT_RUNTIME_ENABLE_PROGRAM_CACHE"
#: Where torch_xla hands options over, whichever of its functions they were given to.
_SET_OPTIONS: Final = "_set_custom_compile_options"
#: What options are when nobody says: given or not, the same setting is the same.
_DEFAULTS: Final[Mapping[str, Scalar]] = {
    "optimization_level": 0,
    "enable_trace": False,
    "enable_bfp8_conversion": False,
}
#: What older releases had in place of levels.
_LEVEL, _FORMER_LEVEL = "optimization_level", "enable_optimizer"
#: How the names of options begin that say what is written, and where to: no model is faster by it.
_WRITING: Final = ("export_", "dump_", "ttnn_perf_metrics_", "dry_run")
_WORDS: Final[Mapping[str, bool]] = {"true": True, "false": False}


@dataclass(slots=True)
class Compiler:
    """The compile options of this process, and of the test that is running."""

    _of_torch: dict[str, Scalar] | None = None
    _of_jax: dict[str, Scalar] | None = None
    _dtype: str | None = None

    def observe(self) -> None:
        """Take notice of options from now on."""
        when_imported("torch_xla", self._observe_torch)
        when_imported("jax", self._observe_jax)

    def begin_test(self) -> None:
        """Forget what was compiled for other tests; options of torch stay in force."""
        self._of_jax = self._dtype = None

    def called(self, model: object) -> None:
        """Take notice of a model that is measured: of a torch module, the format is known."""
        module = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", None)
        if self._dtype is None and module is not None and isinstance(model, module):
            first: Any = next(iter(model.parameters()), None)
            self._dtype = None if first is None else str(first.dtype).rpartition(".")[2]

    @property
    def configuration(self) -> Mapping[str, Scalar]:
        """How the model of the running test was compiled; nothing where tt-xla did not do it."""
        options = self._of_jax if self._of_jax is not None else self._of_torch
        if options is None:
            if os.environ.get(_DEVICE) != "TT" or "torch_xla" not in sys.modules:
                return {}
            options = {}
        known = {**_DEFAULTS, **options}
        if _FORMER_LEVEL in options and _LEVEL not in options:
            del known[_LEVEL]
        region = os.environ.get(_TRACE_REGION)
        known[_TRACE_REGION] = None if region is None else _value(region)
        # The runtime turns the cache off for this text alone.
        known[_PROGRAM_CACHE] = 0 if os.environ.get(_PROGRAM_CACHE) == "0" else None
        return known if self._dtype is None else {**known, "torch_dtype": self._dtype}

    def _observe_torch(self, torch_xla: ModuleType) -> None:
        inner = getattr(torch_xla, "_XLAC", None)
        original = getattr(inner, _SET_OPTIONS, None)
        if original is None:
            return

        @functools.wraps(original)
        def set_options(options: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
            result = original(options, *args, **kwargs)
            self._of_torch = _deciding(options)
            return result

        setattr(inner, _SET_OPTIONS, set_options)

    def _observe_jax(self, jax: ModuleType) -> None:
        original: Callable[..., Any] | None = getattr(jax, "jit", None)
        if original is None:
            return

        @functools.wraps(original)
        def jit(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("compiler_options"):
                self._of_jax = _deciding(kwargs["compiler_options"])
            return original(*args, **kwargs)

        setattr(jax, "jit", jit)  # noqa: B010 (mypy knows no such attribute)


def _deciding(options: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the options that may decide how fast a model is."""
    return {
        str(name): _value(value)
        for name, value in options.items()
        if not str(name).startswith(_WRITING)
    }


def _value(value: Any) -> Scalar:
    """Return an option however it is spelt.

    >>> _value("true"), _value(True), _value("1"), _value(1), _value("hifi4")
    (True, True, 1, 1, 'hifi4')
    """
    if not isinstance(value, str):
        return plain(value)
    return int(value) if value.isdecimal() else _WORDS.get(value.lower(), value)
