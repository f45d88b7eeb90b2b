#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# kernel_readahead and nomerges on a real device: in force while it is measured, put back at the end, after SIGINT, and
# after kill -9 by whoever starts next. And what readahead= and delay= do on it. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/integration/background.sh
. "$srcdir/tests/integration/background.sh"

it_begin losetup
head -c 32M /dev/urandom >"$LAB/block"
BLOCK=$(lab_loop "$LAB/block") || must false
queue=/sys/block/${BLOCK#/dev/}/queue
[ -w "$queue/read_ahead_kb" ] || it_skip_all "$queue cannot be written here"
before="$(cat "$queue/read_ahead_kb") $(cat "$queue/nomerges")"
case $before in "768 2") it_skip_all "$BLOCK has the values already that the test sets" ;; esac
notes=/run/samedisk

printf '%s\n' '[seq]' 'rw = read' 'bs = 32k' 'size = 32m' 'ramp_time = 200ms' 'runtime = 1s' >short.ini
printf '%s\n' '[seq]' 'rw = read' 'bs = 32k' 'size = 32m' 'ramp_time = 0' 'runtime = 60s' >long.ini

now() { echo "$(cat "$queue/read_ahead_kb") $(cat "$queue/nomerges")"; }
in_force() { [ "$(now)" = "768 2" ]; }
as_before() { [ "$(now)" = "$before" ]; }
no_note() { ! grep -qs "/${BLOCK#/dev/}/" "$notes"/*.note; }

put_back() {
	if as_before; then ok "$1: the old values are back"; else not_ok "$1: the old values are back" "got: $(now)" "wanted: $before"; fi
	if no_note; then ok "$1: no note is left"; else not_ok "$1: no note is left"; fi
}

begin_long() {
	start run long.ini b="$BLOCK" --set direct=no --set kernel_readahead=768k --set nomerges=2
	reach "$1: in force" 20 in_force && reach "$1: running" 20 running && ok "$1: in force"
	if no_note; then not_ok "$1: a note says so"; else ok "$1: a note says so"; fi
}

# ---- the end, a signal, the worst ----

expect 'a run with kernel_readahead and nomerges' 0 '' "$SAMEDISK" run short.ini b="$BLOCK" --set direct=no \
	--set kernel_readahead=768k --set nomerges=2 --json r.json --quiet
put_back 'the end'
m='d["targets"][0]["members"][0]["negotiated"]'
json 'the result has what was in force, and before' r.json "${m}['kernel_readahead_kb'] == 768" "${m}['nomerges'] == 2" \
	"${m}['kernel_readahead_before_kb'] == '${before% *}'"

begin_long SIGINT
kill -INT "$it_pid"
finish 30
ended 'SIGINT: exit status 130' 130 'samedisk: interrupted'
put_back SIGINT

begin_long 'kill -9'
kill -KILL "$it_pid"
finish 30
if in_force; then ok 'kill -9 leaves them'; else not_ok 'kill -9 leaves them' "$(now)"; fi
expect 'the next start says that it restores them' 0 'ended without putting back *read_ahead_kb: it is *again' \
	"$SAMEDISK" probe null:
put_back 'the next start'

begin_long SIGTERM
complains 'a second samedisk cannot change them too' 3 'has been changed already, by another samedisk that is running' \
	run short.ini b="$BLOCK" --set direct=no --set kernel_readahead=64k --quiet
if in_force; then ok 'and leaves them'; else not_ok 'and leaves them' "$(now)"; fi
kill -TERM "$it_pid"
finish 30
put_back SIGTERM

complains 'without effect with O_DIRECT' 1 'kernel_readahead has no effect with O_DIRECT' run short.ini \
	b="$BLOCK" --set kernel_readahead=768k
expect 'probe shows them and changes nothing' 0 'read_ahead_kb' "$SAMEDISK" probe "$BLOCK"
put_back probe

# ---- a latency, and what readahead makes of it ----

expect 'depth 1 with delay=5ms' 0 'artificial delay' "$SAMEDISK" run short.ini b="$BLOCK" --set delay=5ms --json none.json
expect 'the same with readahead=2m' 0 'readahead 2.00 MiB' "$SAMEDISK" run short.ini b="$BLOCK" --set delay=5ms \
	--readahead 2m --json ahead.json
json 'the delay is in every latency' none.json 'all(r["read"]["clat_ns"]["min"] >= 5000000 for r in d["runs"])' \
	'all(r["wire"] is None for r in d["runs"])'
json 'readahead hides it' ahead.json 'all(r["wire"]["readahead"]["hits"] > 0 for r in d["runs"])' \
	'all(r["wire"]["lat_mean_ns"] >= 5000000 for r in d["runs"])' \
	'all(r["wire"]["depth_achieved"] > r["depth_achieved"] for r in d["runs"])' \
	'all(abs(r["wire"]["littles_law"]["deviation"]) <= r["wire"]["littles_law"]["allowed"] for r in d["runs"])' \
	'all(r["read"]["iops"] >= 4 * json.load(open("none.json"))["runs"][0]["read"]["iops"] for r in d["runs"])'
it_end
