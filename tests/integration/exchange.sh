#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# LUNs that become others while they are written to, targets that put commands off, that take one session only, that do
# not know SYNCHRONIZE CACHE: by tgt, and by a target without disks that does as it is told. Both engines.
# TAP output; needs root.
# shellcheck shell=dash disable=SC2154
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/integration/background.sh
. "$srcdir/tests/integration/background.sh"

it_begin tgtd mkfs.ext4
canned=$builddir/tests/lab/canned_iscsid

cat >write.ini <<END
[write]
rw = randwrite
bs = 4k
size = 16m
iodepth = 8
ramp_time = 0
runtime = 1500ms
rounds = 1
prepare = none
END
cat >read.ini <<END
[read]
rw = randread
bs = 4k
size = 16m
iodepth = 8
ramp_time = 0
runtime = 300ms
rounds = 2
END
p='runs["i"]["protocol"]'

# ---- told by us ----

# play OPTION ...: the target that does as it is told; sets port
play() {
	# shellcheck disable=SC2016
	lab_start canned sh -c 'mkfifo "$1" && { tail --pid="$2" -f /dev/null >"$1" & shift 2; exec "$@" <"$0"; }' \
		"$LAB/canned.fifo" "$LAB/canned.fifo" $$ "$canned" --until-stdin-closes --size 64m "$@" || return 1
	lab_up canned 5 grep -q '^port=' "$LAB/canned.log" || lab_show canned || return 1
	port=$(sed -n 's/^port=//p' "$LAB/canned.log")
	url="iscsi://127.0.0.1:$port/iqn.2026-01.com.example:canned/0"
}
# over: its end
over() {
	lab_down canned
	rm -f "$LAB/canned.fifo" "$LAB/canned.log"
}
# write ARGUMENT ...
write() {
	run "$SAMEDISK" run write.ini --json r.json --destroy i=unknown-data "$@"
}

for engine in native libiscsi; do
	must play --exchange 1000 --vanish 3
	write i="$url?engine=$engine&ping=no"
	same "$engine, a LUN that vanishes and is another: exit status 3" "$status" 3
	json "$engine, a LUN that vanishes and is another: said with both names, nothing written" r.json \
		"'was t10.SAMEDISKCANNED0000, is t10.SAMEDISKOTHER0000' in runs['i']['error']" \
		"1 <= runs['i']['errors'].get('ILLEGAL REQUEST 25/00') <= 3" "990 <= ${p}['wire_ios'] < 1010" \
		"${p}['identity_holds'] == 1" "${p}['wire_ios_per_io'] == 1"
	over
	must play --exchange 1000
	write i="$url?engine=$engine&ping=no"
	same "$engine, a LUN that is another without a sign: exit status 3" "$status" 3
	json "$engine, a LUN that is another without a sign: found within a second or so" r.json \
		"'is t10.SAMEDISKOTHER0000' in runs['i']['error']" "runs['i']['window_ns'] < 1.49e9" "${p}['identity_checks'] == 1"
	over
	for kind in busy full attention transition; do
		# The first writes are no load; what is kept of them tells the LUN from another one of its name.
		rm -f "$LAB/kept"
		must play --store "$LAB/kept" --put-off "$kind:40+100"
		write i="$url?engine=$engine&ping=no"
		same "$engine, put off by '$kind' 40 times: exit status 0" "$status" 0
		json "$engine, put off by '$kind' 40 times: counted, in the latency, no errors" r.json \
			"not runs['i']['errors'] and runs['i']['status'] == 'ok'" "${p}['retries'] == 40" \
			"${p}['retry_wait_ns'] > 40e6 and runs['i']['total']['lat_ns']['max'] > 15e6" "${p}['wire_ios_per_io'] == 1"
		over
	done
	# Nothing of ours is there yet by which the session could know the LUN again.
	rm -f "$LAB/kept"
	must play --store "$LAB/kept" --put-off attention:1
	write i="$url?engine=$engine&ping=no"
	same "$engine, a unit attention at the very first write: exit status 0" "$status" 0
	over
	must play --put-off transition:1000000000+100
	write i="$url?engine=$engine&ping=no&timeout=1s"
	same "$engine, put off for longer than timeout=: exit status 2" "$status" 2
	json "$engine, put off for longer than timeout=: by the name of the answer" r.json \
		"list(runs['i']['errors']) == ['NOT READY 04/0A']"
	over
	must play --sync-cache 10
	write --fsync 10 i="$url?engine=$engine&ping=no"
	same "$engine, only SYNCHRONIZE CACHE(10): exit status 0" "$status" 0
	json "$engine, only SYNCHRONIZE CACHE(10): flushed" r.json "runs['i']['durability'] == 'flushed'" \
		"${p}['cache_syncs'] > 10" "d['targets'][0]['members'][0]['negotiated']['flush_by'] == 'SYNCHRONIZE CACHE(10)'" \
		"${p}['wire_ios_per_io'] == 1"
	over
	must play --sync-cache none
	write i="$url?engine=$engine&ping=no"
	same "$engine, no SYNCHRONIZE CACHE: exit status 0" "$status" 0
	json "$engine, no SYNCHRONIZE CACHE: volatile, and said" r.json "runs['i']['durability'] == 'volatile'" \
		"d['targets'][0]['members'][0]['negotiated']['flush_by'] == 'not possible'"
	over
	must play --write-cache no
	write --sync dsync --fsync 10 i="$url?engine=$engine&ping=no"
	json "$engine, a write-through LUN gets neither FUA nor SYNCHRONIZE CACHE" r.json \
		"runs['i']['durability'] == 'claims-stable'" "${p}['fua_writes'] == 0 and ${p}['cache_syncs'] == 0" \
		"d['targets'][0]['members'][0]['negotiated']['durable_by'] == 'write-through'" "${p}['wire_ios_per_io'] == 1"
	over
done

must play --sessions 1
for i in 1 2 3; do
	run "$SAMEDISK" run read.ini --json r.json i="$url"
	same "a target that takes one session, time $i: exit status 0" "$status" 0
done
json 'a target that takes one session: the pings are given up, and that is noted' r.json \
	"all(r['status'] == 'ok' and r['total']['ios'] > 100 for r in d['runs'])" \
	"all('0302' in r['ping']['error'] for r in d['runs'])"
over

# ---- tgt ----

# One name in common, the serial number, and another scsi_id.
truncate -s 64M "$LAB/first" "$LAB/second"
head -c 16M /dev/urandom >"$LAB/data"
dd if="$LAB/data" of="$LAB/first" conv=notrunc status=none
mkfs.ext4 -q -F "$LAB/second"
must lab_tgt
must lab_tgt_lun 1 "$LAB/first" scsi_id=FIRST scsi_sn=SAME
sum=$(sha256sum <"$LAB/second")

tgt_removes() {
	lab_tgtadm --mode logicalunit --op delete --tid 1 --lun 1 2>/dev/null
}

# exchange FILE SCSI_ID: offline first, as tgt removes no LUN that has commands. It has one thread for the initiators and
# for tgtadm: with so many questions between, it has answered what was in its queue. What is still there when the next
# object comes goes into that one, and no initiator could call it back.
exchange() {
	lab_tgtadm --mode logicalunit --op update --tid 1 --lun 1 --params online=0
	lab_until 10 tgt_removes || not_ok "tgt removes the LUN"
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		lab_tgtadm --mode target --op show >/dev/null
	done
	lab_tgtadm --mode logicalunit --op new --tid 1 --lun 1 --backing-store "$1"
	lab_tgtadm --mode logicalunit --op update --tid 1 --lun 1 --params "scsi_id=$2,scsi_sn=SAME"
}

# By another one, and by one that bears the very same names.
for engine in native libiscsi; do
	for id in SECOND FIRST; do
		what="$engine, tgt's LUN is exchanged under load, the other is $id"
		start run write.ini --runtime 6s --json r.json --destroy i=unknown-data i="$(lab_iscsi_url 1 engine=$engine)"
		if reach "$what" 20 running; then
			exchange "$LAB/second" $id
			finish 20
			ended "$what: exit status 3" 3 'samedisk: i: '
			json "$what: lost" r.json "runs['i']['status'] == 'lost'"
			same "$what: not a byte of it is touched" "$(sha256sum <"$LAB/second")" "$sum"
		fi
		exchange "$LAB/first" FIRST
	done
done

# This client stands still meanwhile: nobody has asked since, and nothing is written before somebody has.
for engine in native libiscsi; do
	what="$engine, tgt's LUN is exchanged while this client stands still"
	start run write.ini --runtime 6s --json r.json --destroy i=unknown-data i="$(lab_iscsi_url 1 engine=$engine)"
	if reach "$what" 20 running; then
		kill -STOP "$it_pid"
		began=$(date +%s%N)
		cp "$LAB/second" "$LAB/third"
		exchange "$LAB/third" FIRST
		away() { [ $(($(date +%s%N) - began)) -gt 1500000000 ]; }
		lab_until 10 away
		kill -CONT "$it_pid"
		finish 20
		ended "$what: exit status 3" 3 'samedisk: i: '
		test_that "$what: and that is said" grep -q 'this client stood still for [0-9.]* s (stopped' "$out"
		# What libiscsi has queued it sends before it can be held back.
		[ $engine = libiscsi ] || same "$what: not a byte of it is touched" "$(sha256sum <"$LAB/third")" "$sum"
	fi
	exchange "$LAB/first" FIRST
done

# Just before the end: what was written since nobody can call back, but it is no result.
start run write.ini --runtime 3s --json r.json --destroy i=unknown-data i="$(lab_iscsi_url 1)"
if reach "tgt's LUN is exchanged at the end of a run" 20 running; then
	cp "$LAB/second" "$LAB/third"
	began=$(date +%s%N)
	late() { [ $(($(date +%s%N) - began)) -gt 2300000000 ]; }
	lab_until 10 late
	exchange "$LAB/third" FIRST
	finish 20
	ended "tgt's LUN is exchanged at the end of a run: exit status 3" 3 'samedisk: i: '
	json "tgt's LUN is exchanged at the end of a run: lost" r.json "runs['i']['status'] == 'lost'"
fi
exchange "$LAB/first" FIRST

# A load that comes to every block of its range at once, and sees no sign of the exchange: it does not write the record,
# so that this stays in the one and does not get into the other.
for engine in native libiscsi; do
	what="$engine, tgt's LUN is exchanged under a load of few blocks"
	start run write.ini --runtime 4s --size 64k --json r.json --destroy i=unknown-data i="$(lab_iscsi_url 1 engine=$engine)"
	if reach "$what" 20 running; then
		cp "$LAB/second" "$LAB/third"
		kill -STOP "$it_pid"
		exchange "$LAB/third" FIRST
		kill -CONT "$it_pid"
		finish 20
		ended "$what: exit status 3" 3 'samedisk: i: '
		json "$what: lost" r.json "runs['i']['status'] == 'lost'" "d['plan']['patterns'][0]['kept'] == 4096"
	fi
	exchange "$LAB/first" FIRST
done

# While another target has its turn: the LUN is not attached then.
start run write.ini --runtime 2s --rounds 2 --json r.json --destroy i=unknown-data --allow-full "first=null:?size=64m" \
	i="$(lab_iscsi_url 1)"
if reach "tgt's LUN is exchanged between two runs" 20 running; then
	exchange "$LAB/second" SECOND
	finish 20
	ended "tgt's LUN is exchanged between two runs: exit status 3" 3 'the LUN is another one'
	same "tgt's LUN is exchanged between two runs: not a byte of the other is touched" "$(sha256sum <"$LAB/second")" "$sum"
fi

it_end
