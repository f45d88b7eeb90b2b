#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# iSCSI by several paths: tgt behind two links with a portal on each, and targets without disks that do as they are
# told. Which path an I/O takes, as client and server count it; the same bytes on the LUN by any number of paths; a path
# that is lost, one that leads elsewhere, one that ALUA does not like; the options of a session, as the target sees
# them.
# TAP output; needs root.
# shellcheck shell=dash disable=SC2154
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/lab/link.sh
. "$LAB_HOME/link.sh"
# shellcheck source=tests/integration/background.sh
. "$srcdir/tests/integration/background.sh"

it_begin ganesha.nfsd tgtd ip tc
canned=$builddir/tests/lab/canned_iscsid
server_side=$builddir/tests/integration/server_side

mkdir "$LAB/data"
truncate -s 64M "$LAB/lun"
truncate -s 64M "$LAB/second"
must lab_filer "984mbit 984mbit" data="$LAB/data"
must lab_tgt_lun 1 "$LAB/lun"
must lab_tgt_lun 2 "$LAB/second" thin_provisioning=1
truncate -s 8M "$LAB/third"
must lab_tgt_lun 3 "$LAB/third"
it_prefix=$LAB/client
both=portals=10.213.1.2,10.213.2.2

# over KEY=VALUE ...: the LUN with these keys.
over() { lab_iscsi_url 1 "$@"; }
# measure FILE ARGUMENT...: through the links.
measure() {
	local file
	file=$1
	shift
	run "$it_prefix" "$SAMEDISK" run load.ini "$@" --destroy i=unknown-data --json "$file" -q
	[ "$status" = 0 ] || {
		not_ok "run $*"
		sed 's/^/# /' "$err"
	}
}
p='runs["i"]["protocol"]'

# ---- what is said about the paths ----

expect 'probe: sessions, paths, command windows, LBPME, WCE, DPOFUA, VPD B0' 0 \
	"2 sessions by 2 portals*optimal_transfer*provisioning*dpofua*wce*lbpme*command_window*path1_portal*10.213.1.2:3260\
*path1_command_window*path2_portal*10.213.2.2:3260*path2_address*10.213.2.2:3260*sessions*2*rr*1000" \
	"$it_prefix" "$SAMEDISK" probe i="$(over $both)"
expect 'probe: a thin LUN' 0 'provisioning*thin*lbpme *yes' "$it_prefix" "$SAMEDISK" probe i="$(lab_iscsi_url 2)"
complains 'engine=libiscsi cannot do it, and who can is said' 1 'sessions= needs engine=native' probe \
	i="$(over sessions=2 engine=libiscsi)"
complains 'rr= without a choice' 1 'rr= *only one*sessions= or portals=' probe i="$(over rr=2)"
complains 'fewer sessions than portals' 1 'sessions=1 leaves' probe i="$(over $both sessions=1)"
complains 'a portal that is none' 1 "portals=: *10.213.1.2:x* is no portal" probe i="$(over portals=10.213.1.2:x)"

# ---- round robin ----

cat >load.ini <<'END'
[global]
size = 8m
ramp_time = 0
iodepth = 16
io_size = 16m
rounds = 1
[x]
rw = randread
bs = 4k
END
measure rr1.json i="$(over $both rr=1)"
json 'rr=1: 4096 reads, half by each path' rr1.json "${p}['path1_ios'] == ${p}['path2_ios'] == 2048" \
	"${p}['path1_bytes'] == ${p}['path2_bytes'] == 2048 * 4096" "${p}['wire_ios'] == 4096" \
	"(${p}['path1_portal'], ${p}['path2_portal']) == ('10.213.1.2:3260', '10.213.2.2:3260')" "${p}['sessions'] == 2"
check 'the result follows the schema' schema rr1.json "$srcdir/src/result/samedisk-result-1.schema.json"
measure rr1000.json i="$(over $both)"
json 'rr=1000, the default: 2000 and 2096' rr1000.json "${p}['path1_ios'] == 2096 and ${p}['path2_ios'] == 2000"
measure jobs.json i="$(over sessions=3 rr=10)" --numjobs 2
json 'two workers with three sessions each: their paths are added up' jobs.json \
	"${p}['sessions'] == 3 and ${p}['wire_ios'] == 4096" \
	"${p}['path1_ios'] == 1376 and ${p}['path2_ios'] == ${p}['path3_ios'] == 1360" \
	"${p}['path3_portal'] == '10.213.1.2:3260'"

# sessions: how many the target has.
sessions() {
	lab_tgtadm --mode conn --op show --tid 1 | sed -n 's/.*IP Address: 10.213.\([12]\).1/\1/p' | sort | tr -d '\n'
}
has_sessions() { [ "$(sessions)" = "$1" ]; }
start run load.ini i="$(over $both sessions=4 ping=no)" --io_size 0 --runtime 10s --json lost.json
if reach 'the load' 10 running && reach 'four sessions' 10 has_sessions 1122; then
	ok 'sessions=4: the target has four sessions, two by each link'
	# ---- a path that is lost ----
	sid=$(lab_tgtadm --mode conn --op show --tid 1 | sed -n 's/^Session: //p; s/.*IP Address: 10.213.\([12]\).1/by \1/p' |
		grep -B1 'by 2' | head -n 1)
	must lab_tgtadm --mode conn --op delete --tid 1 --sid "$sid" --cid 0
	finish 15
	ended 'a path is cut off: the run is lost, and the portal named' 3 'portal 10.213.2.2:3260: *onnection'
	json 'all that was out came back; nothing else was cut off' lost.json 'runs["i"]["status"] == "lost"' \
		'"portal 10.213.2.2:3260" in runs["i"]["error"]' 'runs["i"]["tail"]["abandoned"] == 0' \
		'set(runs["i"]["errors"]) <= {"connection lost", "other path lost"}'
fi
start run load.ini i="$(over $both rr=1 timeout=1s)" --io_size 0 --runtime 20s --json lost.json
reach 'the load' 10 running
must lab_link_down 2
finish 15
ended 'a cable is pulled: the run is lost, and the portal named' 3 'portal 10.213.2.2:3260: no reply within 1000 ms'
expect 'a portal that does not answer: refused at the start' 3 'portal 10.213.2.2:3260: ' \
	"$it_prefix" "$SAMEDISK" probe i="$(over $both timeout=1s)"
must lab_link_up 2
quietly() { "$@" >"$LAB/quiet" 2>&1; }
must lab_until 15 quietly timeout 5 "$it_prefix" "$SAMEDISK" probe i="$(over $both timeout=2s)"

# ---- the same bytes by any way ----

# left FILE.INI URL: writes, with one seed, and sets $sum to what the LUN then holds.
left() {
	must truncate -s 0 "$LAB/lun"
	must truncate -s 64M "$LAB/lun"
	run "$it_prefix" "$SAMEDISK" run "$1" i="$2" --seed 99 --destroy i --json same.json -q
	[ "$status" = 0 ] || sed 's/^/# /' "$err"
	sum="$status $(tail -c +4097 "$LAB/lun" | sha256sum)" # the first block holds who wrote, and when
}
printf '[d]\nrw=randwrite\nbs=16k\nsize=8m\nio_size=8m\niodepth=1\nramp_time=0\nrounds=1\nprepare=none\n' >one.ini
printf '[d]\nrw=write\nbs=16k\nsize=16m\nloops=1\niodepth=16\nramp_time=0\nrounds=1\nprepare=none\n' >deep.ini
left one.ini "$(over engine=native)"
wanted=$sum
left one.ini "$(over $both rr=1)"
same 'depth 1, random: two paths, rr=1, leave the very same bytes' "$sum" "$wanted"
json 'and both of them had their part' same.json "${p}['path1_ios'] == ${p}['path2_ios'] == 256"
left one.ini "$(over engine=libiscsi)"
same 'depth 1, random: so does libiscsi' "$sum" "$wanted"
# The load begins behind the record's block, which is one of 16k here.
left deep.ini "$(over engine=native)"
wanted=$sum
left deep.ini "$(over $both rr=1)"
same 'depth 16: every write of two paths, rr=1, lies where one session puts it' "$sum" "$wanted"
check 'and is whole' marked 16384 16777216 "$LAB/lun"
left deep.ini "$(over $both sessions=5 rr=3)"
same 'depth 16: so does every write of five sessions' "$sum" "$wanted"
check 'and is whole' marked 16384 16777216 "$LAB/lun"
left deep.ini "$(over engine=libiscsi)"
same 'depth 16: and every write of libiscsi' "$sum" "$wanted"
case $wanted in '0 '*) ok 'all of it was written' ;; *) not_ok 'all of it was written' "$wanted" ;; esac

# Several LUNs as members of one target, each by both paths.
run "$it_prefix" "$SAMEDISK" run load.ini i="$(over $both rr=1)" i="$(lab_iscsi_url 2 $both rr=1)" --size 16m \
	--destroy i=unknown-data --json members.json -q
[ "$status" = 0 ] || sed 's/^/# /' "$err"
json 'two LUNs as members, each by two paths: all four carry I/O' members.json 'runs["i"]["status"] == "ok"' \
	"${p}['path1_ios'] + ${p}['path2_ios'] == 4096 == ${p}['wire_ios']" "abs(${p}['path1_ios'] - 2048) <= 2"

# Both digests: the target agrees, checks what it gets, and what it sends is checked.
digests='header_digest=crc32c data_digest=crc32c'
# shellcheck disable=SC2086
{
	expect 'digests: refused by a target that does without' 3 'HeaderDigest=None, which was not offered' \
		"$it_prefix" "$SAMEDISK" probe i="$(lab_iscsi_url 3 $digests)"
	must lab_tgtadm --mode target --op update --tid 1 --name HeaderDigest --value CRC32C
	must lab_tgtadm --mode target --op update --tid 1 --name DataDigest --value CRC32C
	expect 'digests: the target agrees to both' 0 'login_answered*HeaderDigest=CRC32C*DataDigest=CRC32C' \
		"$it_prefix" "$SAMEDISK" probe i="$(lab_iscsi_url 3 $both $digests)"
	if [ -x "$server_side" ]; then
		expect 'digests, two paths, rr=1: what is written lies on the target, and is read back' 0 'writes=' \
			"$it_prefix" "$server_side" "$(lab_iscsi_url 3 $both rr=1 $digests)" "$LAB/third" none
	else
		skip 'digests, two paths, rr=1: what is written lies on the target' "$server_side was not built"
	fi
}

# ---- targets that do what they are told ----

[ -x "$canned" ] || {
	skip 'targets without disks' "$canned was not built"
	it_end
}
it_prefix='env'
iqn=iqn.2026-01.com.example:canned
# canned NAME OPTION...: starts one; $port.
canned() {
	local name
	name=$1
	shift
	must lab_start "$name" "$canned" "$@"
	must lab_up "$name" 5 grep -q '^port=' "$LAB/$name.log"
	port=$(sed -n 's/^port=//p' "$LAB/$name.log")
}
# told NAME: ends it; what it counted is in $KEY variables
told() {
	lab_down "$1"
	eval "$(tail -n 1 "$LAB/$1.log" | tr ' ' '\n' | sed -n 's/^\([a-z_0-9]*=[0-9]*\)$/told_\1/p')"
	rm -f "$LAB/$1.log"
}

canned one --size 64m --store "$LAB/one" --alua 0
one=127.0.0.1:$port
canned two --size 64m --store "$LAB/two" --alua 0 --serial OTHER
two=127.0.0.1:$port
canned slow --size 64m --store "$LAB/one" --alua 1
slow=127.0.0.1:$port
canned standby --size 64m --alua 2
standby=127.0.0.1:$port
unit=$one/$iqn/0
before=$(sums "$LAB/one" "$LAB/two")
complains 'two LUNs that are not one: refused' 3 "portal $two: the LUN is another one than was opened*OTHER" \
	run one.ini i="iscsi://$unit?portals=$one,$two" --destroy i
same 'and nothing was written to either' "$(sums "$LAB/one" "$LAB/two")" "$before"
complains 'a standby path: refused' 3 "portal $standby: this path is ALUA standby" \
	run one.ini i="iscsi://$unit?portals=$one,$standby&nonoptimized=yes" --destroy i
complains 'a path that is not optimized: refused' 3 \
	"portal $slow: this path is ALUA active/non-optimized*nonoptimized=yes" \
	run one.ini i="iscsi://$unit?portals=$one,$slow" --destroy i
expect 'unless asked for; each path has its state' 0 \
	'path1_alua_state*active/optimized*path2_alua_state*active/non-optimized*portal*is not the preferred one' \
	"$SAMEDISK" probe "iscsi://$unit?portals=$one,$slow&nonoptimized=yes"
start run one.ini i="iscsi://$unit?portals=$one,$slow&nonoptimized=yes&rr=1" --destroy i --rw randread --io_size 0 \
	--iodepth 16 --runtime 20s --json lost.json
reach 'the load' 10 running
lab_kill slow
finish 15
ended 'a controller dies: the run is lost, and its portal named' 3 "portal $slow: "
told one
told two
same 'the target that is another one had no write at all' "$told_immediate $told_data_outs" '0 0'
told standby

# ---- deeper than the target's command window ----

canned window --window 8 --delay-us 500
read='--rw randread --io_size 0 --json window.json'
# shellcheck disable=SC2086
run "$SAMEDISK" run one.ini i="iscsi://127.0.0.1:$port/$iqn/0" $read --iodepth 32 --runtime 500ms
words="iodepth 32 is beyond the target's command window of 8: it was shut for [0-9.]* % of the time, and [89] commands"
it_judge 'a remark says that iodepth is beyond the window, with figures' "$(it_status 0
	grep -q "$words were out at most" "$out" || echo 'there is no such remark')"
json 'the figures' window.json "${p}['command_window'] == 8" "8 <= ${p}['outstanding_max'] <= 9" \
	"${p}['command_window_closed_ns'] > 2e8" 'runs["i"]["depth_achieved"] < 9.1'
# shellcheck disable=SC2086
run "$SAMEDISK" run one.ini i="iscsi://127.0.0.1:$port/$iqn/0" $read --iodepth 8 --runtime 300ms
it_judge 'and none where it is not' "$(it_status 0; ! grep "command window" "$out")"
told window

# ---- BUSY, TASK SET FULL, unit attentions ----

for mode in busy task-set-full unit-attention; do
	canned $mode --hostile $mode --every 20
	run "$SAMEDISK" run one.ini i="iscsi://127.0.0.1:$port/$iqn/0?sessions=2&rr=7" --rw randread --io_size 8m \
		--iodepth 8 \
		--json busy.json -q
	told $mode
	case $mode in
	busy) key=retries_busy ;;
	task-set-full) key=retries_task_set_full ;;
	*) key=unit_attentions ;;
	esac
	json "$mode: every command is done in the end, and each answer is counted" busy.json \
		'runs["i"]["status"] == "ok" and runs["i"]["total"]["ios"] == 512 and not runs["i"]["errors"]' \
		"10 < $told_hostile - 2 <= ${p}['$key'] <= $told_hostile" # reads that find out the idle latency meet some
done

# ---- the options of a session, as the target saw them ----

# seen NAME KEYS OPTION-OF-THE-LOAD WORDS...: each WORD is KEY=NUMBER of what the target counted.
seen() {
	local name keys load word why
	name=$1
	keys=$2
	load=$3
	shift 3
	canned seen --max-recv 64k --max-burst 4m --first-burst 4m --max-outstanding-r2t 8
	# shellcheck disable=SC2086
	run "$SAMEDISK" run one.ini i="iscsi://127.0.0.1:$port/$iqn/0$keys" --destroy i=unknown-data --size 16m $load \
		--json seen.json -q
	told seen
	why=$(it_status 0
		for word; do
			eval "got=\$told_${word%=*}"
			# One write of 4k, the record of who writes, comes on top, and reads of 4k that find out the idle latency.
			case ${word%=*} in immediate | unsolicited) more=4096 ;; r2ts | data_outs) more=1 ;; *) more=0 ;; esac
			[ "$got" = "${word#*=}" ] || [ "$got" = $((${word#*=} + more)) ] || { [ "${word%=*}" = data_ins ] && [ "$got" -ge "${word#*=}" ] &&
				[ "$got" -le $((${word#*=} + 100)) ]; } || echo "$word: it was $got"
		done)
	it_judge "$name" "$why" "$keys"
}
w='--rw write --bs 1m --iodepth 4 --io_size 16m'
seen 'defaults: 64k with the command, 256k unasked, the rest by one R2T' '' "$w" immediate=1048576 \
	unsolicited=3145728 r2ts=16 data_outs=240 longest=65536
seen 'immediate_data=no' '?immediate_data=no' "$w" immediate=0 unsolicited=4194304 r2ts=16
seen 'initial_r2t=yes' '?initial_r2t=yes' "$w" immediate=1048576 unsolicited=0 r2ts=16
seen 'both: all is asked for' '?immediate_data=no&initial_r2t=yes' "$w" immediate=0 unsolicited=0 r2ts=16 \
	data_outs=256
seen 'first_burst=128k' '?first_burst=128k' "$w" immediate=1048576 unsolicited=1048576 r2ts=16
seen 'max_burst=128k' '?max_burst=128k' "$w" immediate=1048576 unsolicited=1048576 r2ts=112 r2ts_at_once=1
seen 'max_outstanding_r2t=4' '?max_burst=128k&max_outstanding_r2t=4' "$w" r2ts=112 r2ts_at_once=4
r='--rw read --bs 64k --iodepth 4 --io_size 16m'
seen 'max_recv is 1m: a read of 64k comes in one PDU' '' "$r" data_ins=256 digests=0
seen 'max_recv=8k: in eight' '?max_recv=8k' "$r" data_ins=2048
seen 'header_digest=crc32c' '?header_digest=crc32c&sessions=2' "$r" data_ins=256
[ "$told_digests" -gt 256 ] && ok 'the target has checked the digests' || not_ok 'the target has checked the digests'

# ---- CHAP in both directions ----

it_secret=Geheim12345678
canned chap --chap anna:$it_secret --mutual-chap filer:Gegenprobe1234
chap="iscsi://anna@127.0.0.1:$port/$iqn/0"
printf '%s\n' "$it_secret" >password
printf 'Gegenprobe1234\n' >target_password
printf 'Falsch12345678\n' >wrong_password
for engine in native libiscsi; do
	expect "$engine: mutual CHAP, passwords from files" 0 'chap*mutual' "$SAMEDISK" probe \
		"$chap?password_file=$LAB/w/password&target_user=filer&target_password_file=$LAB/w/target_password&engine=$engine"
	complains "$engine: a target that cannot prove itself" 3 '' probe \
		"$chap?password_file=$LAB/w/password&target_user=filer&target_password_file=$LAB/w/wrong_password&engine=$engine"
done
expect 'mutual CHAP, all from the environment, on two sessions' 0 'chap*mutual*auth_method*mutual MD5' \
	env SAMEDISK_CHAP_USER=anna SAMEDISK_CHAP_PASSWORD=$it_secret SAMEDISK_CHAP_TARGET_PASSWORD=Gegenprobe1234 \
	"$SAMEDISK" probe "iscsi://127.0.0.1:$port/$iqn/0?target_user=filer&sessions=2"
it_secret=
told chap
it_end
