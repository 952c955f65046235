"""Any damage to a report database, or to a captured graph: read, or refused; nothing else."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.readers.graph import read_held
from pytest_ttnn_perf.analysis.readers.report_db import (
    bare_name,
    buffer_type,
    conv_of,
    core_ranges,
    memory_of,
    read_report_db,
    shape_of,
    shard_of,
)
from pytest_ttnn_perf.core.errors import InputError
from tests.analysis.readers.report_db_tables import (
    RANKED,
    RELEASE,
    build,
    circular,
    function,
    graph,
    one_op,
)
from tests.properties.strategies import SOME

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_ttnn_perf.analysis.readers.report_db import Report

NODES = [*function("ttnn.conv2d", *function("HaloDeviceOperation", RELEASE, circular(64)))]
MEMORY = (
    "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,"
    'shard_spec=ShardSpec{grid=[{"start":{"x":0,"y":0},"end":{"x":7,"y":7}], shape=[64, 32]})'
)
TEXTS = st.text(alphabet='Ss[](){}=:,;-0123 "xyhapegridstConv2dConfig_.', max_size=200) | st.text()


def sample(folder: Path) -> bytes:
    """Return a small database that uses every table."""
    file = build(
        folder / "whole.sqlite",
        RANKED,
        operations=[one_op("ttnn.conv2d", number) for number in range(1, 30)],
        operation_arguments=[{"operation_id": 1, "name": "a", "value": "Conv2dConfig(a=1)"}],
        tensors=[{"tensor_id": number, "shape": "Shape([1, 2])", "memory_config": MEMORY}
                 for number in range(20)],
        input_tensors=[{"operation_id": 2, "input_index": 0, "tensor_id": 4}],
        output_tensors=[{"operation_id": 1, "output_index": 0, "tensor_id": 4}],
        buffers=[{"operation_id": 1, "max_size_per_bank": 8, "buffer_type": 1}],
        captured_graph=graph(*NODES),
        devices=[{"device_id": 0}],
        report_metadata=[{"key": "schema_version", "value": "3.5"}],
    )  # fmt: skip
    return file.read_bytes()


def attempted(file: Path, content: bytes) -> Report | None:
    """Read a database; None where it is refused. Nothing else may come out."""
    file.write_bytes(content)
    try:
        return read_report_db(file)
    except InputError as error:
        said = str(error)
    assert "\n" not in said
    return None


def test_random_bytes_in_the_middle(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("report")
    whole = sample(folder)

    @SOME
    @given(st.data())
    def damage(data: st.DataObject) -> None:
        content = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 4))):
            begin = data.draw(st.integers(0, len(content) - 1) | st.integers(0, 120))
            junk = data.draw(st.binary(min_size=1, max_size=60))
            content[begin : begin + len(junk)] = junk
        attempted(folder / "db.sqlite", bytes(content))

    damage()


def test_a_cut_database_is_always_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("report")
    whole = sample(folder)

    @SOME
    @given(st.integers(0, len(whole) - 1))
    def cut(length: int) -> None:
        assert attempted(folder / "db.sqlite", whole[:length]) is None

    cut()
    assert attempted(folder / "db.sqlite", whole) is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["node_type", "params", "name", "graph", "devices", "counter", "size"]),
            inner | st.sampled_from(["function_start", "function_end", "circular_buffer_allocate"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@SOME
@given(document=JSON | st.lists(st.sampled_from(NODES) | JSON, max_size=8))
def test_any_document_as_a_graph(
    tmp_path_factory: pytest.TempPathFactory, document: object
) -> None:
    file = tmp_path_factory.mktemp("g") / "graph_capture.json"
    file.write_text(json.dumps(document))
    with suppress(InputError):
        read_held(file)


@SOME
@given(text=TEXTS)
def test_any_text_in_the_place_of_a_configuration(text: str) -> None:
    for before in ("", "memory_layout=", "shard_spec=", "Conv2dConfig(", "Shape("):
        bare_name(before + text)
        buffer_type(before + text)
        shape_of(before + text)
        memory_of(before + text)
        shard_of(before + text)
        core_ranges(before + text)
        conv_of({"conv_config": before + text})
