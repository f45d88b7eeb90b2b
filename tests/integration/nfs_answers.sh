#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What NFS servers may answer besides "done": not now, a part, another write verifier, a stale file handle, odd sizes;
# and several servers of one file. With both engines, with Ganesha, and with a server that does what it is told.
# TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

it_begin ganesha.nfsd
it_limit=60

canned=$builddir/tests/lab/canned_nfsd
[ -x "$canned" ] || {
	canned=$LAB/canned_nfsd
	must ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -I "$srcdir" -o "$canned" "$srcdir/tests/lab/canned_nfsd.c"
}

cat >load.ini <<END
[load]
rw = randrw
bs = 4k
size = 2m
iodepth = 8
io_size = 2m
ramp_time = 0
rounds = 1
prepare = none
END

P="runs['x']['protocol']"

# served NAME OPTION...: a canned server; sets port
served() {
	local name
	name=$1
	shift
	: >"$LAB/$name.log"
	must lab_start "$name" "$canned" --file f=2m "$@"
	must lab_up "$name" 5 grep -q port= "$LAB/$name.log"
	port=$(sed -n 's/.*port=\([0-9]*\).*/\1/p' "$LAB/$name.log")
}

# told NAME ENGINE STATUS OPTION... -- ARGUMENT...: a run with a canned server
told() {
	local name engine wanted options
	name="$1 ($2)"
	engine=$2
	wanted=$3
	shift 3
	options=''
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	# shellcheck disable=SC2086
	served canned $options
	rm -f r.json
	run "$SAMEDISK" run load.ini --seed 5 --json r.json --destroy x=unknown-data "$@" \
		x="nfs://127.0.0.1/canned/f?nfsport=$port&mountport=$port&engine=$engine"
	lab_down canned
	same "$name: exit status" "$status" "$wanted"
	[ "$status" = "$wanted" ] || sed 's/^/# /' "$err"
	grep -q 'errors=0' "$LAB/canned.log" || not_ok "$name: the protocol is kept" "$(cat "$LAB/canned.log")"
}

for engine in native libnfs; do
	# ---- not now ----
	told 'every third answer is JUKEBOX' $engine 0 --hostile jukebox --every 3 --
	json "every third answer is JUKEBOX ($engine): all is well in the end, and it is counted" r.json \
		"d['status'] == 'ok' and runs['x']['total']['ios'] == 512 and not runs['x']['errors']" \
		"${P}['retries'] == ${P}['retries_jukebox'] == ${P}['jukebox'] > 200" \
		"${P}['retry_wait_ns'] >= 1000000 * ${P}['retries']" "runs['x']['total']['lat_ns']['max'] > 1e6"
	check "every third answer is JUKEBOX ($engine): the result follows the schema" \
		schema r.json "$srcdir/src/result/samedisk-result-1.schema.json"
	test_that "every third answer is JUKEBOX ($engine): the row says it" grep -qE \
		'^\[[0-9]+\] [0-9]+ answers of "try again later" \([0-9]+ JUKEBOX\): the I/Os waited .*s in all' "$out"

	# What asks before the run, for the fill and for the record of who writes, is told the same.
	told 'every third answer is JUKEBOX, of a fill too' $engine 0 --hostile jukebox --every 3 -- --prepare fill
	json "a fill that is put off ($engine): counted apart from the run" r.json "runs['x']['prepare_retries'] > 2" \
		"runs['x']['prepare_retry_ns'] >= 1000000 * runs['x']['prepare_retries']" \
		"runs['x']['filled'] == runs['x']['entropy'] == 'random'"
	test_that "a fill that is put off ($engine): said at once" grep -qE \
		'x: while it was filled it answered [0-9]+ times "not now"; [0-9.]+ s were spent waiting' "$err"
	test_that "a fill that is put off ($engine): the row says it" grep -qE \
		'\] [0-9]+ answers of "try again later" while the target was prepared: .*before the run' "$out"

	told 'nothing but JUKEBOX' $engine 2 --hostile jukebox --only write --after 101 -- \
		--rw randwrite --io_size 432k --set x.timeout=1s
	json "nothing but JUKEBOX ($engine): tried until the timeout, then an error of that I/O" r.json \
		"runs['x']['errors'] == {'NFS3ERR_JUKEBOX': 8}" "runs['x']['total']['ios'] == 100" "${P}['retries'] >= 8 * 8" \
		"1e9 < runs['x']['window_ns'] < 5e9"

	told 'JUKEBOX at open, as under load' $engine 0 --hostile jukebox --hostile-all --every 3 --
	json "JUKEBOX at open, as under load ($engine): all is well in the end" r.json \
		"d['status'] == 'ok' and runs['x']['total']['ios'] == 512 and not runs['x']['errors']"

	# ---- in part ----
	told 'half of each READ' $engine 0 --hostile short-read -- --rw randread
	json "half of each READ ($engine): the rest is asked for" r.json \
		"runs['x']['total']['bytes'] == 2 << 20 and not runs['x']['errors']" "${P}['short_reads'] > 512"
	test_that "half of each READ ($engine): the row says it" grep -q 'moved only a part of [0-9]* READs and 0 WRITEs' "$out"
	told 'half of each WRITE' $engine 0 --hostile short-write --store "$LAB/store.$engine" -- --rw write --iodepth 1
	json "half of each WRITE ($engine): the rest is written" r.json \
		"runs['x']['total']['bytes'] == 2 << 20 and not runs['x']['errors']" "${P}['short_writes'] > 512"
	told 'all of each WRITE' $engine 0 --store "$LAB/store" -- --rw write --iodepth 1
	test_that "half of each WRITE ($engine): where it belongs" cmp --ignore-initial=4096 "$LAB/store" "$LAB/store.$engine"
	told 'READs that end before the file does' $engine 2 --hostile eof --every 100 -- --rw randread
	json "READs that end before the file does ($engine): an error" r.json \
		"4 <= runs['x']['errors'].get('short read', 0) <= 6" "'the file ends before' in runs['x']['error_texts']['short read']"

	# ---- stale ----
	told 'a stale handle now and then' $engine 2 --hostile stale --only write --every 100 -- --rw randwrite
	json "a stale handle now and then ($engine): the file is the same, and the load goes on" r.json \
		"runs['x']['errors'] == {'NFS3ERR_STALE': 5}" "runs['x']['total']['ios'] == 507"
	for what in gone replaced; do
		served canned --hostile $what --only write --after 101 --store "$LAB/store.$what" --record "$LAB/record.$what"
		run "$SAMEDISK" run load.ini --rw randwrite --json r.json --destroy x \
			x="nfs://127.0.0.1/canned/f?nfsport=$port&mountport=$port&engine=$engine&ping=no"
		lab_down canned
		same "the file is $what ($engine): exit status" "$status" 3
		test_that "the file is $what ($engine): it says why" grep -q \
			"$([ $what = gone ] && echo 'the file is gone or was replaced (NFS3ERR_STALE)' || echo 'is another file by now')" "$err"
		# 7 is WRITE, 1 is GETATTR: what was out already comes before it, and nothing behind.
		test_that "the file is $what ($engine): nothing is written after the question" awk '
			$3 == "0x07" { writes++; if (asked && writes > 100) late++ }
			$3 == "0x01" && writes > 100 { asked = 1 }
			END { exit !(writes >= 101 && writes <= 116 && asked && !late) }' "$LAB/record.$what"
	done

	# ---- odd sizes ----
	told 'rtmax and wtmax of 1000000' $engine 0 --rtmax 1000000 --wtmax 1000000 --record "$LAB/record.odd" -- --bs 1m
	json "rtmax and wtmax of 1000000 ($engine): two requests for 1m" r.json "${P}['wire_ios'] == 4" \
		"targets['x']['members'][0]['negotiated']['rsize'] == targets['x']['members'][0]['negotiated']['wsize'] == 999424"
	test_that "rtmax and wtmax of 1000000 ($engine): all aligned" awk \
		'($3 == "0x06" || $3 == "0x07") { n++; if ($NF % 4096) bad++ } END { exit !(n >= 4 && !bad) }' "$LAB/record.odd"
done

# ---- several servers ----

# Each with a verifier of its own; the one with another one since is where data is lost. What one keeps, the other reads.
served first --store "$LAB/shared"
one=$port
served second --store "$LAB/shared" --hostile verf-change --only write --after 330 --every 20
two=$port
URL="nfs://127.0.0.1/canned/f?nfsport=$one&mountport=$one&servers=127.0.0.1:$one,127.0.0.1:$two"
run "$SAMEDISK" run load.ini --rw randwrite --fsync 16 --iodepth 4 --io_size 1m --json r.json --destroy x=unknown-data "x=$URL"
same 'servers= with two verifiers: exit status' "$status" 0
json 'servers= with two verifiers: good writes are no errors, and both are told to commit' r.json \
	"not runs['x']['errors'] and runs['x']['total']['ios'] == 256 and runs['x']['flush']['ios'] > 8" \
	"${P}['verifier_changes'] == 0 and ${P}['commits'] >= 2 * runs['x']['flush']['ios']" "min(${P}['server1_ios'], ${P}['server2_ios']) >= 100"
run "$SAMEDISK" run load.ini --rw randwrite --fsync 4 --io_size 512k --json r.json --destroy x=unknown-data \
	"x=$URL&wsize=1k&nconnect=3"
same 'servers= with two verifiers, each I/O in pieces: exit status' "$status" 0
json 'servers= with two verifiers, each I/O in pieces: no I/O fails' r.json "not runs['x']['errors']" \
	"runs['x']['total']['ios'] == 128 and ${P}['split_ios'] == 128 and ${P}['verifier_changes'] == 0"
run "$SAMEDISK" run load.ini --rw randwrite --fsync 16 --iodepth 4 --io_size 1m --json r.json --destroy x=unknown-data "x=$URL"
same 'servers=, one of them restarts all the time: exit status' "$status" 2
json 'servers=, one of them restarts all the time: its losses are told, and no others' r.json \
	"set(runs['x']['errors']) == {'write verifier changed'}" "0 < ${P}['verifier_changes'] < 200" \
	"'the server 127.0.0.1:$two restarted' in runs['x']['error_texts']['write verifier changed']"
lab_down first
lab_down second

# ---- two Ganeshas of one folder ----

mkdir "$LAB/data"
must lab_ganesha data="$LAB/data"
first_port=$LAB_NFS_PORT first_mount=$LAB_MOUNT_PORT first_lab=$LAB
# Ganesha's verifier is the second in which it started, so the other one starts in a later one: a lab in the lab, and
# what it starts ends with it.
born=$(date +%s)
must lab_until 5 sh -c "[ \$(date +%s) -gt $born ]"
# shellcheck disable=SC2016
must lab_start other sh -c '
	LAB_HOME=$1
	. "$1/servers.sh"
	lab_begin && lab_ganesha data="$2" || exit 1
	echo "ready $LAB $LAB_NFS_PORT"
	while :; do lab_run sleep 1000; done' sh "$LAB_HOME" "$LAB/data"
must lab_up other 20 grep -q ready "$LAB/other.log"
other_port=$(sed -n 's/^ready .* //p' "$LAB/other.log")
rm -f r.json
run "$SAMEDISK" run load.ini --rw write --fsync 16 --io_size 4m --size 4m --allow-full --json r.json \
	x="nfs://127.0.0.1/data/f?nfsport=$first_port&mountport=$first_mount&servers=127.0.0.1:$first_port,127.0.0.1:$other_port"
same 'two Ganeshas: exit status' "$status" 0
[ "$status" = 0 ] || sed 's/^/# /' "$err"
json 'two Ganeshas: no write fails, and both are told to commit' r.json \
	"not runs['x']['errors'] and runs['x']['total']['ios'] == 1024 and runs['x']['flush']['ios'] > 32" \
	"${P}['verifier_changes'] == 0 and ${P}['commits'] >= 2 * runs['x']['flush']['ios']" "min(${P}['server1_ios'], ${P}['server2_ios']) >= 500"
check 'two Ganeshas: all of it is in the file' marked 0 4194304 "$first_lab/data/f"
lab_down other 10

# ---- Ganesha: odd sizes ----

must lab_ganesha data="$LAB/data:MaxRead=1000000,MaxWrite=1000000,PrefRead=1000000,PrefWrite=1000000"
for engine in native libnfs; do
	run "$SAMEDISK" run load.ini --rw rw --bs 1m --size 16m --io_size 16m --allow-full --json r.json x="$(lab_nfs_url "data/odd.$engine")&engine=$engine"
	same "Ganesha, MaxRead and MaxWrite of 1000000 ($engine): exit status" "$status" 0
	json "Ganesha, MaxRead and MaxWrite of 1000000 ($engine): two requests for 1m" r.json "${P}['wire_ios'] == 32" \
		"targets['x']['members'][0]['negotiated']['rsize'] % 4096 == 0"
done

it_end
