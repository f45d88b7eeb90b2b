#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the cases of cases.py and prints their table; bench.sh starts it, with the servers, and says how it is used."""
import fnmatch
import os
import statistics
import sys
import time

import cases
import clients
import counts
import latency
import page
from clients import Failed

QUICK = os.environ.get("BENCH_QUICK", "0") not in ("", "0")
PAIRS = 2 if QUICK else 5
SECONDS = 0.3 if QUICK else 0.8


class Output:
    """Lines on stdout that are also kept for the manual page."""

    def __init__(self):
        self.parts = {}

    def line(self, part, text):
        print(text, flush=True)
        self.parts.setdefault(part, []).append(text)


def attempt(function, *args):
    """(value, None), or (None, why there is none)."""
    try:
        return function(*args), None
    except Failed as e:
        return None, str(e)


def once(seen, client, label, measure, case, target):
    """fio has the same load in several cases; what is counted there is the same, too."""
    key = (label, client.label, case.place, case.rw, case.bs, case.depth)
    if not isinstance(client, clients.Fio):
        return attempt(measure, client, case, target)
    if key not in seen:
        seen[key] = attempt(measure, client, case, target)
    return seen[key]


def counted(out, case, label, ours, other, measure, target, seen):
    """A row of what can be counted."""
    mine, why = attempt(measure, ours, case, target)
    theirs, their_why = once(seen, other, label, measure, case, target) if other else (None, "no fio")
    ratio = page.number(mine / theirs) if mine is not None and theirs and theirs > 0.01 else ""
    out.line("TABLE", page.row(label, why or page.exact(mine), their_why or page.exact(theirs), ratio,
                               case.goals[label], mine and float(page.exact(mine))))


def pairs(case, ours, other, target):
    """[(ours, other)] of Figures, A B A B; why a side has none. A side that failed is not tried again."""
    got, whys = ([], []), [None, None if other else "no fio"]
    for _ in range(PAIRS):
        for side, client in enumerate((ours, other)):
            if whys[side]:
                continue
            figures, whys[side] = attempt(clients.timed, client, case, target, SECONDS)
            if figures:
                got[side].append(figures)
    return got, whys


def timed_rows(out, case, got, whys):
    for label, field, digits in (("cpu", "cpu", "CPU ns/IO"), ("iops", "iops", "IOPS"), ("mean", "mean", "mean us")):
        values = [[getattr(f, field) for f in side] for side in got]
        ratios = [a / b for a, b in zip(*values) if b]
        words = [why or page.spread(v, statistics.median(v)) for v, why in zip(values, whys)]
        ratio = statistics.median(ratios) if ratios and not any(whys) else None
        if case.other == "one" and label != "iops":
            continue
        out.line("TABLE", page.row(digits, words[0], words[1], page.spread(ratios, ratio) if ratio is not None else "",
                                   case.goals.get(label), ratio))


def run_case(out, case, fios, calls, seen):
    out.line("TABLE", "%s: %s" % (case.name, case.title))
    try:
        with clients.place(case.place) as target:
            ours = clients.Samedisk()
            if case.other == "one":
                other = clients.Samedisk(jobs=1)
            elif case.other == "libaio":
                other = clients.Samedisk(keys=["engine=libaio"])
            else:
                fio = fios.get(target.fio[0])
                other = clients.Fio(fio) if fio else None
            if case.counted:
                counted(out, case, "instr", ours, other, counts.instructions, target, seen)
                counted(out, case, "calls", ours, other, calls.per_io, target, seen)
            timed_rows(out, case, *pairs(case, ours, other, target))
    except Failed as e:
        out.line("TABLE", "  " + str(e))


def run_latency(out):
    """The whole table on stdout; two shorter ones in the manual page."""
    print("%s: the client's latency less the server's own record, us; s/c: of the server's record and the client's" %
          cases.LATENCY)
    print(page.TRUTH_HEAD)
    rows, met, n = {}, 0, 0
    for t in latency.truths(0.2 if QUICK else 0.5):
        line, good = page.truth_line(t)
        print(line, flush=True)
        met, n = met + good, n + 1
        rows.setdefault((t[0], t[1]), []).append(t)
    print("%d of %d met" % (met, n))
    out.parts["LATENCY"] = page.truth_summary(rows)
    out.parts["FOLLOWS"] = page.truth_follows(rows)


def choose(words):
    """The cases whose names match; all of them without a word."""
    for word in words:
        if not fnmatch.filter(cases.NAMES, word):
            raise SystemExit("bench: no case is called %s; there are: %s" % (word, " ".join(cases.NAMES)))
    return [n for n in cases.NAMES if not words or any(fnmatch.fnmatch(n, w) for w in words)]


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(["%-14s %s" % (c.name, c.title) for c in cases.CASES] +
                        ["%-14s %s" % (cases.LATENCY, "latencies of the client against the server's own record")]))
        return
    chosen = choose(sys.argv[1:] or os.environ.get("BENCH_CASES", "").split())
    begun = time.monotonic()
    out, fios, calls, seen = Output(), clients.find_fio(), counts.Calls(), {}
    for line in page.machine_lines(page.machine(fios, calls.name, QUICK, PAIRS)):
        out.line("MACHINE", line)
    print()
    if chosen != [cases.LATENCY]:
        out.line("TABLE", page.HEAD)
    for case in cases.CASES:
        if case.name in chosen:
            run_case(out, case, fios, calls, seen)
    if cases.LATENCY in chosen:
        print()
        run_latency(out)
    print("\n%.0f s" % (time.monotonic() - begun))
    path = os.environ.get("BENCH_MAN")
    if path:
        template = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samedisk-performance.7.in")
        page.manual(template, path, {name: page.mdoc(lines) for name, lines in out.parts.items()})


if __name__ == "__main__":
    main()
