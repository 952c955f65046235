"""A diagnosis: one line per check, with what to do below those that are not as they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.report.listing import Listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.doctor import Diagnosis

_HEADINGS: Final = ("name", "ok", "found", "remedy", "blocks")
_MARKS: Final = {True: "ok", False: "NO", None: "?"}


def doctor_listing(diagnosis: Diagnosis) -> Listing:
    """Lay out what was found."""
    rows = tuple(
        (check.name, check.ok, check.found, check.remedy, check.blocks)
        for check in diagnosis.checks
    )
    document = {
        "key": diagnosis.key,
        "ttnn": {"version": diagnosis.build.version, "tracy": diagnosis.build.tracy},
        "profiler": diagnosis.profiler,
        "checks": [dict(zip(_HEADINGS, row, strict=True)) for row in rows],
    }
    return Listing(tuple(_lines(diagnosis)), document, _HEADINGS, rows)


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    width = max(len(check.name) for check in diagnosis.checks)
    for check in diagnosis.checks:
        yield f"{_MARKS[check.ok]:<2}  {check.name:<{width}}  {check.found}"
        if check.ok is not True and check.remedy is not None:
            yield f"{'':{width + 6}}{check.remedy}"
    yield ""
    yield _verdict(diagnosis)


def _verdict(diagnosis: Diagnosis) -> str:
    blocking = [check for check in diagnosis.checks if check.blocks and check.ok is False]
    if blocking:
        named = ", ".join(dict.fromkeys(check.name for check in blocking))
        return f"a gate would fail here: {counted(len(blocking), 'problem')}: {named}"
    if diagnosis.build.version is None or diagnosis.profiler == "off":
        return "a gate can run here, without device times"
    return f"a gate can run here, with device times from the {diagnosis.profiler} profiler"
