"""Whatever tests and metrics are called, reports stay whole: rows, lines, XML and JSON."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

from _pytest.junitxml import bin_xml_escape
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.finding import Evidence
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import Outcome
from pytest_ttnn_perf.core.text import visible
from pytest_ttnn_perf.report.ci import (
    Annotation,
    CiReport,
    Level,
    annotation_lines,
    gitlab_text,
)
from pytest_ttnn_perf.report.markdown import COMMENT_BYTES, code, markdown_text, prose, table_row
from pytest_ttnn_perf.report.run import property_pairs
from pytest_ttnn_perf.report.tables import Style, columns_of, printed
from pytest_ttnn_perf.report.terminal import summary_lines
from tests.harness.ci_report import finding, judged, told, verdict

#: Also half a surrogate pair, which a test id may hold.
ANY = st.text(st.characters(), max_size=60) | st.sampled_from(
    [
        "a|b", "a\\|b", "a\\", "`", "``a`", "<script>alert(1)</script>", "\x1b[31mred\x1b[0m", "::",
        "::error::x", "a\r\nb", "\u2028\x85\x0b\x0c", "\ud800", "\x00\x01\uffff", "👩‍🚀", "\u202e",
        "x" * 10_000, "|" * 200, "`" * 50, "@team #1", "</details>", "</code>", "-->", "~~~",
        "% %0A",
        "$x$", "[a](b)", "![i](http://x)", "   ", "\t", "&lt;", "&#124;", "*a* _b_ __c__",
    ]
)  # fmt: skip


def cells_of(line: str, *, pairs: bool) -> int:
    """Count the cells of a row; a backslash hides a bar, and in some readers another backslash."""
    if pairs:
        line = re.sub(r"\\[\\|]", "", line)
    return len(re.findall(r"(?<!\\)\|", line)) - 1


def decoded(text: str) -> str:
    """Read a value as GitHub's runner does, the sign for a per cent last."""
    for sign, written in ((":", "%3A"), (",", "%2C"), ("\n", "%0A"), ("\r", "%0D"), ("%", "%25")):
        text = text.replace(written, sign)
    return text


def a_run(test: str, metric: str, text: str) -> CiReport:
    slower = judged(
        test,
        verdict(Outcome.REGRESSED, Metric(metric, "ns")),
        verdict(Outcome.NO_BASELINE, Metric(metric + "2", text[:5])),
        by_op=text,
        problems=(text,),
        findings=(finding(reason=text, fix=text, evidence=(Evidence(text),)),),
    )
    other = judged(f"b.py::{test}", verdict(Outcome.IMPROVED, Metric(metric, "ns")))
    return told(slower, other, record=text, differences=(text,))


@given(st.lists(ANY, min_size=1, max_size=5))
@example(["a\\|b"])
def test_row_is_one_line_with_its_columns_whatever_is_in_it(texts: list[str]) -> None:
    for cell in (code, prose):
        line = table_row([cell(text) for text in texts])
        assert line.splitlines() == [line[:-1]]
        for pairs in (False, True):
            assert cells_of(line[:-1], pairs=pairs) == len(texts)


@given(ANY)
def test_text_of_others_is_no_markup(text: str) -> None:
    shown = prose(text)
    assert not re.search(r"<(?!!-- -->)|(?<!-- )>(?<!-->)", shown)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[\]~$]", re.sub(r"\\[\\`*\[\]~$_]", "", shown))
    assert not re.search(r"@\w", shown)


@given(ANY)
def test_code_is_one_span(text: str) -> None:
    shown = code(text)
    inner = shown[1:-1] if shown.startswith("`") else shown.removeprefix("<code>")[:-7]
    assert "`" not in inner
    if shown.startswith("<code>"):
        assert not set("<>|`*_[]\\") & set(inner)


@given(ANY, ANY, ANY)
def test_report_keeps_its_shape(test: str, metric: str, text: str) -> None:
    report = markdown_text(a_run(test, metric, text), most_bytes=COMMENT_BYTES)
    blocks = re.compile("^(```+)sh\\n.*?^\\1\\n", re.DOTALL | re.MULTILINE)
    outside = re.sub("`[^`\\n]*`", "", blocks.sub("", report))
    assert outside.count("<details") == outside.count("</details>")
    columns = None
    for line in report.splitlines():
        if line.startswith("| "):
            columns = columns or cells_of(line, pairs=True)
            assert cells_of(line, pairs=True) == columns
        else:
            columns = None if not line.startswith("|--") else columns
    report.encode()


@given(ANY, ANY, ANY)
def test_annotation_is_one_line_that_decodes_back(file: str, title: str, message: str) -> None:
    line = str(Annotation(Level.ERROR, title, (message,), file, 3))
    assert line.splitlines() == [line]
    found = re.fullmatch(r"::error file=([^:,]*),line=3,title=([^:,]*)::(.*)", line)
    assert found is not None
    read = [decoded(text.replace("%25", "\0")).replace("\0", "%") for text in found.groups()]
    assert read == [visible(file), visible(title), visible(message)]


@given(ANY, ANY)
def test_properties_make_xml_that_parses(test: str, metric: str) -> None:
    found = judged(test, verdict(Outcome.WITHIN, Metric(metric, metric)))
    properties = ET.Element("properties")
    for name, value in property_pairs(found, None):  # as pytest does
        properties.append(ET.Element("property", name=str(name), value=bin_xml_escape(value)))
    again = ET.fromstring(ET.tostring(properties, encoding="unicode").encode())
    assert len(again) == len(properties)


@given(ANY, ANY, ANY)
def test_whatever_is_in_a_run_lines_are_lines_and_json_is_json(
    test: str, metric: str, text: str
) -> None:
    run = a_run(test, metric, text)
    for line in annotation_lines(run):
        assert line.splitlines() == [line]
        assert re.match(r"::(error|warning) ", line)
    issues = json.loads(gitlab_text(run).encode())
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert all(issue["description"].isprintable() for issue in issues)
    blocks = summary_lines(run.tests, summary_options=run.summary_options)
    lines = list(printed(blocks, Style(120, wrap=True)))
    assert all(line.isprintable() for line in lines)
    table = lines[: lines.index("")] if "" in lines else []
    assert all(columns_of(line) <= 120 for line in table)
