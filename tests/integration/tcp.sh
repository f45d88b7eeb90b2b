#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The options of TCP connections, and what TCP_INFO tells, over a link of 1 Gbit/s to servers without disks: every option
# has its effect, as the kernels of both ends report it. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/lab/link.sh
. "$LAB_HOME/link.sh"
# shellcheck source=tests/integration/background.sh
. "$srcdir/tests/integration/background.sh"

it_begin ip tc ss
nfsd=$builddir/tests/lab/canned_nfsd
iscsid=$builddir/tests/lab/canned_iscsid
[ -x "$nfsd" ] && [ -x "$iscsid" ] || it_skip_all 'the servers without disks were not built'

must lab_netns client
must lab_netns filer
must lab_link 1 984mbit
must nsenter --net="$(lab_ns client)" ip addr add 10.213.1.9/24 dev link1
it_prefix="nsenter --net=$(lab_ns client)"

# server NAME PORT OPTION...: the server NAME is nfsd or iscsid, with a file or LUN of 256 MiB.
server() {
	local name port
	name=$1
	port=$2
	shift 2
	case $name in
	nfsd*) set -- "$nfsd" --file f=256m "$@" ;;
	*) set -- "$iscsid" --size 256m "$@" ;;
	esac
	must lab_start "$name" nsenter --net="$(lab_ns filer)" "$@" --bind 10.213.1.2 --port "$port"
	must lab_up "$name" 5 grep -q 'port=' "$LAB/$name.log"
}

# over PORT KEYS: its URL.
over() {
	case $1 in
	2049 | 2050) echo "t=nfs://10.213.1.2:$1/canned/f?mountport=$1&ping=no&$2" ;;
	*) echo "t=iscsi://10.213.1.2:$1/iqn.2026-01.com.example:canned/0?ping=no&$2" ;;
	esac
}

# ends SIDE PORT: what the kernel of this end knows of the connections to the port, one line each.
ends() {
	case $1 in
	server) nsenter --net="$(lab_ns filer)" ss -tinmOH "sport = :$2" ;;
	client) $it_prefix ss -tinmOH "dport = :$2" ;;
	esac
}

# shows SIDE PORT WORDS: a connection whose line has the words in this order.
shows() {
	ends "$1" "$2" | grep -q -- "$3"
}

# seen NAME SIDE PORT WORDS: within a few seconds.
seen() {
	if lab_up command 5 shows "$2" "$3" "$4"; then ok "$1"; else not_ok "$1" "wanted: $4" "$(ends "$2" "$3")"; fi
}

# stop: what start has started.
stop() {
	lab_signal command INT
	finish 10
}

cat >load.ini <<'END'
[reads]
rw = read
bs = 64k
iodepth = 8
runtime = 30s
END
cat >small.ini <<'END'
[small]
rw = randread
bs = 4k
iodepth = 32
runtime = 30s
END
cat >slow.ini <<'END'
[slow]
rw = randread
bs = 512
iodepth = 1
rate_iops = 100
ramp_time = 300ms
runtime = 1s
END
cat >tracks.ini <<'END'
[tracks]
rw = read
bs = 16k
iodepth = 4
ramp_time = 200ms
runtime = 1200ms
END
cat >writes.ini <<'END'
[writes]
rw = write
bs = 256k
iodepth = 8
ramp_time = 200ms
runtime = 1s
prepare = none
END

p='runs["t"]["protocol"]'
s='runs["t"]["series"]["protocol"]'

# windows PORT: the largest window but three of 40 that the server sees while the program runs. Between two receives the
# kernel may offer more for a moment, when it guesses anew what a buffer of this size holds.
windows() {
	local i
	i=0
	while [ $i -lt 40 ] && lab_alive command; do
		ends server "$1" | sed -n 's/.*snd_wnd:\([0-9]*\).*/\1/p' | sort -n | tail -1
		i=$((i + 1))
	done | sort -n | tail -4 | head -1
}

# window KIND PORT FILE SIZE: what is advertised under this load is close to SIZE, and no more.
window() {
	local most
	start run "$3" -q --rounds 1 "$(over "$2" "window=$4")"
	reach "$1: window=$4 runs" 10 shows server "$2" 'bytes_acked:.......*' || return
	most=$(windows "$2")
	stop
	if [ "${most:-0}" -le "$4" ] && [ "${most:-0}" -ge $(($4 * 7 / 10)) ]; then
		ok "$1: window=$4, $3: at most $most was advertised"
	else
		not_ok "$1: window=$4, $3" "at most $most was advertised"
	fi
}

# pure_acks KIND PORT KEYS: acknowledgements without data, for 100 I/Os of which one comes every 10 ms.
pure_acks() {
	run $it_prefix "$SAMEDISK" run slow.ini -q --rounds 1 --json acks.json "$(over "$2" "$3")"
	python3 -c 'import json; print(int(json.load(open("acks.json"))["runs"][0]["protocol"]["tcp_pure_acks"]))'
}

# options KIND PORT LIBRARY
options() {
	local key library quick slow
	library=$3
	start run load.ini -q --rounds 1 \
		"$(over "$2" 'rcvbuf=300k&sndbuf=200k&mss=1000&congestion=reno&bind=10.213.1.9')"
	seen "$1: rcvbuf=" client "$2" 'skmem:(r[0-9]*,rb614400,'
	seen "$1: sndbuf=" client "$2" 'tb409600,'
	seen "$1: congestion=" client "$2" ' reno '
	seen "$1: mss=, what is sent" client "$2" ' mss:9[0-9][0-9] '
	seen "$1: mss=, what is received" server "$2" ' mss:9[0-9][0-9] '
	seen "$1: bind=" server "$2" "10.213.1.2:$2 *10.213.1.9:"
	stop
	expect "$1: probe shows what is in force, and what follows" 0 \
		'tcp_congestion *reno*tcp_mss *988*tcp_autotuning *none*tcp_rcvbuf *307200*tcp_sndbuf *204800*tcp_quickack *yes*tcp_source *10.213.1.9*rcvbuf= fixes the receive buffer*sndbuf= fixes' \
		$it_prefix "$SAMEDISK" probe \
		"$(over "$2" 'rcvbuf=300k&sndbuf=200k&mss=1000&congestion=reno&bind=10.213.1.9&quickack=yes')"
	expect "$1: what the kernel cuts is said" 0 'rcvbuf=1g: the kernel gives*net.core.rmem_max*sndbuf=1g*net.core.wmem_max' \
		$it_prefix "$SAMEDISK" probe "$(over "$2" 'rcvbuf=1g&sndbuf=1g')"
	expect "$1: probe shows the window that was found" 0 \
		'tcp_autotuning *send buffer*tcp_window_asked *200000*tcp_window_bound *19[0-9]*tcp_rcvbuf' \
		$it_prefix "$SAMEDISK" probe "$(over "$2" 'window=200000')"
	window "$1" "$2" load.ini 131072
	window "$1" "$2" small.ini 131072
	window "$1" "$2" load.ini 40000
	quick=$(pure_acks "$1" "$2" quickack=yes)
	slow=$(pure_acks "$1" "$2" quickack=no)
	if [ "$quick" -ge 80 ] && [ "$slow" -lt "$((quick / 2))" ]; then
		ok "$1: quickack=: $quick acknowledgements of their own, $slow without"
	else
		not_ok "$1: quickack=" "$quick acknowledgements of their own, $slow without"
	fi
	for key in rcvbuf=1m sndbuf=1m window=1m quickack=yes congestion=reno mss=1000 bind=10.213.1.9; do
		complains "$1: the library has no ${key%=*}, and the native engine has" 1 "${key%=*}= needs engine=native" \
			run slow.ini "$(over "$2" "$key&engine=$library")"
	done
	complains "$1: an unknown congestion control, and those there are" 1 'congestion=nosuch: *has: *reno' \
		run slow.ini "$(over "$2" congestion=nosuch)"
	complains "$1: an address of somebody else" 1 'bind=192.0.2.1: no interface' run slow.ini \
		"$(over "$2" bind=192.0.2.1)"
	complains "$1: window and rcvbuf" 1 'give one of them' run slow.ini "$(over "$2" 'window=1m&rcvbuf=1m')"
}

# watched KIND PORT ENGINE
watched() {
	expect "$1, $3: the line below the table" 0 'TCP: min RTT * receive window ' \
		$it_prefix "$SAMEDISK" run tracks.ini -q -v --rounds 1 --json tracks.json "$(over "$2" "engine=$3")"
	json "$1, $3: TCP_INFO at start, end, every second" tracks.json \
		"all(len(v) == 2 for v in $s.values())" \
		"len($s) >= 14 and set($s) == set(runs['t']['protocol_at_start'])" \
		"${p}['tcp_connections'] == 1 and ${s}['tcp_connections'] == [1, 1]" \
		"0 < ${p}['tcp_min_rtt_ns'] <= ${p}['tcp_rtt_ns']" \
		"sum(${s}['tcp_busy_ns']) == ${p}['tcp_busy_ns'] > 0" \
		"${p}['tcp_busy_ns'] <= 1.1 * runs['t']['window_ns']" \
		"runs['t']['protocol_at_start']['tcp_busy_ns'] > 0" \
		"min(${s}['tcp_rcv_wnd_bytes']) > 0 and min(${s}['tcp_snd_wnd_bytes']) > 0" \
		"${p}['tcp_rwnd_limited_ns'] < 0.1 * runs['t']['window_ns']" \
		"all(o <= 4 for o in ${s}['outstanding'])"
}

# writes KIND PORT: to a server with a small receive buffer.
writes() {
	expect "$1: writes wait for the server's window, and that is said" 0 \
		"] limited by the server's receive window (* for * % of the time" \
		$it_prefix "$SAMEDISK" run writes.ini -q --rounds 1 --destroy t=unknown-data --json writes.json \
		"$(over "$2" 'engine=native')"
	json "$1: how long" writes.json "${p}['tcp_rwnd_limited_ns'] > 0.2 * runs['t']['window_ns']" \
		"max(${s}['tcp_snd_wnd_bytes']) < 70000"
}

server nfsd 2049
server iscsid 3260
server nfsd-small 2050 --rcvbuf 32k
server iscsid-small 3261 --rcvbuf 32k
options nfs 2049 libnfs
options iscsi 3260 libiscsi
watched nfs 2049 native
check "the schema" schema tracks.json "$srcdir/src/result/samedisk-result-1.schema.json"
watched iscsi 3260 native
watched nfs 2049 libnfs
watched iscsi 3260 libiscsi
writes nfs 2050
writes iscsi 3261
it_end
