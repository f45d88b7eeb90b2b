#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of results and of data for the integration tests: check.py FUNCTION ARGUMENT...

Exit status 0: all is well. Otherwise every line of what is printed says what is wrong."""
import json
import os
import re
import socket
import struct
import sys
import time
import zlib

MIB = 1 << 20
STEP = 4096  # src/pattern/mark.h
MAGIC = bytes.fromhex("53c9e5b3d1")  # src/pattern/mark.h, little-endian
SECTOR, WORD = 512, (1 << 64) - 1
wrong = []


def say(text):
    wrong.append(text)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def number(text):
    return int(text, 0)


# ---- the document ----


def true(path, *expressions):
    """Each expression holds; d: the document, runs: its runs by target (the last of each)."""
    d = load(path)
    runs = {r["target"]: r for r in d["runs"]}
    rows = {r["target"]: r for r in d["summary"]}
    targets = {t["label"]: t for t in d["targets"]}
    for e in expressions:
        try:
            if not eval(e, {"d": d, "runs": runs, "rows": rows, "targets": targets, "json": json}):  # pylint: disable=eval-used
                say("not so: %s" % e)
        except (KeyError, IndexError, TypeError, ZeroDivisionError) as x:
            say("%s: %r" % (e, x))
    if wrong:
        for r in runs.values():
            say("%s: %s, %d I/Os, flushes %d, %s, %s" % (r["target"], r["status"], r["total"]["ios"], r["flush"]["ios"],
                r["durability"], {k: v for k, v in r["protocol"].items() if v and not k.startswith("tcp")}))


def schema(path, schema_path):
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        return say("python3-jsonschema is missing")
    for e in list(Draft202012Validator(load(schema_path)).iter_errors(load(path)))[:10]:
        say("%s: %s" % (e.json_path, e.message[:200]))


def counts(path, ios, block, *labels):
    """Exactly so many I/Os of one size on each target, in every place where they are counted."""
    ios, block = number(ios), number(block)
    runs = load(path)["runs"]
    if sorted({r["target"] for r in runs}) != sorted(labels):
        say("runs of %s" % sorted({r["target"] for r in runs}))
    for r in runs:
        who, total = "%s, %s" % (r["pattern"], r["target"]), r["total"]
        values = {"ios": total["ios"], "lat n": total["lat_ns"]["n"], "clat n": total["clat_ns"]["n"],
                  "histogram": sum(n for _, n in total["clat_ns"]["histogram"]) + total["clat_ns"]["above"],
                  "reads + writes": r["read"]["ios"] + r["write"]["ios"], "generated": r["ios_generated"],
                  "series": sum(r["series"]["read_ios"]) + sum(r["series"]["write_ios"])}
        for name, n in values.items():
            if n != ios:
                say("%s: %s is %d, wanted %d" % (who, name, n, ios))
        values = {"bytes": total["bytes"], "read + write bytes": r["read"]["bytes"] + r["write"]["bytes"],
                  "series": sum(r["series"]["read_bytes"]) + sum(r["series"]["write_bytes"])}
        for name, n in values.items():
            if n != ios * block:
                say("%s: %s is %d, wanted %d" % (who, name, n, ios * block))
        if r["status"] != "ok" or r["failed"] or r["short_ios"] or r["errors"] or r["tail"]["ios"]:
            say("%s: status %s, failed %d, short %d, tail %d" % (who, r["status"], r["failed"], r["short_ios"],
                                                                 r["tail"]["ios"]))


def sound(path):
    """What holds in every run: rates from counts and window, MiB/s from IOPS, Little's law."""
    for r in load(path)["runs"]:
        who, window = "%s, %s, round %d" % (r["pattern"], r["target"], r["round"]), r["window_ns"] / 1e9
        for name in ("read", "write", "total"):
            op = r[name]
            if abs(op["iops"] * window - op["ios"]) > 1e-6 * op["ios"] + 1e-6:
                say("%s: %s IOPS %g of %d I/Os in %g s" % (who, name, op["iops"], op["ios"], window))
            if abs(op["bytes_per_second"] * window - op["bytes"]) > 1e-6 * op["bytes"] + 1e-6:
                say("%s: %s: %g bytes/s of %d in %g s" % (who, name, op["bytes_per_second"], op["bytes"], window))
            if op["ios"] and abs(op["iops"] * op["bytes"] / op["ios"] / op["bytes_per_second"] - 1) > 1e-6:
                say("%s: %s: rate is not IOPS x block size" % (who, name))
        lats = [r[k]["clat_ns"] if k != "flush" else r[k]["lat_ns"] for k in ("read", "write", "flush")]
        held = sum(l["n"] * l["mean"] for l in lats if l["n"]) + r["failed_ns"]
        longest = max([l["max"] for l in lats if l["n"]] + [r["tail"]["longest_ns"] or 0])
        law, got = held / r["window_ns"], r["depth_achieved"]
        # I/Os that were out at the edges of the window: as many as the depth.
        if abs(law / got - 1) > 0.03 + longest / r["window_ns"] * r["depth_requested"] / got:
            say("%s: Little's law: %g by the latencies, %g measured" % (who, law, got))
        if abs(r["littles_law"]["depth"] - law) > 1e-3 * law:
            say("%s: littles_law/depth is %g, calculated %g" % (who, r["littles_law"]["depth"], law))
        if not 0 < got <= r["depth_requested"] * (1 + 1e-9):
            say("%s: depth %g of %d" % (who, got, r["depth_requested"]))


def document(path, table_path, schema_path):
    """All that holds for any result."""
    schema(path, schema_path)
    sound(path)
    same_load(path)
    table(path, table_path)


def same_load(path):
    """All targets of a round got the same stream, and no two rounds did."""
    seen = {}
    for r in load(path)["runs"]:
        seen.setdefault((r["pattern"], r["round"]), []).append(r)
    firsts = []
    for key, runs in seen.items():
        n = min(len(r["fingerprint"]) for r in runs)
        prints = {json.dumps(r["fingerprint"][:n]) for r in runs}
        if n < 4 or len(prints) != 1:
            say("%s: fingerprints %s" % (key, prints))
        firsts.append(runs[0]["fingerprint"][n - 1][1] if n else None)
    if len(set(firsts)) != len(firsts):
        say("two rounds or patterns have the same fingerprint")


# ---- the table ----

SCALES = (1, 1e-3, 1e-6, 1e-9, 1 / 1024, 1 / MIB, 1 / (MIB << 10), 100)


def shown(text, value):
    """Is `text` what is printed of this value? Half a unit of its last digit is lost."""
    digits = len(text.partition(".")[2])
    return abs(float(text) - value) <= 0.5000001 * 10 ** -digits


def table(path, table_path):
    """Rows against the summary, column by column; every other number must be somewhere in the document."""
    d = load(path)
    with open(table_path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    rows, reference = list(d["summary"]), d["plan"]["reference"]
    pattern, seen = None, 0
    names = {r["pattern"] for r in rows}
    for line in lines:
        cells = re.split(r"  +", line.strip())
        if cells[0] in names:
            pattern = cells.pop(0)
        match = [r for r in rows if pattern == r["pattern"] and cells[0] == r["target"]]
        if not match or len(cells) < 7:
            continue
        if re.fullmatch(r"(\[\d+\])+", cells[-1]):
            cells.pop()
        row, seen = match[0], seen + 1
        spread = ["iops"] if row["rounds"] > 1 else []
        if spread:
            low, high = cells.pop(3).split("..")
            if not shown(low, row["iops"]["min"]) or not shown(high, row["iops"]["max"]):
                say("%s: min..max %s..%s" % (line, low, high))
        want = [row["lat_mean_ns"]["median"] / 1e6, row["iops"]["median"], row["bytes_per_second"]["median"] / MIB,
                row["p99_ns"] and row["p99_ns"]["median"] / 1e6, row["max_ns"] / 1e6,
                row["cpu_ns_per_io"]["median"] / 1e3]
        for cell, value in zip(cells[1:7], want):
            if (cell == "-") != (value is None) or (value is not None and not shown(cell, value)):
                say("%s: %s, the result has %r" % (line.strip(), cell, value))
        against = cells[7] if len(cells) > 7 else ""
        if row["ratio"] is not None and not shown(against.rstrip("x"), row["ratio"]):
            say("%s: %s, the result has %r" % (line.strip(), against, row["ratio"]))
        if row["ratio_unranked"] is not None and not shown(against.rstrip(" *").rstrip("x"), row["ratio_unranked"]):
            say("%s: %s, the result has %r" % (line.strip(), against, row["ratio_unranked"]))
        if row["target"] != reference and (row["ratio"] is None) != against.endswith("*"):
            say("%s: %s, the result says %r" % (line.strip(), against, row["not_comparable"]))
    if seen != len(rows) or not seen:
        say("%d rows in the table, %d in the result" % (seen, len(rows)))
    everything = list(numbers(d))
    for line in lines:
        if not re.match(r"depth |\[\d+\] |  \S", line):
            continue
        line = re.sub(r"^\[\d+\] ", "", line)
        # Words such as 4k or p99 are no figures; counts of rounds and thresholds of a remark are its own.
        for text in re.findall(r"(?<![\w./-])\d+(?:\.\d+)?(?![\w./-])", line):
            if not any(shown(text, v * s) for v in everything for s in SCALES) and int(float(text)) > len(d["runs"]):
                say("%s: %s is nowhere in the result" % (line.strip(), text))


def numbers(j):
    if isinstance(j, dict):
        for k, v in j.items():
            if k not in ("histogram", "fingerprint", "environment", "negotiated", "seed", "series"):
                yield from numbers(v)
    elif isinstance(j, list):
        for v in j:
            yield from numbers(v)
    elif isinstance(j, (int, float)) and not isinstance(j, bool):
        yield j
        if isinstance(j, float) and 0 < j < 1:
            yield 1 - j


# ---- data ----


def blocks(path, start, end):
    with open(path, "rb") as f:
        f.seek(start)
        for at in range(start, end, STEP):
            b = f.read(STEP)
            if len(b) < 16:
                return
            yield at, b


def tag(sector):
    """What the last 8 bytes of a sector of ours are: src/pattern/data.c."""
    words, x, first, second = struct.unpack_from("<63Q", sector), 0, [0] * 8, [0] * 15
    for i, w in enumerate(words):
        x ^= w
        first[i % 8] ^= w
        second[i % 8 + i // 8] ^= w
    for n, w in list(enumerate(first, 1)) + list(enumerate(second, 10)):
        x ^= (w << n | w >> 64 - n) & WORD
    x = ((x ^ 0xC3A5C85C97CB3127) + 0x9E3779B97F4A7C15) & WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return struct.pack("<Q", x ^ x >> 31)


def ours(path, kept):
    """Every sector of the file proves itself or is zero, and none comes twice. All but the zeros go to the file `kept`."""
    seen, n = set(), 0
    with open(path, "rb") as f, open(kept, "wb") as out:
        for at in range(0, os.path.getsize(path), SECTOR):
            sector = f.read(SECTOR)
            if not sector.strip(b"\0"):
                continue
            n += 1
            if tag(sector) != sector[-8:] or (at % STEP == 0 and sector[:5] != MAGIC):
                say("the sector at %d of %s is not ours" % (at, path))
            seen.add(sector)
            out.write(sector)
    if len(seen) != n or n * SECTOR < os.path.getsize(path) // 2:
        say("%d sectors were written, %d different ones" % (n, len(seen)))


def chosen(path, low, high):
    """Every sector of the file proves itself or is zero; of its blocks, low to high percent are copies of others."""
    seen, n = set(), 0
    for at, b in blocks(path, 0, os.path.getsize(path)):
        n += 1
        seen.add(b)
        for i in range(0, STEP, SECTOR):
            sector = b[i:i + SECTOR]
            if sector.strip(b"\0") and (tag(sector) != sector[-8:] or (i == 0 and sector[:5] != MAGIC)):
                return say("the sector at %d of %s is not ours" % (at + i, path))
    copies = 100 * (n - len(seen)) / n
    if not number(low) <= copies <= number(high):
        say("%d of %d blocks are different ones: %.1f %% are copies" % (len(seen), n, copies))


def marked(start, end, *paths):
    """In each file, every block of [start, end) carries the mark and proves itself, none is like another, and none can
    be compressed."""
    for path in paths:
        marked_file(path, number(start), number(end))


def marked_file(path, start, end):
    seen, n, packed = set(), 0, 0
    for at, b in blocks(path, start, end):
        n += 1
        if b[:5] != MAGIC:
            say("no mark at %d of %s: %s" % (at, path, b[:16].hex()))
            if len(wrong) > 5:
                return
        if any(tag(b[i:i + SECTOR]) != b[i + SECTOR - 8:i + SECTOR] for i in range(0, len(b) - SECTOR + 1, SECTOR)):
            say("a sector at %d of %s does not prove itself" % (at, path))
            if len(wrong) > 5:
                return
        seen.add(b)
        packed += len(zlib.compress(b, 1))
    if n != (end - start) // STEP:
        say("%s has %d blocks there" % (path, n))
    if len(seen) != n:
        say("%s: %d of %d blocks are different ones" % (path, len(seen), n))
    if packed < n * STEP:
        say("%s: %d bytes of data compress to %d" % (path, n * STEP, packed))


def zero(path, start, end):
    for at, b in blocks(path, number(start), number(end)):
        if b.strip(b"\0"):
            return say("%s: block at %d is not zero" % (path, at))


def tags(path, size):
    """For each block, which run wrote it."""
    return [b[12:16] if b[:5] == MAGIC else None for _, b in blocks(path, 0, size)]


def same_places(size, count, *paths):
    """The last run wrote the very same blocks in all these files, `count` at most (random ones hit one twice)."""
    size, count, sets = number(size), number(count), []
    for p in paths:
        t = tags(p, size)
        fill = max(set(t), key=t.count)
        rest = [tag for tag in t if tag != fill]
        run = max(set(rest), key=rest.count, default=None)
        sets.append({i for i, tag in enumerate(t) if tag == run})  # one more is the record of who writes
    for p, s in zip(paths, sets):
        if not 0 < len(s) <= count or len(s) < count // 2:
            say("%s: %d blocks were written by the run of %d I/Os" % (p, len(s), count))
        if s != sets[0]:
            say("%s: %d blocks differ from those of %s" % (p, len(s ^ sets[0]), paths[0]))


# ---- a server that is none ----


def serve(how, port_file):
    """Accepts connections and never answers (silent), hangs up (close), or sends what nobody can understand (noise)."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(16)
    with open(port_file + ".new", "w", encoding="utf-8") as f:
        f.write("%d\n" % s.getsockname()[1])
    os.rename(port_file + ".new", port_file)
    kept = []
    while True:
        c, _ = s.accept()
        if how == "close":
            c.close()
            continue
        kept.append(c)
        if how == "noise":
            time.sleep(0.05)
            try:
                c.sendall(b"\x80\x00\x00\x18" + b"HTTP/1.1 400 Bad Request\r\n\r\n" * 40)
            except OSError:
                pass


def main():
    functions = (true, schema, document, counts, sound, same_load, table, marked, chosen, ours, zero, same_places, serve)
    globals_by_name = {f.__name__: f for f in functions}
    globals_by_name[sys.argv[1]](*sys.argv[2:])
    for w in wrong[:20]:
        print(w)
    sys.exit(bool(wrong))


main()
