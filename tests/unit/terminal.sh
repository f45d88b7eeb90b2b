#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What a terminal of 80 columns shows of a run over three targets: no line of the table or the progress is wider, columns
# are whole or left out, each finished run leaves its line. A pipe gets everything. TAP output. SAMEDISK: the program.
program=${SAMEDISK:-$PWD/samedisk}

if ! python3 -c 'import pty' 2> /dev/null; then
  echo "1..0 # SKIP no python3"
  exit 0
fi
[ -x "$program" ] || { echo "Bail out! no program $program (set SAMEDISK)"; exit 99; }

exec python3 - "$program" <<'END'
import fcntl, os, pty, re, struct, subprocess, sys, termios

LINE = [sys.argv[1], "run", "quick", "first=null:?lat=100us", "second=null:?lat=200us", "third=null:?write_cache=no",
        "--destroy", "first", "--destroy", "second", "--destroy", "third", "--size", "512m", "--rounds", "2",
        "--runtime", "50ms", "--ramp_time", "0"]
count = failed = 0


def ok(what, good, why=""):
    global count, failed
    count += 1
    failed |= not good
    print("%sok %d - %s" % ("" if good else "not ", count, what))
    if not good:
        print("".join("# %s\n" % line for line in str(why).splitlines()), end="")


def on_terminal(columns):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execv(LINE[0], LINE)
    out = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    status = os.waitpid(pid, 0)[1]
    return status, out.decode().replace("\r\n", "\n")


status, text = on_terminal(80)
ok("80 columns: exit status 0", status == 0, text)
# Notes of the program on standard error are text, which may wrap.
shown = [line for line in re.split(r"[\n\r]|\x1b\[K", text) if not line.startswith("samedisk: ")]
wide = [line for line in shown if len(line) > 79]
ok("80 columns: no line is wider", not wide, "\n".join(wide))
drawn = re.findall(r"\r([^\r\n\x1b]*)\x1b\[K", text)
odd = [f for line in drawn for f in line.split("  ") if not re.fullmatch(
    r"run \d+ of 24|first|second|third|4k random (read|write)|1m sequential (read|write)|round \d|"
    r"[a-z]+( [a-z]+)*( \d+ %| (\d+ (min|s) ?)+)?|left (\d+ (h|min|s) ?)+|[\d.]+ (IOPS|MiB/s|ms)|", f)]
ok("80 columns: the progress has whole fields", any(drawn) and not odd, "\n".join(odd[:10]))
ok("80 columns: the progress says which run it is", any(line.startswith("run 7 of 24  ") for line in drawn), drawn[:5])
left = [re.match(r"run (\d+) of 24  ", line).group(1) for line in text.split("\n") for line in [line.split("\x1b[K")[-1]]
        if re.match(r"run \d+ of 24  ", line)]
ok("80 columns: each finished run leaves its line", left == [str(n) for n in range(1, 25)], left)
rows = [line for line in shown if re.match(r"  (first|second|third) +[\d.-]+ +\d+", line)]
heads = [line for line in shown if line.lstrip().startswith("avg resp ms")]
ok("80 columns: every row has the cells of its columns", len(rows) == 12 and heads and
   all(re.fullmatch(r"  \w+( +[\d.-]+){4,6}( +[\d.]*[-x]( \*)?)?( +(\[\d+\])+)?", line) for line in rows), "\n".join(rows))
said = re.search(r"\nLeft out, for want of room: (.*)\n", text)
ok("80 columns: what is left out is said, and nothing else is", said and "CPU us/IO" in said.group(1) and not any(
    name in line for name in said.group(1).split(", ") for line in heads), text)
table = text[text.index("\ndepth "):]
ok("rows come first, then the notes", table.index("[1] ") > table.index(rows[-1]), table)
ok("a target that stores nothing has no line of sameness", "share blocks" not in text, text)

done = subprocess.run(LINE + ["-q", "--rounds", "1"], stdout=subprocess.PIPE, universal_newlines=True)
ok("a pipe gets all columns", all(name in done.stdout for name in (
    "avg resp ms", "IOPS", "MiB/s", "p99 ms", "max ms", "CPU us/IO", "against first")), done.stdout)
ok("a pipe gets each note on one line", "\n[1] null does no I/O: its numbers are those of samedisk itself, or of "
   "the latency it was told to have\n" in done.stdout, done.stdout)
ok("a ratio of other work is marked, and explained once", done.stdout.count("x *") >= 2 and
   done.stdout.count("\n* not the same work, ") == 1, done.stdout)
print("1..%d" % count)
sys.exit(failed)
END
