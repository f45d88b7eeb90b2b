#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Experiments on links of known speed and delay, whose outcome is known beforehand, and whether samedisk finds it.
#
#   experiments.sh [--only LETTERS] [--tap | --page FILE]
#
#   a  reads follow the receive window            d  two links are used evenly, and give twice as much
#   b  writes follow the filer's window           e  what each sync mode asks of the server, by a packet capture
#   c  what readahead gives on a long link        f  the ping tells the network's time from the server's
#
# Prints a table of what had to come and what came, or with --tap the same as TAP. --page also writes the manual page. Needs
# root and two minutes; SAMEDISK=PROGRAM in the environment is what is examined (default: samedisk). Client, links and
# servers share this machine's CPUs: what is out of its bounds is tried again, three times in all. Exit status 1: something
# did not come, even so.
# shellcheck shell=dash
set -u

LAB_HOME=$(cd "$(dirname "$0")" && pwd -P)
# shellcheck source=tests/lab/servers.sh
. "$LAB_HOME/servers.sh"
# shellcheck source=tests/lab/link.sh
. "$LAB_HOME/link.sh"

usage() {
	sed -n '/^# shellcheck/q; /^#!/d; /SPDX/d; s/^# \{0,1\}//p' "$0" >&2
	exit 1
}

stop() {
	echo "experiments.sh: $1" >&2
	exit 1
}

only=abcdef
format=table
page=
while [ $# -gt 0 ]; do
	case $1 in
	--tap) format=tap ;;
	--only | --page)
		[ $# -ge 2 ] || usage
		case $1 in --only) only=$2 ;; *) page=$2 ;; esac
		shift
		;;
	*) usage ;;
	esac
	shift
done
[ -z "$page" ] || page=$(cd "$(dirname "$page")" && pwd -P)/$(basename "$page")
SAMEDISK=$(command -v "${SAMEDISK:-samedisk}") || stop 'there is no program samedisk; set SAMEDISK'
SAMEDISK=$(cd "$(dirname "$SAMEDISK")" && pwd -P)/$(basename "$SAMEDISK")
export SAMEDISK

# ---- what the experiments use ----

MS1=1 MS2=2 MS5=3 MS20=4 G1=5 G2=6     # links
network='rtt=1ms,spin rtt=2ms,spin rtt=5ms rtt=20ms 984mbit 984mbit'

# at LINK: NFS and ISCSI are the targets as they are found over that link.
at() {
	LAB_ADDR=10.213.$1.2
	NFS=$(lab_nfs_url data/read)
	ISCSI=$(lab_iscsi_url 1)
}

# first: the servers are put in front of everything else on this machine, as the program will be, where that is allowed.
first() {
	[ -z "$prefix" ] || {
		chrt --all-tasks --rr --pid 1 "$(lab_pid ganesha)" && chrt --all-tasks --rr --pid 1 "$(lab_pid tgtd)"
	}
}

# measure NAME ARGUMENT...: NAME.json is the result, NAME.txt the table. Without pings, unless $ping is yes.
measure() {
	local name word status
	name=$1
	shift
	for word; do
		case ${ping:-no}$word in nonfs=* | noiscsi=*) set -- "$@" --set "${word%%=*}.ping=no" ;; esac
	done
	# Of lab_end's list, as it may be one of two.
	# shellcheck disable=SC2086
	timeout -k 2 60 $prefix "$LAB/client" "$SAMEDISK" run "$@" --json "$name.json" >"$name.txt" 2>"$name.err" </dev/null &
	echo "$! $(lab_stat $! 20)" >"$LAB/run-$name.pid"
	status=0
	wait $! || status=$?
	rm -f "$LAB/run-$name.pid"
	[ "$status" != 0 ] || return 0
	echo "experiments.sh: samedisk run $*: exit status $status" >&2
	tail -n 5 "$name.err" >&2
	return 1
}

# capturing NAME LINK [BYTES]: NAME.pcapng is what passes the client's end, the first BYTES of each packet; until captured.
capturing() {
	capture=$PWD/$1.pcapng
	marker=end-of-$1-$$
	: >"$LAB/capture.log"
	lab_start capture "$LAB/client" dumpcap -q -i "link$2" -B 64 ${3:+-s "$3"} -w "$capture" || return 1
	lab_up capture 5 grep -q File: "$LAB/capture.log" || lab_show capture
}

# captured LINK: dumpcap writes late, so it has all when it has this datagram.
captured() {
	"$LAB/client" python3 -c 'import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), (sys.argv[1], 9))' "10.213.$1.2" "$marker" &&
		lab_until 10 grep -q "$marker" "$capture" && lab_down capture &&
		grep -q '/0 (pcap:0/dumpcap:0' "$LAB/capture.log" && return
	lab_down capture
	cat "$LAB/capture.log" >&2
	lab_fail "the capture is not complete"
}

# experiment LETTER [PART]: until all that it states holds, or the third time is over.
experiment() {
	local try from folder
	from=$(date +%s)
	folder=$LAB/w/$1$2
	for try in 1 2 3; do
		rm -rf "$folder"
		mkdir "$folder" && cd "$folder" || return 1
		: >../judged
		"experiment_$1" "$2" && python3 "$LAB_HOME/experiments.py" judge "$1" . "$2" >../judged && break
		grep '"ok": false' ../judged | sed "s/^/# try $try: /" >&2
	done
	cd ..
	echo "# experiment $1 $2: $(($(date +%s) - from)) s" >&2
	[ -s judged ] ||
		printf '{"exp": "%s", "case": "it can be done %s", "want": "yes", "got": "no", "ok": false}\n' "$1" "$2" >judged
	cat judged >>made
}

# pattern NAME LINE ...: the pattern file NAME.ini, of reads in large objects unless the lines say else.
pattern() {
	local name
	name=$1
	shift
	printf '%s\n' '[global]' rw=read size=128m ramp_time=500ms runtime=2s rounds=1 prepare=none "[$name]" "$@" >"$name.ini"
}

# ---- a: what is on the way at a time is one window ----

experiment_a() {
	pattern read bs=1m iodepth=8
	case $1 in
	64k | 128k) windowed $MS5 "$1" ;;
	256k) windowed $MS5 "$1" alone ;;
	1m) windowed $MS20 "$1" ;;
	esac
}

# windowed LINK WINDOW [alone]
windowed() {
	local status other
	at "$1"
	capturing "$2" "$1" 96 || return 1
	status=0
	# Side by side saves time, and neither has more on the way than its window; but where this is much in a short time,
	# the machine has enough to do with one.
	measure "$2-nfs" read.ini nfs="$NFS" --set window="$2" &
	other=$!
	[ $# = 2 ] || wait $other || status=1
	measure "$2-iscsi" read.ini iscsi="$ISCSI" --set window="$2" || status=1
	[ $# = 3 ] || wait $other || status=1
	captured "$1" || status=1
	return $status
}

# ---- b: and so with writes, whose window is the filer's ----

experiment_b() {
	pattern write rw=write bs=64k iodepth=16 size=64m
	# The buffers are what gives these windows.
	case $1 in 26k) buffered "$1" 40k ;; 64k) buffered "$1" 88k ;; esac
}

# buffered NAME BUFFER
buffered() {
	local status
	lab_rmem "$2" && serve && capturing "$1" $MS1 96 || return 1
	at $MS1
	status=0
	measure "$1" write.ini nfs="$(lab_nfs_url data/large)" iscsi="$(lab_iscsi_url 2)" --destroy nfs=unknown-data \
		--destroy iscsi=unknown-data --allow-full || status=1
	captured $MS1 || status=1
	return $status
}

# The servers, anew.
serve() {
	lab_restart ganesha && lab_restart tgtd && first
}

# ---- c: one read waits for another, unless somebody reads ahead ----

experiment_c() {
	pattern read bs=32k iodepth=1 runtime=1s
	at $MS5
	for ahead in 0 2m; do
		measure "$ahead" read.ini nfs="$NFS" iscsi="$ISCSI" block="$BLOCK" --set block.delay=5ms --readahead $ahead ||
			return 1
	done
}

# ---- d: two links ----

experiment_d() {
	local both
	pattern read bs=32k iodepth=64
	at $G1
	both=10.213.$G1.2,10.213.$G2.2
	measure one read.ini nfs="$NFS" iscsi="$ISCSI" &&
		measure rr1000 read.ini iscsi="$ISCSI" --set portals=$both --set rr=1000 &&
		measure two read.ini nfs="$NFS" iscsi="$ISCSI" --set nfs.servers=$both --set iscsi.portals=$both --set iscsi.rr=1
}

# ---- e: what a sync mode is on the wire ----

experiment_e() {
	at $MS2
	pattern write rw=randwrite bs=4k size=8m iodepth=16 io_size=1m ramp_time=0
	synced none --sync none && synced fsync --fsync 16 && synced datastore --sync datastore && synced sync --sync sync
}

synced() {
	local name status
	name=$1
	shift
	capturing "$name" $MS2 || return 1
	status=0
	measure "$name" write.ini nfs="$(lab_nfs_url data/written)" iscsi="$(lab_iscsi_url 2)" --destroy nfs=unknown-data \
		--destroy iscsi=unknown-data --allow-full "$@" || status=1
	captured $MS2 || status=1
	return $status
}

# ---- f: a server that is slow, behind a network that is not ----

experiment_f() {
	local ping status
	ping=yes
	pattern read rw=randread bs=4k iodepth=1
	at $MS2
	measure idle read.ini nfs="$NFS" iscsi="$ISCSI" && hobble ganesha tgtd || return 1
	status=0
	measure slow read.ini nfs="$NFS" iscsi="$ISCSI" || status=1
	lab_down hobble
	lab_cont ganesha && lab_cont tgtd && return $status
}

# hobble SERVER ...: they stand still for 50 of every 60 ms, until `lab_down hobble`.
hobble() {
	lab_start hobble python3 -c 'import os, signal, sys, time
while True:
    for sig, seconds in (signal.SIGSTOP, 0.05), (signal.SIGCONT, 0.01):
        for pid in sys.argv[1:]:
            os.kill(int(pid), sig)
        time.sleep(seconds)' "$(lab_pid "$1")" "$(lab_pid "$2")"
}

# ---- all of them ----

lab_need ip tc python3 timeout tshark dumpcap || exit 1
lab_begin || exit 1
mkdir "$LAB/data" "$LAB/w"
cd "$LAB/w" || exit 1
lab_mount_ram "$LAB/data" 900M || exit 1
head -c 192M /dev/urandom >"$LAB/data/read"
cp "$LAB/data/read" "$LAB/data/lun"
truncate -s 64M "$LAB/data/lun2"
cp "$LAB/data/read" "$LAB/data/block"
BLOCK=$(lab_loop "$LAB/data/block") || exit 1
lab_filer "$network" data="$LAB/data" && lab_tgt_lun 1 "$LAB/data/lun" && lab_tgt_lun 2 "$LAB/data/lun2" || exit 1
prefix=
! chrt --rr 1 true 2>/dev/null || prefix='chrt --rr 1'
first
: >made
# The last ones restart the servers, with other buffers.
for part in a:64k a:128k a:256k a:1m c: d: e: f: b:26k b:64k; do
	case $only in *${part%:*}*) experiment "${part%:*}" "${part#*:}" ;; esac
done
status=0
python3 "$LAB_HOME/experiments.py" show $format made || status=1
[ -z "$page" ] || python3 "$LAB_HOME/experiments.py" page made "$LAB_HOME/samedisk-lab.7.in" "$page" || status=1
cd /
lab_end
exit $status
