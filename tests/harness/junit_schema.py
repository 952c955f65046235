"""The shape of JUnit reports, as the schema of Jenkins' xUnit plugin (junit-10.xsd) has it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET
    from collections.abc import Iterator

_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")
_RERUNS = {"rerunFailure", "rerunError", "flakyFailure", "flakyError"}
#: What may stand in what; nothing in what is not named. No order is asked for.
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testsuite", "properties", "testcase", "system-out", "system-err"},
    "properties": {"property"},
    "testcase": {"skipped", "error", "failure", "system-out", "system-err", *_RERUNS},
}
REQUIRED = {
    "testsuite": {"name", "tests", "failures", "errors"},
    "testcase": {"name"},
    "property": {"name", "value"},
}
ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {
        *("name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp"),
        *("hostname", "id", "package", "file", "log", "url"),
    },
    "testcase": {"name", "time", "classname", "group"},
    "property": {"name", "value"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
}


def departures(element: ET.Element) -> Iterator[str]:
    """Name everything in which a report departs from the schema."""
    tag = element.tag
    for name in sorted(REQUIRED.get(tag, set()) - set(element.attrib)):
        yield f"<{tag}> without {name}"
    for name in sorted(set(element.attrib) - ALLOWED.get(tag, set())):
        yield f"<{tag} {name}>"
    if "time" in element.attrib and not _TIME.fullmatch(element.attrib["time"]):
        yield f"time {element.attrib['time']}"
    for child in element:
        if child.tag not in CHILDREN.get(tag, set()):
            yield f"<{child.tag}> in <{tag}>"
        yield from departures(child)
