# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures as text: for the terminal, and for the manual page, which shows the same lines."""
import datetime
import os
import platform
import re
import shutil
import subprocess
import textwrap

import latency

# Nothing is wider than 75 columns: the manual page indents it by 5.
WIDTH = 75
COLUMNS = " %-9s %-15s %-15s %-15s %-7s %s"
HEAD = (COLUMNS % ("", "samedisk", "fio", "ratio", "target", "")).rstrip()


def exact(value):
    """Of what is counted, as much as the target needs; the verdict is on what is shown."""
    return "%.0f" % value if value >= 2000 else "%.1f" % value if value >= 10 else "%.2f" % value


def digits_of(value, digits):
    return "%.0f" % value if value >= 10 ** (digits - 1) else "%.*g" % (digits, value)


def number(value, digits=3):
    if value >= 999500:
        return digits_of(value / 1e6, digits) + "M"
    if value >= 9995:
        return "%.0fk" % (value / 1e3)
    return digits_of(value, digits if value >= 0.1 else 2)


def spread(values, median):
    """A median with its least and greatest, if there are several."""
    if not values:
        return ""
    if len(values) == 1:
        return number(median)
    return "%s %s-%s" % (number(median), number(min(values), 2), number(max(values), 2))


def goal_words(goal):
    return "" if not goal else ("<= " if goal.kind == "most" else ">= ") + "%g" % goal.limit


def verdict(goal, value):
    if not goal or value is None:
        return ""
    return "met" if (value <= goal.limit if goal.kind == "most" else value >= goal.limit) else "missed"


def row(label, ours, other, ratio, goal, value):
    return (COLUMNS % (label, ours, other, ratio, goal_words(goal), verdict(goal, value))).rstrip()


# ---- latencies ----

TRUTH_HEAD = " %-18s %-7s %5s %6s %6s %12s %12s %12s %6s" % (
    "engine", "delay", "depth", "least", "median", "mean s/c", "p50 s/c", "p99 s/c", "I/Os")


def truth_line(t):
    """One measurement, and whether it is as it should be."""
    if not isinstance(t, latency.Truth):
        return " %-18s %-7s %5d  %s" % (latency.engine_name(t[0]), t[1], t[2], t[3]), False
    good = t.least >= 0 and t.median <= t.limit
    pairs = " ".join("%12s" % ("%.0f/%.0f" % p) for p in (t.mean, t.p50, t.p99))
    name = latency.engine_name(t.engine)
    return " %-18s %-7s %5d %6.1f %6.1f %s %6d %s" % (name, t.delay, t.depth, t.least, t.median, pairs, t.n,
                                                      "met" if good else "missed"), good


def truth_summary(rows):
    """For each engine and delay the medians at the depths, with a * at what is over the target."""
    depths = " ".join("%7s" % ("d %d" % d) for d in latency.DEPTHS)
    out = [" %-18s %-8s %6s %s  %s" % ("engine", "delay", "least", depths, "target")]
    for (engine, delay), truths in rows.items():
        got = {t.depth: t for t in truths if isinstance(t, latency.Truth)}
        medians = ["%6.1f%s" % (got[d].median, " " if got[d].median <= engine[3] else "*") if d in got else "%6s " % "-"
                   for d in latency.DEPTHS]
        least = "%6.1f" % min(t.least for t in got.values()) if got else "%6s" % "-"
        name = latency.engine_name(engine)
        out.append(" %-18s %-8s %s %s  <= %d" % (name, delay, least, " ".join(medians), engine[3]))
    return out


def truth_follows(rows):
    """What the server recorded and what the client measured, at the least and the greatest depth."""
    out = [" %-18s %-8s %3s %13s %13s %13s" % ("engine", "delay", "d", "mean", "p50", "p99")]
    for (engine, delay), truths in rows.items():
        for t in truths:
            if isinstance(t, latency.Truth) and t.depth in (latency.DEPTHS[0], latency.DEPTHS[-1]):
                pairs = " ".join("%13s" % ("%.0f/%.0f" % p) for p in (t.mean, t.p50, t.p99))
                out.append(" %-18s %-8s %3d %s" % (latency.engine_name(engine), delay, t.depth, pairs))
    return out


# ---- the machine ----


def _first(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
    except OSError:
        return ""


def _libraries():
    found = []
    for name, packages in (("libnfs", []), ("libiscsi", []), ("libaio", ["libaio1", "libaio1t64"])):
        version = _first(["pkg-config", "--modversion", name]) if shutil.which("pkg-config") else ""
        for package in packages:
            version = version or _first(["dpkg-query", "-W", "-f", "${Version}", package])
        found.append("%s %s" % (name, version or "(version not known)"))
    return found


def machine(fios, calls, quick, pairs):
    """[(word, words)]: what the figures belong to."""
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = re.sub(r"\s+", " ", line.split(":", 1)[1].strip())
                break
    version = _first([os.environ["BENCH_SAMEDISK"], "--version"]).splitlines()[:1]
    lines = [
        ("date", datetime.date.today().isoformat()),
        ("machine", "%s, %d CPUs%s" % (model, os.cpu_count(), "; servers on the first, clients on the second"
                                       if (os.cpu_count() or 1) > 1 else "")),
        ("kernel", platform.release()),
        ("version", ", ".join(version + _libraries())),
        ("compiler flags", os.environ.get("BENCH_CFLAGS", "not known")),
    ]
    versions = sorted({_first([path, "--version"]) for path in fios.values()})
    engines = ["%s by %s" % (e, _first([fios[e], "--version"]))
               for e in ("null", "nfs", "libiscsi", "libaio") if e in fios]
    lines.append(("fio", ", ".join(engines) if len(versions) > 1 else
                  (versions[0] + " (" + ", ".join(e.split()[0] for e in engines) + ")" if versions else
                   "none was found: our figures only")))
    for program, package in (("ganesha.nfsd", "nfs-ganesha"), ("tgtd", "tgt"), ("valgrind", "valgrind")):
        if shutil.which(program):
            found = _first(["dpkg-query", "-W", "-f", "${Version}", package])
            lines.append((program, found or "version not known"))
    lines.append(("system calls", "counted by %s" % calls if calls else "neither perf nor strace can count"))
    lines.append(("times", "medians of %d pairs, samedisk and the other in turn%s" % (
        pairs, "; a quick trial, not to be quoted" if quick else "")))
    return lines


def machine_lines(words):
    lines = []
    for word, text in words:
        lines += textwrap.wrap(text, WIDTH, initial_indent="%-15s" % word, subsequent_indent=" " * 15)
    return lines


# ---- the manual page ----


def mdoc(lines):
    """Lines as they are: the escape character and a control character at the start are the two that mdoc sees."""
    out = []
    for line in lines:
        line = line.replace("\\", "\\e")
        out.append("\\&" + line if line.startswith((".", "'")) else line)
    return "\n".join(out)


def manual(template, path, parts):
    """The template with each line @NAME@ replaced by parts[NAME]; all of them must be there and be used."""
    with open(template, encoding="utf-8") as f:
        text = f.read()
    parts = dict(parts, DATE=datetime.date.today().strftime("%B %-d, %Y"))
    for name, value in parts.items():
        if "@%s@" % name not in text:
            raise SystemExit("bench: %s has no @%s@" % (template, name))
        text = text.replace("@%s@" % name, value)
    left = re.search(r"@[A-Z]+@", text)
    if left:
        raise SystemExit("bench: nothing was measured for %s of %s" % (left.group(), template))
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)
