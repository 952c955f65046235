"""Whatever a file of results holds, it is read as a run or refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.readers.benchmark_json import read_benchmark_run
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.observation import decode_run, encode_run
from tests.harness.benchmarks import (
    complete_run,
    media_result,
    server_report,
    tt_xla_result,
    vllm_result,
)
from tests.properties.test_hostile_documents import JSON, paths, replaced

DOCUMENTS = [complete_run(), tt_xla_result(), vllm_result(), server_report(), media_result()]


@settings(max_examples=25)
@given(st.data())
def test_anything_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    document = data.draw(st.sampled_from(DOCUMENTS))
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(list(paths(document))))
        document = replaced(document, place, data.draw(JSON))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        file.write_text(json.dumps(document))
        try:
            run = read_benchmark_run(file)
        except InputError:
            return
    assert run.tests
    if all(judged.observation.hardware for judged in run.tests.values()):
        written = json.dumps(encode_run(run), allow_nan=False)
        again = decode_run(json.loads(written))
        assert encode_run(again) == encode_run(run)
