#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Targets a long way off: about 100 ms for every answer, or a second. The expected duration holds, the phases are said, and
# Ctrl-C is heard at once, whatever is being waited for. By an NFS server and an iSCSI target that are slow as they are told,
# and by a delay that an access key adds.
# TAP output; needs root.
# shellcheck shell=dash disable=SC2154
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/integration/background.sh
. "$srcdir/tests/integration/background.sh"

it_begin

# slow NAME OPTION ...: canned_NAME with them; sets port
slow() {
	local name
	name=$1
	shift
	# shellcheck disable=SC2016
	lab_start canned sh -c 'mkfifo "$1" && { tail --pid="$2" -f /dev/null >"$1" & shift 2; exec "$@" <"$0"; }' \
		"$LAB/canned.fifo" "$LAB/canned.fifo" $$ "$builddir/tests/lab/canned_$name" --until-stdin-closes "$@" || return 1
	lab_up canned 5 grep -q '^port=' "$LAB/canned.log" || lab_show canned || return 1
	port=$(sed -n 's/^port=//p' "$LAB/canned.log")
	iscsi="iscsi://127.0.0.1:$port/iqn.2026-01.com.example:canned/0"
	nfs="nfs://127.0.0.1/canned/f?nfsport=$port&mountport=$port"
}
over() {
	lab_down canned
	rm -f "$LAB/canned.fifo" "$LAB/canned.log" "$LAB/kept"
}

# held NAME TARGET ARGUMENT...: from the line with the expected duration to the end
held() {
	local name target from took expected
	name=$1
	target=$2
	shift 2
	start run --bs 4k --size 16m --ramp_time 0 --runtime 1s --rounds 1 a="$target" "$@"
	reach "$name" 60 grep -q 'expected duration' "$err" || return
	from=$(it_ms)
	finish 120
	took=$(($(it_ms) - from))
	same "$name: exit status" "$status" 0
	expected=$(sed -n 's/.*expected duration \([0-9]*\) s:.*/\1/p' "$err")
	test_that "$name: took $took ms, $expected s were expected" \
		[ "$took" -lt $((expected * 1300 + 2000)) -a "$took" -gt $((expected * 500)) ]
}

must slow iscsid --size 64m --delay-us 80000 --store "$LAB/kept"
held 'iSCSI at 80 ms, writing' "$iscsi" --rw randwrite --destroy a=unknown-data
test_that 'off a terminal, a phase that lasts is said' grep -qE 'for 5 s so far|looking at what lies on it, [0-9]+ %' "$err"
over
must slow nfsd --file f=64m --delay-us 100000 --store "$LAB/kept"
held 'NFS at 100 ms, reading' "$nfs" --rw randread
held 'NFS at 100 ms, writing' "$nfs" --rw randwrite --destroy a=unknown-data
over

must slow nfsd --delay-us 100000 --store "$LAB/kept"
held 'NFS at 100 ms, a new file' "nfs://127.0.0.1/canned/new?nfsport=$port&mountport=$port" --rw randwrite --prepare none
over
head -c 16m /dev/urandom >"$LAB/f"
held 'a delay of 0.5 s' "file:$LAB/f?delay=500ms" --rw randread

# interrupted NAME TARGET CONDITION...
interrupted() {
	local name target
	name=$1
	target=$2
	shift 2
	start run --rw randread --bs 4k --size 16m --ramp_time 0 --runtime 1s --rounds 1 a="$target"
	if reach "$name" 40 "$@"; then
		kill -INT "$it_pid"
		finish 20
		same "$name: exit status" "$status" 130
		test_that "$name: ended within 2 s (took $it_took ms)" [ "$it_took" -lt 2000 ]
	fi
}
since=$(it_ms)
a_second() { [ $(($(it_ms) - since)) -gt 1000 ]; }
must slow iscsid --size 64m --delay-us 800000
interrupted 'iSCSI at 1 s, Ctrl-C while it is opened' "$iscsi" a_second
interrupted 'iSCSI at 1 s, Ctrl-C later' "$iscsi" grep -q 'for 5 s so far' "$err"
over
must slow nfsd --file f=64m --delay-us 1000000
since=$(it_ms)
interrupted 'NFS at 1 s, Ctrl-C while it is opened' "$nfs" a_second
interrupted 'NFS at 1 s, Ctrl-C later' "$nfs" grep -q 'for 5 s so far' "$err"
over

it_end
