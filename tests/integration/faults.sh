#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Servers that die, hang, drop connections or run out of space in the middle of a plan: what is lost is said and
# counted, the others go on, the result is saved, and nothing hangs. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/integration/background.sh
. "$srcdir/tests/integration/background.sh"

it_begin ganesha.nfsd tgtd losetup

mkdir "$LAB/data"
head -c 32M /dev/urandom >"$LAB/data/read"
cp "$LAB/data/read" "$LAB/read.lun"
cp "$LAB/data/read" "$LAB/block"
truncate -s 512M "$LAB/fill.lun"
must lab_mount_ram "$LAB/small" 256M
mkdir "$LAB/small/export"
must lab_ganesha data="$LAB/data" small="$LAB/small/export"
must lab_tgt
must lab_tgt_lun 1 "$LAB/read.lun"
must lab_tgt_lun 2 "$LAB/fill.lun"
BLOCK=$(lab_loop "$LAB/block") || must false
NFS=$(lab_nfs_url data/read)
ISCSI=$(lab_iscsi_url 1)

cat >random.ini <<END
[random]
rw = randread
bs = 4k
size = 32m
iodepth = 8
numjobs = 2
ramp_time = 0
END

# Python: runs of a target, in the order of rounds.
OF='(lambda t: [r for r in d["runs"] if r["target"] == t])'

# after NAME LABEL KIND RUNS: LABEL was lost in its first run for KIND, and the others were not.
after() {
	json "$1: the result" r.json \
		'd["status"] == "lost" and d["finished"]' \
		"len(d['runs']) == $4" \
		"[r['status'] for r in $OF('$2')] == ['lost', 'lost']" \
		"$OF('$2')[0]['error'] and '$3' in $OF('$2')[0]['errors']" \
		"1 <= sum($OF('$2')[0]['errors'].values()) <= 16" \
		"$OF('$2')[0]['total']['ios'] > 0 and 0 < $OF('$2')[0]['window_ns'] < 3e9" \
		"$OF('$2')[1]['error'] and $OF('$2')[1]['total']['ios'] == 0" \
		"all(r['status'] == 'ok' and not r['errors'] and r['total']['ios'] > 100 for r in d['runs'] if r['target'] != '$2')"
	test_that "$1: it is tried again in the second round" grep -q "$2: was lost, and is tried again in round 2" "$err"
	test_that "$1: the table says it" grep -qE "^\[[0-9]+\] the target was lost: " "$out"
	if grep -q 'do not trust' "$out"; then not_ok "$1: no false alarm"; else ok "$1: no false alarm"; fi
}

# ---- killed ----

# killed NAME LABEL RUNS: in its first run, after so many others. Turns: nfs iscsi fc, iscsi fc nfs.
killed() {
	start run random.ini --json r.json --runtime 2s --rounds 2 nfs="$NFS" iscsi="$ISCSI" fc="$BLOCK"
	reach "$1 is killed" 20 finished "$3" && reach "$1 is killed" 5 running || return
	lab_kill "$1"
	finish 15
	ended "$1 is killed: exit status 3" 3 "samedisk: $2: *[Cc]onnection"
	after "$1 is killed" "$2" 'connection lost' 6
	must lab_restart "$1"
}

killed ganesha nfs 0
check 'a result with a lost target follows the schema' schema r.json "$srcdir/src/result/samedisk-result-1.schema.json"
killed tgtd iscsi 1

# While it is another one's turn: iscsi, fc, fc, iscsi.
start run random.ini --json r.json --runtime 1s --rounds 2 iscsi="$ISCSI" fc="$BLOCK"
if reach 'tgtd is killed beside' 20 finished 1; then
	lab_kill tgtd
	finish 15
	ended 'tgtd is killed while another target has its turn: exit status 3' 3 'samedisk: iscsi: *Connection refused'
	json 'tgtd is killed while another target has its turn: the result' r.json 'd["status"] == "lost"' \
		'[r["target"] for r in d["runs"]] == ["iscsi", "fc", "fc", "iscsi"]' \
		'[r["status"] for r in d["runs"]] == ["ok", "ok", "ok", "lost"]' \
		"'refused' in $OF('iscsi')[1]['error']"
	must lab_restart tgtd
fi

# ---- hangs ----

# stopped NAME LABEL URL TIMEOUT RUNTIME
stopped() {
	start run random.ini --json r.json --runtime "$5" --rounds 2 --set "$2.timeout=$4" "$2=$3" fc="$BLOCK"
	reach "$1 hangs" 20 running || return
	lab_stop "$1"
	finish 20
	lab_cont "$1"
	ended "$1 hangs beyond the timeout of $4, runs of $5: exit status 3" 3 "samedisk: $2: no reply within ${4%s}000 ms"
	after "$1 hangs beyond the timeout of $4, runs of $5" "$2" timeout 4
}

# The loss is found in the window, or when what was out at its end is waited for.
stopped ganesha nfs "$NFS" 1s 2s
stopped tgtd iscsi "$ISCSI" 1s 2s
stopped ganesha nfs "$NFS" 2s 1s
stopped tgtd iscsi "$ISCSI" 2s 1s

stalled() {
	start run random.ini --json r.json --runtime 2s --rounds 1 "$2=$3"
	reach "$1 stalls" 10 running || return
	lab_stop "$1"
	# Not to wait for something: so long is the stall.
	sleep 1
	lab_cont "$1"
	finish 15
	ended "$1 stalls for a second within the timeout: exit status 0" 0 ''
	json "$1 stalls: the longest latency shows it, and nothing failed" r.json 'd["status"] == "ok"' \
		"0.9e9 < runs['$2']['total']['lat_ns']['max'] < 3e9" "not runs['$2']['errors']" \
		"runs['$2']['total']['ios'] > 1000" "1.9e9 < runs['$2']['window_ns'] < 2.1e9"
}

stalled ganesha nfs "$NFS"
stalled tgtd iscsi "$ISCSI"

# ---- idle connections are dropped ----

# proxy NAME PORT: sets port
proxy() {
	# shellcheck disable=SC2016
	lab_start "$1" sh -c 'mkfifo "$1" && { tail --pid="$2" -f /dev/null >"$1" & exec "$3" "$4" 2000 <"$1"; }' sh \
		"$LAB/$1.fifo" $$ "$idleproxy" "$LAB_ADDR:$2" || return 1
	lab_up "$1" 5 test -s "$LAB/$1.log" || lab_show "$1" || return 1
	read -r port <"$LAB/$1.log"
}

dropped() {
	cat "$LAB"/idle-*.log | grep -c idle
}

idleproxy=$builddir/tests/lab/idleproxy
[ -x "$idleproxy" ] || {
	idleproxy=$LAB/idleproxy
	must ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -o "$idleproxy" "$srcdir/tests/lab/idleproxy.c"
}
must proxy idle-nfs "$LAB_NFS_PORT"
nfsport=$port
must proxy idle-mount "$LAB_MOUNT_PORT"
mountport=$port
must proxy idle-iscsi "$LAB_ISCSI_PORT"
cat >idle.py <<END
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
start = time.monotonic()
s.settimeout(10)
got = s.recv(1)
took = time.monotonic() - start
print("closed after %.3f s" % took)
sys.exit(got != b"" or took < 1.9)
END
test_that 'the proxy drops a connection that is idle for 2 s' python3 idle.py "$port"
before=$(dropped)
# Each target waits for 3 s or so while the others have their turns.
start run random.ini --json r.json --runtime 1500ms --rounds 3 \
	nfs="nfs://$LAB_ADDR/data/read?nfsport=$nfsport&mountport=$mountport" iscsi="iscsi://$LAB_ADDR:$port/$LAB_IQN/1" \
	fc="$BLOCK"
finish 40
ended 'servers drop idle connections: exit status 0' 0 ''
json 'servers drop idle connections: nothing is lost, nothing fails' r.json 'd["status"] == "ok"' \
	'len(d["runs"]) == 9' 'all(r["status"] == "ok" and not r["errors"] and r["total"]["ios"] > 100 for r in d["runs"])'
same 'no connection was idle, and none was dropped' "$(dropped)" "$before"
lab_down idle-nfs
lab_down idle-mount
lab_down idle-iscsi

# ---- no space ----

# Sparse objects of 128 MiB, written at random without preparation, and somebody else takes the space.
cat >write.ini <<END
[write]
rw = randwrite
bs = 64k
size = 128m
iodepth = 8
rate_iops = 200
ramp_time = 0
runtime = 3s
rounds = 1
prepare = none
END

# full NAME LABEL URL KIND WORDS
full() {
	start run write.ini --json r.json --allow-full "$2=$3" --destroy "$2"
	reach "$1: no space in mid-run" 10 running || return
	lab_fill "$LAB/small/other"
	finish 20
	ended "$1: no space in mid-run: exit status 2" 2 "$2, 'write': *$5"
	json "$1: no space: counted by kind, and not in IOPS" r.json 'd["status"] == "errors"' \
		"runs['$2']['status'] == 'errors'" "[k[:len('$4')] for k in runs['$2']['errors']] == ['$4']" \
		"0 < runs['$2']['failed'] + runs['$2']['tail']['errors'] == sum(runs['$2']['errors'].values())" \
		"0 < runs['$2']['write']['ios'] == runs['$2']['write']['clat_ns']['n']" \
		"runs['$2']['write']['lat_ns']['n'] - runs['$2']['rate_unsent'] == runs['$2']['write']['ios']" \
		"runs['$2']['write']['ios'] == sum(runs['$2']['series']['write_ios'])" \
		"runs['$2']['write']['ios'] + sum(runs['$2']['errors'].values()) <= runs['$2']['ios_generated']" \
		"runs['$2']['failed'] == sum(runs['$2']['series']['errors'])" \
		"2.9e9 < runs['$2']['window_ns'] < 3.1e9"
	check "$1: no space: the figures hold together" sound r.json
	test_that "$1: no space: the table says it" grep -qE "^\[[0-9]+\] .*$4" "$out"
	rm "$LAB/small/other"
}

truncate -s 128M "$LAB/small/export/sparse" "$LAB/small/sparse.lun"
must lab_tgt_lun 3 "$LAB/small/sparse.lun"
full NFS nfs "$(lab_nfs_url small/sparse)" NFS3ERR_NOSPC 'NFS3ERR_NOSPC*the file system on the server is full'
truncate -s 0 "$LAB/small/export/sparse"
full iSCSI iscsi "$(lab_iscsi_url 3)" 'MEDIUM ERROR' 'MEDIUM ERROR'

# ---- lost in preparation ----

cat >fill.ini <<END
[fill]
rw = randrw
bs = 4k
size = 512m
iodepth = 4
ramp_time = 0
runtime = 300ms
rounds = 2
END

# Empty again, as the same file.
empty_lun() {
	truncate -s 0 "$LAB/fill.lun"
	truncate -s 512M "$LAB/fill.lun"
}

# in_fill NAME LABEL OBJECT: OBJECT is what is filled, on the server's side. Each time another file is created: a name
# that was removed behind its back may still be known to the server.
in_fill() {
	empty_lun
	start run fill.ini --json r.json --allow-full nfs="$(lab_nfs_url "data/$1")" \
		iscsi="$(lab_iscsi_url 2)" --destroy iscsi
	reach "$1 is killed in the fill" 20 written "$3" 16384 || return
	lab_kill "$1"
	finish 20
	ended "$1 is killed in the fill: exit status 3" 3 "$2: filling the working set: *"
	json "$1 is killed in the fill: the other one goes on" r.json 'd["status"] == "lost"' 'len(d["runs"]) == 4' \
		"all(r['status'] == 'lost' and 'filling' in r['error'] and r['total']['ios'] == 0 for r in $OF('$2'))" \
		"all(r['status'] == 'ok' and r['total']['ios'] > 10 for r in d['runs'] if r['target'] != '$2')"
	must lab_restart "$1"
}

in_fill ganesha nfs "$LAB/data/ganesha"
in_fill tgtd iscsi "$LAB/fill.lun"

# ---- a server that was restarted knows our data, and so do we ----

empty_lun
again() {
	run "$SAMEDISK" run fill.ini --json r.json --allow-full --size 64m nfs="$(lab_nfs_url data/again)" \
		iscsi="$(lab_iscsi_url 2)" "$@"
}
again --destroy iscsi
same 'before the restart: all is well' "$status" 0
must lab_restart ganesha
must lab_restart tgtd
again
it_judge 'after the restart: own data is written again without consent' \
	"$(it_status 0; it_words 'nfs: samedisk data*iscsi: samedisk data' 1)" samedisk
json 'after the restart: all is well' r.json 'd["status"] == "ok"' 'all(r["status"] == "ok" for r in d["runs"])'

it_end
