"""Double buffers of weights."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, clean, limit, not_applicable, not_measured
from tests.rules.convolving import NOT_ASKED, called, conv, convolving, output
from tests.rules.tables import op, table

ask = Ask("TTP604")
LIMIT = limit(0.0, "of convolutions")

ON, OFF = "{'enable_weights_double_buffer': 'true'}", "{'enable_weights_double_buffer': 'false'}"
UNIT = "of convolutions"


def test_some_have_none() -> None:
    ops = table(
        conv(attributes=ON),
        conv(attributes=OFF, ns=30.0),
        conv(attributes=OFF, ns=30.0),
        conv(attributes=OFF, pixels=64, ns=90.0),
        conv(),
    )
    assert ask(ops=ops) == LIMIT.found(
        0.75,
        "weights not double-buffered in 3 of 4 convolutions",
        [
            Evidence("Conv2d 1x1x64x32", 90.0, "ns", 90 / 350),
            Evidence("2 x Conv2d 1x1x1024x32", 60.0, "ns", 60 / 350),
        ],
    )
    limit = ask.with_limits(share=0.75)
    assert limit(ops=ops) == clean(0.75, limit=0.75, unit=UNIT)


def test_all_have_them() -> None:
    ops = table(conv(attributes=ON), op("Unary", attributes=OFF))
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_a_report_without_a_table() -> None:
    on, off = (NOT_ASKED._replace(enable_weights_double_buffer=switch) for switch in (True, False))
    made = convolving((called(1, asked=on), output(1)), (called(2, asked=off), output(2)))
    assert ask(report=made) == LIMIT.found(
        0.5,
        "weights not double-buffered in 1 of 2 convolutions",
        [Evidence("ttnn.conv2d (operation 2)")],
    )


def test_inputs_that_do_not_tell() -> None:
    assert ask() == not_measured("needs an op table or a report database")
    assert ask(ops=table(op("Unary"))) == not_applicable("no convolutions")
    unavailable = not_measured("the capture does not tell whether weights are double-buffered")
    assert ask(ops=table(conv())) == unavailable
    unasked = convolving((called(1, asked=None), output(1)))
    assert ask(report=unasked) == unavailable
