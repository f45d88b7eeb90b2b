#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# SIGINT and SIGTERM in every phase end a plan in good order and soon: exit status 130, what was measured is saved and
# printed, nothing stays locked. The saved result is whole at any time, also after kill -9. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/lab/link.sh
. "$LAB_HOME/link.sh"
# shellcheck source=tests/integration/background.sh
. "$srcdir/tests/integration/background.sh"

it_begin ganesha.nfsd tgtd losetup ip tc

# Behind a link: a fill takes its time, and the link can be made slow between two runs.
mkdir "$LAB/data"
head -c 32M /dev/urandom >"$LAB/data/read"
cp "$LAB/data/read" "$LAB/lun"
truncate -s 32M "$LAB/block"
must lab_filer_1g data="$LAB/data"
must lab_tgt_lun 1 "$LAB/lun"
BLOCK=$(lab_loop "$LAB/block") || must false
NFS=$(lab_nfs_url data/read)
ISCSI=$(lab_iscsi_url 1)
it_prefix=$LAB/client

# pattern NAME RAMP RUNTIME
pattern() {
	printf '[%s]\nramp_time = %s\nruntime = %s\n' "$@" >"$1.ini"
	printf '%s\n' 'rw = randread' 'bs = 4k' 'size = 32m' 'iodepth = 8' 'rounds = 1' >>"$1.ini"
}
pattern short 0 200ms
pattern long 0 60s
pattern ramp 60s 1s

# signalled NAME RUNS EXPRESSION...: the signal ends it soon, with so many runs in the result.
signalled() {
	local name runs
	name=$1
	runs=$2
	shift 2
	finish 60
	ended "$name: exit status 130" 130 'samedisk: interrupted'
	if [ "$it_took" -lt 5000 ]; then ok "$name: soon"; else not_ok "$name: soon" "it took $it_took ms"; fi
	json "$name: the result" r.json 'd["status"] == "interrupted" and d["finished"]' "len(d['runs']) == $runs" \
		'all(r["status"] == "ok" for r in d["runs"][:-1])' \
		'all(r["status"] == "interrupted" and not r["errors"] for r in d["runs"][-1:])' "$@"
	if lab_until 5 nobody; then ok "$name: nobody is logged in"; else not_ok "$name: nobody is logged in"; fi
}

nobody() {
	! lab_tgtadm --mode conn --op show --tid 1 | grep -q Session
}

# ---- in the fill ----

# fill FILE ARGUMENT...
fill() {
	local file
	file=$1
	shift
	rm -f r.json
	start run short.ini --rw randrw --size 256m --json r.json --allow-full nfs="$(lab_nfs_url "data/$file")" "$@"
	reach 'in the fill' 20 written "$LAB/data/$file" 16384
}

if fill gone; then
	kill -INT "$it_pid"
	signalled 'SIGINT in the fill' 0
	test_that 'SIGINT in the fill: the new file, which was not filled, is gone' test ! -e "$LAB/data/gone"
fi
if fill kept --keep-partial; then
	kill -INT "$it_pid"
	signalled 'SIGINT in the fill with --keep-partial' 0
	expect 'SIGINT in the fill with --keep-partial: the file is ours, and is used again' 0 'samedisk data' "$it_prefix" "$SAMEDISK" \
		run short.ini --rw randrw --size 256m --allow-full nfs="$(lab_nfs_url data/kept)"
fi
if fill removed --cleanup; then
	kill -TERM "$it_pid"
	signalled 'SIGTERM in the fill with --cleanup' 0
	test_that 'SIGTERM in the fill with --cleanup: the file is gone' test ! -e "$LAB/data/removed"
fi

# ---- in the ramp, in the window ----

start run short.ini ramp.ini --json r.json nfs="$NFS" iscsi="$ISCSI"
if reach 'in the ramp' 20 finished 2 && reach 'in the ramp' 10 running; then
	kill -TERM "$it_pid"
	signalled 'SIGTERM in the ramp' 3 'd["runs"][-1]["pattern"] == "ramp"' 'd["runs"][-1]["window_ns"] == 0' \
		'0 < d["runs"][-1]["ramp_ns"] < 30e9' 'd["runs"][-1]["total"]["ios"] == 0'
	test_that 'SIGTERM in the ramp: the finished runs are in the table' grep -qE '^short +nfs +[0-9.]+ +[0-9]' "$out"
fi

start run short.ini long.ini --json r.json nfs="$NFS" iscsi="$ISCSI"
if reach 'in the window' 20 finished 2 && reach 'in the window' 10 running; then
	kill -INT "$it_pid"
	signalled 'SIGINT in the window' 3 'd["runs"][-1]["pattern"] == "long"' '0 < d["runs"][-1]["window_ns"] < 30e9' \
		'd["runs"][-1]["total"]["ios"] > 10'
	check 'SIGINT in the window: the figures hold together' sound r.json
	test_that 'SIGINT in the window: the finished runs are in the table' grep -qE '^short +nfs +[0-9.]+ +[0-9]' "$out"
	test_that 'SIGINT in the window: the table says that it was interrupted' grep -q interrupted "$out"
fi

start run long.ini --json r.json iscsi="$ISCSI"
if reach 'twice' 20 running; then
	kill -INT "$it_pid"
	kill -INT "$it_pid"
	kill -TERM "$it_pid" 2>/dev/null
	signalled 'three signals in the window' 1
fi

start run long.ini --rw randwrite --json r.json fc="$BLOCK" --destroy fc
if reach 'a device' 20 running; then
	kill -INT "$it_pid"
	signalled 'SIGINT on a device' 1 'd["runs"][-1]["write"]["ios"] > 0'
	test_that 'SIGINT on a device: it is free' \
		python3 -c 'import os, sys; os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)' "$BLOCK"
fi

# ---- while it settles ----

# rate RATE BURST: of the link, on both ends
rate() {
	local side
	for side in client filer; do
		nsenter --net="$(lab_ns "$side")" tc qdisc change dev link1 root tbf rate "$1" burst "$2" latency 500ms || return 1
	done
}

# One run is over, and half a second later the next one has not begun.
settling() {
	finished 1 && between || {
		settling=
		return 1
	}
	[ -n "$settling" ] || settling=$(it_ms)
	[ "$(it_ms)" -ge $((settling + 500)) ]
}

settling=
start run short.ini --rounds 2 --runtime 1s --json r.json iscsi="$ISCSI"
if reach 'settling' 20 running && must rate 2mbit 4k && reach 'settling' 20 settling; then
	kill -TERM "$it_pid"
	signalled 'SIGTERM while it settles' 2 'd["runs"][-1]["round"] == 2' 'not d["runs"][-1]["settled"]' \
		'0.3e9 < d["runs"][-1]["settle_ns"] < 10e9' 'd["runs"][-1]["ramp_ns"] == d["runs"][-1]["window_ns"] == 0'
fi
must rate 984mbit 128k

# ---- while the server hangs ----

start run long.ini --json r.json --set nfs.timeout=20s nfs="$NFS" iscsi="$ISCSI"
if reach 'hanging' 20 running; then
	lab_stop ganesha
	kill -INT "$it_pid"
	finish 30
	lab_cont ganesha
	ended 'SIGINT while the server hangs: exit status 130' 130 'samedisk: interrupted'
	if [ "$it_took" -lt 4000 ]; then ok 'SIGINT while the server hangs: soon'; else
		not_ok 'SIGINT while the server hangs: soon' "it took $it_took ms"
	fi
	json 'SIGINT while the server hangs: the result' r.json 'd["status"] == "interrupted"' 'len(d["runs"]) == 1' \
		'd["runs"][0]["status"] == "interrupted" and not d["runs"][0]["errors"]' 'd["runs"][0]["total"]["ios"] > 10' \
		'1 <= d["runs"][0]["tail"]["abandoned"] <= 8' \
		'0.4e9 < d["runs"][0]["tail"]["abandoned_ns"] <= d["runs"][0]["tail"]["longest_ns"]'
	test_that 'SIGINT while the server hangs: what was still out is said' grep -q 'still out after' "$out"
fi

# ---- what is saved ----

rm -f r.json
start run short.ini --runtime 50ms --rounds 15 --json r.json nfs="$NFS" iscsi="$ISCSI"
test_that 'the saved result is whole at any time, and grows with every run' \
	python3 "$srcdir/tests/integration/watch.py" "$it_pid" r.json 10
sed 's/^/# /' "$LAB/test_that"
finish 20
ended 'and so it ends' 0 ''

rm -f r.json
start run short.ini --rounds 5 --json r.json nfs="$NFS" iscsi="$ISCSI"
# A run's line may come just before it is saved.
if reach 'killed' 20 finished 5; then
	kill -KILL "$it_pid"
	finish 5
	same 'kill -9: exit status 137' "$status" 137
	json 'kill -9: what was finished is saved' r.json 'd["status"] == "interrupted" and d["finished"] is None' \
		'4 <= len(d["runs"]) < 10' 'all(r["status"] == "ok" and r["total"]["ios"] > 0 for r in d["runs"])'
fi
same 'no other file was left' "$(ls)" "$(printf '%s\n' long.ini r.json ramp.ini short.ini)"

it_end
