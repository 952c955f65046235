"""One rule per file, named by its code; and what they need, to be known without importing them."""

from __future__ import annotations

from typing import Final

from pytest_ttnn_perf.records.finding import Input

#: The codes of rules by what they need, as their decorators say: a rule is imported for a test that
#: has one of these inputs, which for most rules is a test on a device.
BY_NEEDS: Final[dict[tuple[Input, ...], str]] = {
    (Input.TEST, Input.KERNELS): "TTP001",
    (Input.OPS,): (
        "TTP002 TTP007 TTP103 TTP203 TTP303 TTP305 TTP306 TTP311 TTP312 TTP313 TTP314 TTP401 "
        "TTP403 TTP607 TTP703 TTP704"
    ),
    (Input.TEST,): "TTP003 TTP404 TTP502 TTP503 TTP901 TTP902 TTP903 TTP904 TTP905 TTP906",
    (): "TTP004 TTP006",
    (Input.KERNELS,): "TTP005 TTP801 TTP803 TTP804 TTP805",
    (Input.REPORT, Input.OPS): "TTP101",
    (Input.OPS, Input.REPORT): (
        "TTP102 TTP104 TTP201 TTP202 TTP301 TTP302 TTP601 TTP602 TTP603 TTP604 TTP605 TTP606"
    ),
    (Input.DEVICE,): "TTP105 TTP405 TTP406 TTP407 TTP501 TTP701 TTP702",
    (Input.REPORT,): "TTP304 TTP504 TTP505",
    (Input.OPS, Input.TEST): "TTP402",
}
