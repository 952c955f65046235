"""Programs that are built anew for every call."""

from __future__ import annotations

from typing import Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.measurements import is_on, number, settings_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

#: The variable of tt-xla's runtime; not set, the cache is on.
_VARIABLE: Final = "TT_RUNTIME_ENABLE_PROGRAM_CACHE"
_ENTRIES: Final = "program_cache_entries_after"
_UNKNOWN: Final = (
    "nothing is known of the program cache: no device was open, or it does not count its programs; "
    "state the fact program_cache"
)


@rule("TTP406", "program-cache-off", Severity.WARNING, Input.DEVICE)
def program_cache_off(
    subject: Subject, *, programs: Limit = Limit(1, "programs", "a cache that is on keeps what ran")
) -> Answer:
    """The program cache is off.

    ## What it finds
    A device whose program cache holds nothing after the samples were taken, or a test that states
    that the cache is off.

    ## Why it matters
    Without the cache the host builds the program of every op again, each time. That takes far
    longer than most kernels run, and a trace cannot be captured at all.

    ## What to do
    Remove `device.disable_and_clear_program_cache()`. With older releases call
    `device.enable_program_cache()`. With tt-xla, do not set TT_RUNTIME_ENABLE_PROGRAM_CACHE to 0.

    ## When it is no problem
    A test that runs no program on the device.

    ## Where it looks
    The number of programs that the open devices held after the samples; otherwise the facts
    `program_cache` and TT_RUNTIME_ENABLE_PROGRAM_CACHE. The variable is observed with tt-xla; None
    says that it does not turn the cache off.
    """
    observation = subject.observation
    entries = number(observation.environment.get(_ENTRIES)) if observation else None
    if entries is not None:
        held = counted(int(entries), "program")
        return programs.at_least(entries, f"after the samples the program cache held {held}")
    settings = settings_of(subject)
    if "program_cache" in settings:
        stated = "program_cache", is_on(settings["program_cache"])
    elif _VARIABLE in settings:
        stated = _VARIABLE, settings[_VARIABLE] is None or is_on(settings[_VARIABLE])
    else:
        return Answer.not_measured(_UNKNOWN)
    name, is_there = stated
    if is_there:
        return Answer.clean(reason=f"{name} says that it is on")
    return Answer.found(f"{name} says that the program cache is off")
