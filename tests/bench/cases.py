# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured, and the targets: ratios to fio with its defaults, the same load at the same depth, latencies
recorded, what was read delivered to the buffer of its I/O."""
from collections import namedtuple

# What "better" is: `limit` is the most that a cost may be, or the least that a rate may be.
Goal = namedtuple("Goal", "limit kind")  # kind: "most", "least"


class Case:
    """One load on one target. place: where it goes to (clients.py); keys: of the access; cpu, iops: ratios to the other
    side; instr, calls: our own per I/O; other: the other side: "fio", or samedisk with "one" worker or by "libaio"."""

    def __init__(self, name, title, place, rw="randread", bs="4k", depth=32, keys=(), jobs=1, pinned=True, other="fio",
                 cpu=None, iops=None, instr=None, calls=None, counted=True):
        self.name, self.title, self.place = name, title, place
        self.rw, self.bs, self.depth, self.keys, self.jobs = rw, bs, depth, tuple(keys), jobs
        self.pinned, self.other, self.counted = pinned, other, counted
        self.goals = {
            "instr": instr and Goal(instr, "most"),
            "calls": calls and Goal(calls, "most"),
            "cpu": cpu and Goal(cpu, "most"),
            "iops": iops and Goal(iops, "least"),
        }

    @property
    def block(self):
        return int(self.bs[:-1]) * 1024

    @property
    def writes(self):
        return "write" in self.rw


def _network(kind, words, library):
    """The same loads over either protocol: against a canned server, so that the client is what is measured."""
    place = "canned-" + kind
    native = ["engine=native"]

    def case(suffix, what, **how):
        return Case("%s-%s" % (kind, suffix), "%s, %s" % (words, what), place, **how)

    return [
        case("r1", "4 KiB reads, depth 1", depth=1, keys=native, calls=2),
        case("r32", "4 KiB reads, depth 32", keys=native, cpu=0.60, iops=1.2, instr=800, calls=0.2),
        case("r256", "4 KiB reads, depth 256", depth=256, keys=native, cpu=0.30, iops=2.5, instr=800),
        case("w32", "4 KiB writes, depth 32", rw="randwrite", keys=native, cpu=0.60, iops=1.2, instr=1000,
             calls=0.2),
        case("spin", "4 KiB reads, depth 32, wait=spin", keys=native + ["wait=spin"], cpu=0.50, iops=3.0,
             counted=False),
        case("64k", "64 KiB writes, depth 8", rw="randwrite", bs="64k", depth=8, keys=native, cpu=0.30,
             iops=3.0),
        case("lib-r32", "4 KiB reads, depth 32, engine=" + library, keys=["engine=" + library]),
        case("lib-w32", "4 KiB writes, depth 32, engine=" + library, rw="randwrite", keys=["engine=" + library]),
    ]


CASES = (
    [
        Case("null", "null, 4 KiB reads, depth 32", "null", cpu=0.5, iops=2.0, instr=120),
        Case("null-two", "null, two workers on two CPUs beside one, depth 32 each", "null", jobs=2, pinned=False,
             other="one", iops=1.9, counted=False),
    ]
    + _network("nfs", "canned NFS", "libnfs")
    + _network("iscsi", "canned iSCSI", "libiscsi")
    + [
        Case("ganesha", "NFS-Ganesha, 4 KiB reads, depth 32", "ganesha", keys=["engine=native"], cpu=0.85,
             iops=1.0),
        Case("tgt", "tgtd, 4 KiB reads, depth 32", "tgt", keys=["engine=native"], cpu=0.65, iops=1.1),
        Case("file", "libaio on tmpfs, 4 KiB reads, depth 32", "file", keys=["engine=libaio"], cpu=0.75,
             iops=1.3, instr=200),
        Case("block", "libaio on a loop device, 4 KiB reads, depth 32", "block"),
        Case("block-r1", "libaio on a loop device, 4 KiB reads, depth 1", "block", depth=1, calls=2),
        Case("uring-block", "io_uring beside libaio, loop device, 4 KiB reads, depth 32", "block",
             keys=["engine=io_uring"], other="libaio"),
        Case("uring-block-r1", "io_uring beside libaio, loop device, 4 KiB reads, depth 1", "block", depth=1,
             keys=["engine=io_uring"], other="libaio"),
        Case("uring-file", "io_uring beside libaio, tmpfs, 4 KiB reads, depth 32", "file",
             keys=["engine=io_uring"], other="libaio"),
        Case("uring-disk", "io_uring beside libaio, a file on a disk, 4 KiB reads, depth 32", "disk",
             keys=["engine=io_uring"], other="libaio"),
    ]
)

LATENCY = "latency-truth"
NAMES = [c.name for c in CASES] + [LATENCY]
