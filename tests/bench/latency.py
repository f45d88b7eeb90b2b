# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the latency true? A canned server holds every reply for a known time and records, request by request, when it had
the request and when it began to send the reply, on the clock of the client. latency_truth.c drives the backends; each
of its I/Os has an offset of its own, by which the two are matched. What the client measures then encloses what the
server recorded, and is longer by the road and the client's wake-up alone: where it has a CPU to itself the server never
sleeps, because its own wake-up lies before its record."""
import os
import statistics
from collections import namedtuple

import clients
from clients import Failed, execute

US = 1000
DELAYS = [
    ("200 us", 200, ["--delay-us", "200"]),
    ("1 ms", 1000, ["--delay-us", "1000"]),
    ("5 ms", 5000, ["--delay-us", "5000"]),
    ("bimodal", 600, ["--bimodal", "200,5000,10"]),
]
DEPTHS = (1, 2, 8, 64)
# protocol, engine, wait, most that the median may be over the server's record, us
ENGINES = [
    ("nfs", "native", "block", 60),
    ("nfs", "native", "spin", 20),
    ("nfs", "libnfs", "", 60),
    ("iscsi", "native", "block", 60),
    ("iscsi", "native", "spin", 20),
    ("iscsi", "libiscsi", "", 60),
]

Truth = namedtuple("Truth", "engine delay depth n least median mean p50 p99 limit")
# least, median: of client minus server per request; mean, p50, p99: (server, client); all in us


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def _start(protocol, delay, record):
    delay = delay + (["--spin"] if clients.cpus()[0] else [])
    if protocol == "nfs":
        return clients.canned("canned_nfsd", ["--file", "d=%d" % clients.CANNED_SIZE] + delay, record), clients.nfs_url
    options = ["--target", clients.IQN, "--size", str(clients.CANNED_SIZE)] + delay
    return clients.canned("canned_iscsid", options, record), clients.iscsi_url


def _server_times(path, protocol):
    """{offset: (received, sent)} of the reads, ns. Of several at one offset the last is the load's."""
    reads = {"nfs": (6,), "iscsi": (0x28, 0x88)}[protocol]
    times = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            if line.startswith("#"):
                continue
            words = line.split()
            if int(words[2], 16) in reads:
                times[int(words[6])] = (int(words[3]), int(words[4]))
    return times


def _match(client_text, server, n):
    held, seen, over = [], [], []
    for line in client_text.splitlines():
        offset, submitted, done = map(int, line.split())
        if offset not in server:
            raise Failed("failed: the server has no record of a read")
        received, sent = server[offset]
        if received < submitted or done < sent:
            raise Failed("wrong: a reply before it was sent, or a request before it was submitted")
        held.append((sent - received) / US)
        seen.append((done - submitted) / US)
        over.append((done - submitted - (sent - received)) / US)
    if len(seen) != n:
        raise Failed("failed: %d of %d reads" % (len(seen), n))
    return held, seen, over


def _one(engine, delay, depth, seconds):
    protocol, name, wait, limit = engine
    record = os.environ["BENCH_DIR"] + "/record"
    n = int(max(50, min(20000, seconds * 1e6 * depth / (delay[1] + 50))))
    server, url_of = _start(protocol, delay[2], record)
    with server as port:
        url = url_of(port)
        url += ("&" if "?" in url else "?") + "engine=" + name + ("&wait=" + wait if wait else "")
        program = os.path.join(os.environ["BENCH_TOOLS"], "bench", "latency_truth")
        out, _ = execute(clients.cpus()[1] + [program, url, str(depth), str(n)], 10 * seconds + clients.LIMIT)
    held, seen, over = _match(out, _server_times(record, protocol), n)
    pairs = [(f(held), f(seen)) for f in (statistics.mean, statistics.median, lambda v: percentile(v, 0.99))]
    return Truth(engine, delay[0], depth, n, min(over), statistics.median(over), *pairs, limit)


def truths(seconds):
    """Yields Truth, or (engine, delay, depth, words) where there is none."""
    for engine in ENGINES:
        for delay in DELAYS:
            for depth in DEPTHS:
                try:
                    yield _one(engine, delay, depth, seconds)
                except Failed as e:
                    yield (engine, delay[0], depth, str(e))


def engine_name(engine):
    return "%s %s%s" % (engine[0], engine[1], " " + engine[2] if engine[2] else "")
