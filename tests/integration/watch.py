#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""watch.py PID FILE RUNS: reads a result over and over while process PID writes it.

Whenever the file is there, it must be a whole document, and what was in it before must still be there. At least RUNS
different numbers of runs must have been seen before the process ended. Exit status 0: all is well."""
import json
import os
import sys
import time


def alive(pid):
    try:
        with open("/proc/%s/stat" % pid, encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        return False


def main():
    pid, path, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seen, reads, runs, stamp = set(), 0, [], None
    while alive(pid):
        time.sleep(0.0005)
        try:
            now = os.stat(path)
        except FileNotFoundError:
            if stamp:
                sys.exit("the file has gone after %d reads" % reads)
            continue
        if (now.st_ino, now.st_mtime_ns, now.st_size) == stamp:
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read()
        reads += 1
        stamp = now.st_ino, now.st_mtime_ns, now.st_size
        try:
            document = json.loads(text)
        except ValueError as e:
            sys.exit("read %d, %d characters: %s" % (reads, len(text), e))
        if document["runs"][: len(runs)] != runs:
            sys.exit("read %d: earlier runs have changed" % reads)
        runs = document["runs"]
        if document["finished"] is None:
            seen.add(len(runs))
    print("%d versions, with %s runs" % (reads, sorted(seen)))
    if len(seen) < wanted:
        sys.exit("fewer than %d versions were there before the end" % wanted)


main()
