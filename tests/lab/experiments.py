# SPDX-License-Identifier: GPL-2.0-or-later
"""What the experiments of experiments.sh have shown.

  experiments.py judge LETTER FOLDER PART    looks at what lies in FOLDER; prints one line of JSON for each statement
  experiments.py show table|tap FILE         such lines as text; exit status 1 if one of them does not hold
  experiments.py page FILE TEMPLATE PAGE     the manual page: TEMPLATE with its @NAME@ replaced

A statement is {"exp": letter, "case": what, "want": words, "got": words, "ok": bool}."""
import json
import os
import platform
import re
import subprocess
import sys
import time

import capture

KIB, MIB = 1 << 10, 1 << 20
TITLES = {
    "a": "Reads follow the receive window (window=)",
    "b": "Writes follow the filer's receive window",
    "c": "Readahead at depth 1 over a long link (readahead=)",
    "d": "Two links, round robin (rr=, portals=, servers=)",
    "e": "What each sync mode asks of the server",
    "f": "Ping: the network's time and the server's",
}


class Judge:
    """Collects the statements of one experiment."""

    def __init__(self, letter, folder, part):
        self.letter, self.folder, self.part, self.made = letter, folder, part, []
        # A test must not fail because the machine was busy for a moment; the page is held to the bounds as they are.
        self.slack = float(os.environ.get("EXPERIMENT_SLACK", "1"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def result(self, name):
        with open(self.path(name + ".json"), encoding="utf-8") as f:
            return json.load(f)

    def runs(self, name):
        """By label, the last of each. A run that failed proves nothing, and is a statement of its own."""
        runs = {r["target"]: r for r in self.result(name)["runs"]}
        for label, r in runs.items():
            if r["status"] != "ok" or r["errors"]:
                why = "%s %s %s" % (r["status"], r["error"] or "", r["errors"])
                self.say("%s, %s" % (name, label), "status ok", why, False)
        return runs

    def say(self, case, want, got, ok):
        self.made.append({"exp": self.letter, "case": case, "want": want, "got": got, "ok": bool(ok)})

    def within(self, case, got, want, tolerance, unit="", scale=1.0):
        """Within `tolerance` (0.15 is 15 %) of `want`."""
        tolerance *= self.slack
        self.say(case, "%.4g%s +- %.0f %%" % (want * scale, unit, tolerance * 100), "%.4g%s" % (got * scale, unit),
                 want > 0 and abs(got / want - 1) <= tolerance)

    def least(self, case, got, want, unit=""):
        want /= 1 + (self.slack - 1) / 6
        self.say(case, ">= %.4g%s" % (want, unit), "%.4g%s" % (got, unit), got >= want)

    def most(self, case, got, want, unit=""):
        self.say(case, "<= %.4g%s" % (want, unit), "%.4g%s" % (got, unit), got <= want)

    def same(self, case, got, want):
        self.say(case, str(want), str(got), got == want)


# ---- a: reads and the receive window ----

PORTS = {"nfs": capture.NFS_PORT, "iscsi": capture.ISCSI_PORT}
A_CASES = {"64k": (64 * KIB, 5e-3), "128k": (128 * KIB, 5e-3), "256k": (256 * KIB, 5e-3), "1m": (MIB, 20e-3)}


def mean(values):
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else 0.0


def track(run, name):
    """Mean over the window of what was sampled; 0: it is not there, which holds in no statement."""
    return mean(run["series"]["protocol"].get(name, []))


def receive_window(j):
    name, (limit, rtt) = j.part, A_CASES[j.part]
    streams = capture.windows(j.path(name + ".pcapng"))
    for label, port in PORTS.items():
        run = j.runs("%s-%s" % (name, label))[label]
        case = "%s, %s, %.0f ms" % (label, name, rtt * 1e3)
        rate, sample = run["read"]["bytes_per_second"], track(run, "tcp_rcv_wnd_bytes")
        usual, largest = streams[port]
        j.within(case + ": rate", rate, usual / rtt, 0.15, " MB/s", 1e-6)
        j.say(case + ": largest window", "<= %d" % limit, str(largest), 0 < largest <= limit)
        # A window is smaller while what has come is not read yet; a sample once a second finds it anywhere.
        j.say(case + ": samedisk's figure", "%.0f .. %d" % (limit * 0.4, limit), "%.0f" % sample,
              0.4 * limit <= sample <= limit)


# ---- b: writes and the filer's window ----

B_WINDOWS = {"26k": 26 * KIB, "64k": 64 * KIB}
PEER_WINDOW = re.compile("limited by the server's receive window.* ([.0-9]+ % of the time)")


def send_window(j):
    name, wanted = j.part, B_WINDOWS[j.part]
    runs, streams = j.runs(name), capture.windows(j.path(name + ".pcapng"), by_client=False)
    for label, port in PORTS.items():
        case, run = "%s, %s" % (label, name), runs[label]
        largest, sample = streams[port][1], track(run, "tcp_snd_wnd_bytes")
        j.within(case + ": largest window", largest, wanted, 0.15, " KiB", 1 / KIB)
        # What has come is read, and so the window opened, a little later than it comes.
        j.within(case + ": rate", run["write"]["bytes_per_second"], largest / 1e-3, 0.30, " MB/s", 1e-6)
        j.say(case + ": samedisk's figure", "%.0f .. %d" % (largest * 0.25, largest), "%.0f" % sample,
              0.25 * largest <= sample <= largest)
        notes = [r["text"] for r in j.result(name)["remarks"] if r["target"] == label and r["finding"]]
        said = [m.group(1) for m in (PEER_WINDOW.search(text) for text in notes) if m]
        j.say(case + ": limited by it, in samedisk's table", ">= 90 % of the time", (said or ["not said"])[0],
              bool(said) and float(said[0].split()[0]) >= 90)


# ---- c: readahead ----


def readahead(j):
    none, ahead = j.runs("0"), j.runs("2m")
    for label in ("nfs", "iscsi", "block"):
        before, after = (r[label]["read"]["bytes_per_second"] for r in (none, ahead))
        j.within("%s, none: time of a read" % label, none[label]["read"]["lat_ns"]["mean"] / 1e6, 5.2, 0.1, " ms")
        j.least("%s, 2m against none: %.3g and %.3g MB/s" % (label, after / 1e6, before / 1e6), after / before, 4, " x")


# ---- d: two links ----


def round_robin(j):
    one, few, two = j.runs("one"), j.runs("rr1000"), j.runs("two")
    rate = lambda runs, label: runs[label]["read"]["bytes_per_second"]
    p = two["iscsi"]["protocol"]
    first, second = p.get("path1_bytes", 0), p.get("path2_bytes", 0)
    j.most("iscsi, rr=1000: against one link", rate(few, "iscsi") / rate(one, "iscsi"), 1.3, " x")
    j.least("iscsi, rr=1: against one link", rate(two, "iscsi") / rate(one, "iscsi"), 1.8, " x")
    j.within("iscsi, rr=1: by the second link, as by the first", second, first, 0.02, " MiB", 1 / MIB)
    j.least("nfs, a connection on each: against one link", rate(two, "nfs") / rate(one, "nfs"), 1.8, " x")
    for label in PORTS:
        j.within("%s, one link: rate" % label, rate(one, label), 112 * MIB, 0.05, " MiB/s", 1 / MIB)


# ---- f: pings ----


def pings(j):
    idle, slow = j.runs("idle"), j.runs("slow")
    for label in PORTS:
        quiet, busy = idle[label]["ping"], slow[label]["ping"]
        server = lambda p: (p["front_ns"] or 0) + (p["server_ns"] or 0)
        j.within("%s, idle server: network" % label, quiet["network_ns"] or 0, 2e6, 0.10, " ms", 1e-6)
        j.within("%s, slow server: network" % label, busy["network_ns"] or 0, 2e6, 0.10, " ms", 1e-6)
        j.say("%s, slow server: all else" % label, ">= 5 ms", "%.3g ms" % (server(busy) / 1e6), server(busy) >= 5e6)
        j.say("%s, idle server: all else" % label, "< 1 ms", "%.3g ms" % (server(quiet) / 1e6), server(quiet) < 1e6)


# ---- e: durability ----

SYNCS = {  # what 256 writes are on the wire, and the class that follows
    "none": {"nfs": ("unstable", 256, "volatile"), "iscsi": (0, False, "volatile")},
    "fsync": {"nfs": ("unstable", 256, "flushed"), "iscsi": (0, True, "flushed")},
    "datastore": {"nfs": ("filesync", 256, "claims-stable"), "iscsi": (0, False, "volatile")},
    "sync": {"nfs": ("filesync", 256, "claims-stable"), "iscsi": (256, False, "claims-stable")},
}
KINDS = ("unstable", "datasync", "filesync")


def durability(j):
    for name, wanted in SYNCS.items():
        runs, wire = j.runs(name), capture.Counts(j.path(name + ".pcapng"))
        title = "fsync=16" if name == "fsync" else "sync=" + name
        nfs_counts(j, title, runs["nfs"], wire, wanted["nfs"])
        iscsi_counts(j, title, runs["iscsi"], wire, wanted["iscsi"])
        for label in ("nfs", "iscsi"):
            j.same("%s, %s: class" % (title, label), runs[label]["durability"], wanted[label][2])
        j.same("%s: malformed packets" % title, wire.malformed, 0)
        unexplained = sorted(set(wire.warnings) - set(capture.EXPLAINED))
        j.same("%s: unexplained warnings" % title, ", ".join(unexplained) or "none", "none")


# Before the load and after it samedisk writes who uses the target, into one block, and flushes it; an iSCSI target is asked
# before that whether it can be flushed.
OWNER = 2


def nfs_counts(j, title, run, wire, wanted):
    kind, n, _ = wanted
    for counts in (wire.stable, wire.committed):
        counts[KINDS[0]] -= OWNER
    wire.commits -= OWNER
    p, flushes = run["protocol"], run["flush"]["ios"]
    said = tuple(p["writes_" + k] for k in KINDS) + tuple(p["answered_" + k] for k in KINDS) + (p["commits"],)
    seen = tuple(wire.stable[k] for k in KINDS) + tuple(wire.committed[k] for k in KINDS) + (wire.commits,)
    asked = tuple(n if k == kind else 0 for k in KINDS)
    j.same("%s, nfs: samedisk's counters" % title,
           slashes(said), slashes(seen))
    j.same("%s, nfs: WRITEs" % title, slashes(seen[:3]), slashes(asked))
    j.same("%s, nfs: COMMITs" % title, seen[6], flushes)


def iscsi_counts(j, title, run, wire, wanted):
    fua, flushed, _ = wanted
    wire.writes -= OWNER
    wire.cache_syncs -= OWNER + 1
    p, flushes = run["protocol"], run["flush"]["ios"]
    said, seen = (p["fua_writes"], p["cache_syncs"]), (wire.fua, wire.cache_syncs)
    j.same("%s, iscsi: samedisk's counters" % title, slashes(said), slashes(seen))
    j.same("%s, iscsi: WRITEs, FUA bits" % title, slashes((wire.writes, wire.fua)), slashes((256, fua)))
    j.same("%s, iscsi: SYNCHRONIZE CACHEs" % title, wire.cache_syncs,
           flushes if flushed else 0)


def slashes(numbers):
    return "/".join(str(n) for n in numbers)


EXPERIMENTS = {"a": receive_window, "b": send_window, "c": readahead, "d": round_robin, "e": durability, "f": pings}


# ---- showing ----


def load(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def tap(made):
    print("1..%d" % len(made))
    for n, s in enumerate(made, 1):
        print("%s %d - %s: %s: %s" % ("ok" if s["ok"] else "not ok", n, s["exp"], s["case"], s["want"]))
        print("# %s" % s["got"])


def table(made):
    lines = []
    for letter, title in TITLES.items():
        mine = [s for s in made if s["exp"] == letter]
        if mine:
            lines += ["", "%s. %s" % (letter, title)]
            width = max(len(s["case"]) for s in mine)
            wants = max(len(s["want"]) for s in mine)
            gots = max(len(s["got"]) for s in mine)
            for s in mine:
                lines.append("  %-*s  %-*s  %-*s  %s" % (width, s["case"], wants, s["want"], gots, s["got"],
                                                         "" if s["ok"] else "NO"))
    return [line.rstrip() for line in lines[1:]]


# ---- the manual page ----


def words(command):
    """The first line of what it prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0]


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        models = re.findall(r"^model name\s*:\s*(.*)$", f.read(), re.M)
    lines = ["date      %s" % time.strftime("%Y-%m-%d"),
             "machine   %d x %s" % (os.cpu_count(), models[0] if models else platform.machine()),
             "kernel    %s" % platform.release(),
             words([os.environ["SAMEDISK"], "--version"]).replace(" ", "  ", 1)]
    for package in ("nfs-ganesha", "tgt", "tshark"):
        version = words(["dpkg-query", "-W", "-f", "${Version}", package])
        lines.append("%-9s %s" % (package.replace("nfs-", ""), version))
    return lines


def literal(lines):
    """Text as it is: a backslash, and a dot or quote at the start of a line, mean something to mdoc."""
    lines = [line.replace("\\", "\\e") for line in lines]
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def page(made, template, path):
    missing = [letter for letter in TITLES if not any(s["exp"] == letter for s in made)]
    if missing or not all(s["ok"] for s in made):
        raise SystemExit("experiments: no page is made of experiments that were not done or did not come out")
    with open(template, encoding="utf-8") as f:
        text = f.read()
    parts = {"DATE": time.strftime("%B ") + time.strftime("%d, %Y").lstrip("0"), "MACHINE": literal(machine()),
             "WARNINGS": "\n".join(".It Sy %s\n%s." % item for item in sorted(capture.EXPLAINED.items()))}
    for letter in TITLES:
        parts[letter.upper()] = literal(table([s for s in made if s["exp"] == letter])[1:])
    text = re.sub(r"@([A-Z]+)@", lambda m: parts[m.group(1)], text)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "judge":
        j = Judge(*arguments)
        EXPERIMENTS[j.letter](j)
        for s in j.made:
            print(json.dumps(s))
        return not all(s["ok"] for s in j.made)
    if command == "page":
        return page(load(arguments[0]), *arguments[1:])
    made = load(arguments[1])
    if arguments[0] == "tap":
        tap(made)
    else:
        print("\n".join(table(made)))
    return not made or not all(s["ok"] for s in made)


if __name__ == "__main__":
    sys.exit(main())
