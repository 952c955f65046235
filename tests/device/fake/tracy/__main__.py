"""``python -m tracy``: runs a module under the profiler and writes the table of its ops."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
from optparse import OptionParser, Values
from pathlib import Path

from .report import write_report


def main() -> None:
    """Start the module in a child; inside that, run it."""
    options, rest = _parser().parse_args()
    if options.output_folder:
        Path(options.output_folder).mkdir(parents=True, exist_ok=True)
        os.environ["TT_METAL_PROFILER_DIR"] = options.output_folder
    os.environ["TT_METAL_PROFILER_CPP_POST_PROCESS"] = "1"
    if options.inside:
        _run_inside(options, rest)
    else:
        _run_child(options)


def _parser() -> OptionParser:
    parser = OptionParser(usage="python3 -m tracy [-m module | scriptfile] [arg] ...")
    parser.disable_interspersed_args()
    flags = (
        ("-m", "module"), ("-p", "partial"), ("-r", "report"), ("--check-exit-code", "check"),
        ("--no-capture-tool", "inside"),
    )  # fmt: skip
    for name, to in flags:
        parser.add_option(name, dest=to, action="store_true", default=False)
    parser.add_option("-o", "--output-folder", dest="output_folder")
    parser.add_option("-t", "--port", dest="port", default="8086")
    return parser


def _run_inside(options: Values, rest: list[str]) -> None:
    if options.report:
        os.environ["TTNN_OP_PROFILER"] = "1"
        os.environ["TT_METAL_PROFILER_TRACE_TRACKING"] = "1"
    sys.argv[:] = rest
    if options.module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(rest[0], run_name="__main__")


def _run_child(options: Values) -> None:
    """Run the command as a shell sees it: the quotes of the arguments are lost, as in reality."""
    script = os.environ.get("FAKE_TTNN")
    if not script or not json.loads(Path(script).read_text())["tracy"]:
        _say("ERROR", "run_report_setup:119 - Tracy tools were not found. Please make sure you are "
             "on a Tracy-enabled build (default).")  # fmt: skip
        sys.exit(1)
    folder = Path(os.environ.get("TT_METAL_PROFILER_DIR") or Path.cwd() / "generated" / "profiler")
    shutil.rmtree(folder / ".logs", ignore_errors=True)
    command = f"{sys.executable} -m tracy --no-capture-tool {' '.join(sys.argv[1:])}"
    environment = {**os.environ, "TRACY_PORT": options.port, "TT_METAL_DEVICE_PROFILER": "1"}
    child = subprocess.Popen(command, shell=True, env=environment, start_new_session=True)

    def stop(*_: object) -> None:
        os.killpg(child.pid, signal.SIGTERM)
        sys.exit(3)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    code = child.wait()
    if options.check and code:
        _say("ERROR", f"run_workload:400 - {command} exited with a non-zero return code")
        sys.exit(4)
    if options.report:
        write_report(folder)


def _say(level: str, text: str) -> None:
    sys.stderr.write(f"{level:<8} | tracy:{text}\n")


if __name__ == "__main__":
    main()
