# SPDX-License-Identifier: GPL-2.0-or-later
"""What can be counted: user instructions and system calls per I/O, by their difference between a short and a long run:
what happens once drops out. Only of samedisk's instructions callgrind counts the loop that does the I/O, alone, in one
run: what is written about a run at its end grows with what there is to tell."""
import os
import re
import shutil

import clients
from clients import Failed, execute

SECONDS = 60
LOOP = "worker_loop"  # src/engine/worker.c


def _runs(client, case, slow):
    """The two runs: of so many I/Os, or of so many seconds where the client says itself how many I/Os it began. That is
    ours, which is to be counted as people run it; bounded by io_size its loop does more. slow: under valgrind."""
    if client.label == "samedisk":
        return [{"seconds": s} for s in (0.2, 1)]
    few = case.depth == 1 or case.bs != "4k"
    return [{"ios": n} for n in ((2000, 12000) if slow else (2000, 22000) if few else (10000, 60000))]


def _difference(client, case, target, slow, count):
    seen = []
    for how in _runs(client, case, slow):
        counted = count(client.command(case, target, ramp=0, **how))
        seen.append((counted, how.get("ios") or client.begun()))
    return (seen[1][0] - seen[0][0]) / (seen[1][1] - seen[0][1])


def instructions(client, case, target):
    if not shutil.which("valgrind"):
        raise Failed("no valgrind")

    def count(command):
        out = os.environ["BENCH_DIR"] + "/callgrind.out"
        tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out]
        if client.label == "samedisk":
            tool.append("--toggle-collect=" + LOOP)
        _, err = execute(clients.cpus()[1] + tool + command, SECONDS)
        found = re.search(r"Collected : (\d+)", err)
        if not found or found.group(1) == "0":
            raise Failed("failed: callgrind sees no %s" % (LOOP if found else "end"))
        return int(found.group(1))

    if client.label == "samedisk":
        return count(client.command(case, target, seconds=1.5, ramp=0)) / client.begun()
    return _difference(client, case, target, True, count)


def _perf(command):
    out = os.environ["BENCH_DIR"] + "/perf.out"
    execute(["perf", "stat", "-e", "raw_syscalls:sys_enter", "-x,", "-o", out, "--"] + command, SECONDS)
    with open(out, encoding="utf-8") as f:
        for line in f:
            words = line.split(",")
            if len(words) > 2 and words[2] == "raw_syscalls:sys_enter" and words[0].isdigit():
                return int(words[0])
    raise Failed("failed: perf counts nothing")


def _strace(command):
    out = os.environ["BENCH_DIR"] + "/strace.out"
    execute(["strace", "-f", "-c", "-o", out] + command, SECONDS)
    with open(out, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if words and words[-1] == "total":
                return int([w for w in words if w.isdigit()][0])
    raise Failed("failed: strace counts nothing")


class Calls:
    """System calls, by perf where it may look, else by strace, under which replies come in larger batches."""

    def __init__(self):
        self.name, self.count = None, None
        for name, count in (("perf", _perf), ("strace", _strace)):
            try:
                if shutil.which(name) and count(["true"]) > 0:
                    self.name, self.count = name, count
                    return
            except Failed:
                pass

    def per_io(self, client, case, target):
        if not self.count:
            raise Failed("no perf, no strace")
        return _difference(client, case, target, False, lambda c: self.count(clients.cpus()[1] + c))
