"""An error of tt-metal is its cause, without the backtrace."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.device.ttnn import cause_of

NO_CHIPS = """\
RuntimeError: TT_FATAL @ /project/tt_metal/llrt/tt_cluster.cpp:129: num_chips > 0
info:
No chips detected in the cluster
backtrace:
 --- /lib/python3.12/site-packages/ttnn/build/lib/_ttnncpp.so(+0xb233e8) [0x7fd467d233e8]
 --- tt::Cluster::get_cluster_type_from_cluster_desc(tt::llrt::RunTimeOptions const&)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (NO_CHIPS, "No chips detected in the cluster"),
        (
            "TT_THROW @ build.cpp:291: tt::exception\ninfo:\nsfpi not found at\n  /opt/sfpi\n"
            "backtrace:\n --- f()",
            "sfpi not found at /opt/sfpi",
        ),
        ("TT_FATAL @ a.cpp:1: x\ninfo:\nwithout a backtrace", "without a backtrace"),
        ("TT_FATAL @ a.cpp:1: x > 0\ninfo:\nbacktrace:\n --- f()", "TT_FATAL @ a.cpp:1: x > 0"),
        ("TT_FATAL @ a.cpp:1: x > 0\nbacktrace:\n --- f()", "TT_FATAL @ a.cpp:1: x > 0"),
        ("log\nlog\n" + NO_CHIPS + "log\n", "No chips detected in the cluster"),
        (
            "RuntimeError: Cluster descriptor file does not exist at path: /no.yaml\n"
            "Location: /project/umd/cluster_descriptor.cpp:125\n 1. f\n 2. g\n",
            "RuntimeError: Cluster descriptor file does not exist at path: /no.yaml",
        ),
        ("ImportError: libcudnn.so.9: no such file", "ImportError: libcudnn.so.9: no such file"),
        ("ValueError: two\nlines", "ValueError: two\nlines"),
        ("info:\nnot of tt-metal\nbacktrace:", "info:\nnot of tt-metal\nbacktrace:"),
        ("", ""),
    ],
)
def test_the_cause_of_an_error(text: str, cause: str) -> None:
    assert cause_of(text) == cause
