"""Sections as tt-lang prints them, for tests to put together and to damage."""

from __future__ import annotations

RULE = "=" * 100

PROGRAM = """\
--- Program 7 (scale) ---
grid: 3x2 (6 cores)
duration: 1,500,000 cycles (1.50 ms)
  DRAM read:         96.0 KB  (48 transfers)
  DRAM write:         1.5 MB  (768 transfers)
  L1 read:               0 B  (0 transfers)
  L1 write:          10.0 KB  (5 transfers)
  L1 targets:     4 cores (2x2)
  L1 multicast:        512 B  (1 transfers, pipe)
  effective BW:   1.1 GB/s (total payload / duration)
  transfer sizes: 512 Bx1, 2.0 KBx816
  barriers:       6 read (1 per 8 reads), 0 write
  semaphores:     9 events
  noc reads:      NOC_0=40, NOC_1=8
  noc writes:
  DRAM channels:  12
  kernel time:
    BRISC    1,400,000 cycles (1.40 ms) - 1,500,000 cycles (1.50 ms)
    NCRISC   900 cycles (0.9 us)
"""

SMALL_PROGRAM = """\
--- Program 8 ---
grid: 1x1 (1 nodes)
duration: 100 cycles (0.1 us)
  DRAM read:             0 B  (0 transfers)
  DRAM write:            0 B  (0 transfers)
"""

PERF_SUMMARY = f"""\
=== PERF SUMMARY ===
arch: blackhole, freq: 1350 MHz, max_compute_cores: 110
programs: 2 (listed in dispatch order, includes ttnn ops)

{PROGRAM}
{SMALL_PROGRAM}
"""

HEAD = f"""\
{RULE}
TTLANG AUTO-PROFILE REPORT
{RULE}

CB Colors:  CB[0]   CB[3]

Total operations: 30
Longest thread: 4,000 cycles

"""

THREADS = f"""\
{RULE}
THREAD: NCRISC     [reader] (20 ops, 4,000 cycles, 100.0% of total)
{RULE}

LINE   %TIME   CYCLES     SOURCE
------ ------- ---------- {"-" * 70}
10                        def reader():
11      25.0%  1,000          once()
12      10.0%  40             tx = copy(a, "  (x1)")  (x10 = 400 cycles)
13      45.0%  18-1,000,000         tx.wait()  (x8, avg=225.5, total=1,800)
                                              ├─ waiting for compute @ line 3 (worker)
                                              ╰─ DMA barrier for CB[3]
14      20.0%  800            with a.reserve() as b:
                                                     ├─ 700 cb_reserve (x4)
                                                     ├─ 100 cb_push (implicit)
                                                     ╰─ 9 cycles waiting for DMA @ line 5 (reader)

{RULE}
THREAD: TRISC_1    (10 ops, 1,000 cycles, 25.0% of total)
{RULE}

       (no source available for kernel '')

"""

SUMMARY = f"""\
{RULE}
THREAD SUMMARY
{RULE}
  NCRISC                  [reader]      4,000 cycles ( 20 ops) [100.0%]
  TRISC_1                               1,000 cycles ( 10 ops) [ 25.0%]

"""

BOUND = f"""\
  67% memory bound
  Compute ├{"─" * 30}●{"─" * 9}┤ Memory
          1,000 cycles                            3,000 cycles

"""

ROOFLINE = f"""\
ROOFLINE ANALYSIS
{RULE}
  Thread            Total   - Sync Waits   =       Work
  ------------ ----------   - ----------   = ----------
  NCRISC            4,000   -      1,000   =      3,000
  TRISC_1           1,000   -          0   =      1,000

  Memory:       3,000 cycles  (NCRISC)
  Compute:      1,000 cycles  (TRISC_1)

{BOUND}"""

AUTO_PROFILE = f"{HEAD}{THREADS}{SUMMARY}{ROOFLINE}{RULE}\n\n"

SIGNPOSTS = f"""\
{"=" * 80}
SIGNPOST PROFILE
{"=" * 80}

  NAME             THREAD        COUNT        TOTAL        AVG        MIN        MAX
  ---------------- ------------ ------ ------------ ---------- ---------- ----------
  load  all tiles  NCRISC           31        1,085         35         30         40
  TRISC_0 store    TRISC_0           2           70         35         35         35

{"=" * 80}

"""

FLOW_GRAPH = """\
=== CB FLOW GRAPH ===
{"circular_buffers":[{"cb_index":2,"consumers":[],"dma_ops":[],"producers":[],"wait_ops":[]},\
{"cb_index":0,"consumers":[{"kernel":"w","line":-1,"op":"cb_wait","thread":"compute"}],\
"dma_ops":[{"direction":"read","kernel":"r","line":4,"op":"copy","thread":"noc"}],\
"producers":[{"kernel":"r","line":3,"op":"cb_reserve","thread":"noc"}],"wait_ops":[]}]}
"""

PIPE_GRAPH = """\
=== PIPE GRAPH ===
{"numPipeRuntimeArgs":1,"pipes":[{"srcX":0,"srcY":1,"dstStartX":1,"dstStartY":1,\
"dstEndX":3,"dstEndY":1,"receiverCBIndex":2,"runtimeArgSlot":0}]}
"""

#: As tt-lang prints it of each kernel that it compiles.
CODE = f"""\
=== reader kernel written to /tmp/ttlang_kernel_reader_0.cpp ===
// reader
void kernel_main() {{
  int32_t v1 = 2048;
  int32_t v4 = 4;
    cb_reserve_back(get_compile_time_arg_val(0), v4);
    TensorAccessor v21 = TensorAccessor(tensor_accessor_args_64, v20, v1);
    cb_wait_front(get_compile_time_arg_val(1), 16);
}}
{"=" * 60}
"""

OVERFLOW = """\
Traceback (most recent call last):
ValueError: Total circular buffer allocation (4194304 bytes) exceeds L1 budget (1466368 bytes). \
This checks static CB backing store only (not all L1 on core).
  CB[0]: 2097152 bytes
"""

WHOLE_LOG = AUTO_PROFILE + PERF_SUMMARY + FLOW_GRAPH + PIPE_GRAPH + SIGNPOSTS
