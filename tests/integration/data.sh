#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What is written through every protocol lies on the server's side, byte for byte; what a result says is what was done: I/Os
# and bytes exactly as asked, the same ones on every target, rates, depth, durability. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

it_begin ganesha.nfsd tgtd
schema=$srcdir/src/result/samedisk-result-1.schema.json
server_side=$builddir/tests/integration/server_side

mkdir "$LAB/data"
must lab_ganesha data="$LAB/data"
must lab_tgt
truncate -s 8M "$LAB/rdwr" "$LAB/aio" "$LAB/stable" "$LAB/block"
must lab_tgt_lun 1 "$LAB/rdwr"
must lab_tgt_lun 2 "$LAB/aio" bstype=aio
must lab_tgt_lun 3 "$LAB/stable" bsoflags=sync wce=0
loop=$(lab_loop "$LAB/block") || must false
nfs() { lab_nfs_url "$@"; }
iscsi() { lab_iscsi_url "$@"; }

# ---- the data paths alone: server_side.c ----

# moved NAME URL FILE SYNC STABLE UNALIGNED [SIZE]: STABLE is what the target has to answer of a write with SYNC, all, none
# or any; UNALIGNED whether there were offsets and sizes that are no multiples of a sector
moved() {
	local name why
	name=$1
	run "$server_side" "$2" "$3" "$4" ${7:+"$7"}
	why=$(it_status 0
		eval "$(tr ' ' '\n' <"$out")"
		case $5 in
		all) [ "${stable:-}" = "${writes:-none}" ] || echo "not every write was answered as stable" ;;
		none) [ "${stable:-}" = 0 ] || echo "writes were answered as stable" ;;
		esac
		[ "$6" = no ] || [ "${unaligned:-0}" -gt 10 ] || echo "no unaligned I/Os")
	it_judge "$name" "$why" server_side "$2" "$3" "$4"
}

if [ -x "$server_side" ]; then
	for sync in none datastore dsync sync; do
		# NFS asks for more with datastore; a LUN without a write cache is stable in any case.
		plain=none more=none
		[ $sync = none ] || more=all
		case $sync in *sync) plain=all ;; esac
		moved "server's side: NFS, sync=$sync" "$(nfs data/side.$sync)" "$LAB/data/side.$sync" $sync $more yes 4000001
		moved "server's side: iSCSI, sync=$sync" "$(iscsi 1)" "$LAB/rdwr" $sync $plain no
		moved "server's side: iSCSI past the server's page cache, sync=$sync" "$(iscsi 2)" "$LAB/aio" $sync $plain no
		moved "server's side: iSCSI without write cache, sync=$sync" "$(iscsi 3)" "$LAB/stable" $sync all no
		moved "server's side: block device, sync=$sync" "$loop" "$LAB/block" $sync any no
		moved "server's side: file, sync=$sync" "file:$LAB/w/direct.$sync" "$LAB/w/direct.$sync" $sync any no 4194304
		moved "server's side: file by threads and page cache, sync=$sync" "file:$LAB/w/cached.$sync?direct=no" \
			"$LAB/w/cached.$sync" $sync any yes 4000001
	done
	rm -f "$LAB/w/"*.none "$LAB/w/"*.datastore "$LAB/w/"*.dsync "$LAB/w/"*.sync
else
	skip "server's side" "$server_side was not built"
fi

# ---- the program ----

cat >exact.ini <<'END'
[global]
size = 8m
ramp_time = 0
io_size = 4m
iodepth = 16
numjobs = 2
END
# measure FILE ARGUMENT...: all four kinds of target, result in FILE, table in FILE.table
measure() {
	local file
	file=$1
	shift
	run "$SAMEDISK" run "$@" n="$(nfs data/n)" i="$(iscsi 1)" b="$loop" f="file:$LAB/w/f" --allow-full --destroy \
		i=unknown-data \
		--destroy b=unknown-data --json "$file" -q
	[ "$status" = 0 ] || {
		not_ok "run $*"
		sed 's/^/# /' "$err"
	}
	cp "$out" "$file.table"
}
everywhere='n i b f'
files="$LAB/data/n $LAB/rdwr $LAB/block $LAB/w/f"

# shellcheck disable=SC2086
{
	{ cat exact.ini; printf '[w]\nrw=randwrite\nbs=4k\n'; } >w.ini
	measure w.json w.ini
	check '1024 random writes of 4k: counted exactly, everywhere' counts w.json 1024 4096 $everywhere
	check 'they hit the very same blocks on each target' same_places 8388608 1024 $files
	check 'every block on the server carries the mark, is unique and does not compress' marked 0 8388608 $files
	{ cat exact.ini; printf 'io_size=2m\n[s]\nrw=write\nbs=64k\n'; } >s.ini
	measure s.json s.ini
	check '32 sequential writes of 64k: counted exactly' counts s.json 32 65536 $everywhere
	check 'the very same blocks again' same_places 8388608 512 $files
	check 'marks after large writes' marked 0 8388608 $files
	{ cat exact.ini; printf 'iodepth=1\nnumjobs=1\n[r]\nrw=randread\nbs=8k\n'; } >r.ini
	before=$(sums $files)
	measure r.json r.ini
	check '512 random reads of 8k at depth 1: counted exactly' counts r.json 512 8192 $everywhere
	same 'reading changes nothing' "$(sums $files)" "$before"
	json 'reading: no writes, no durability' r.json \
		'all(r["durability"] is None and r["write"]["ios"] == 0 for r in d["runs"])'
	json 'depth 1 is depth 1' r.json 'all(0.5 < r["depth_achieved"] <= 1 for r in d["runs"])'
	{ cat exact.ini; printf '[m]\nrw=randrw\nrwmixread=70\nbssplit=4k/50:16k/30:64k/20\nrounds=2\n'; } >m.ini
	measure m.json m.ini
	json 'a mix: both directions, all that was asked for, on each target the same' m.json \
		'all(r["read"]["ios"] > 0 and r["write"]["ios"] > 0 and r["status"] == "ok" for r in d["runs"])' \
		'all(4194304 <= r["total"]["bytes"] < 4194304 + 32 * 65536 for r in d["runs"])' \
		'len({(r["read"]["ios"], r["write"]["ios"], r["total"]["bytes"]) for r in d["runs"] if r["round"] == 1}) == 1' \
		'len({(r["read"]["ios"], r["write"]["ios"], r["total"]["bytes"]) for r in d["runs"] if r["round"] == 2}) == 1'
	{
		cat exact.ini
		printf 'io_size=0\nruntime=400ms\nramp_time=100ms\n'
		printf '[t]\nrw=randrw\nbs=4k\nrounds=2\nfsync=50\n[q]\nrw=read\nbs=128k\niodepth=4\n'
	} >t.ini
	measure t.json t.ini
	for file in w.json s.json r.json m.json t.json; do
		# Rates are counts by window, MiB/s is IOPS by block size, Little's law holds; all targets have the same fingerprints,
		# another one in each round; and the numbers of the table are in the document.
		check "$file: schema, rates, depth, fingerprints, table" document $file $file.table "$schema"
	done
	json 'balanced rounds: the order changes' m.json \
		'[r["target"] for r in d["runs"]][:4] != [r["target"] for r in d["runs"]][4:]'
	json 'the window is as long as asked, and measured' t.json \
		'all(4e8 <= r["window_ns"] < 4e9 and r["ramp_ns"] == 100000000 for r in d["runs"])'
	json 'what was out at the end is kept' t.json \
		'all(r["tail"]["ios"] <= r["depth_requested"] and r["tail"]["abandoned"] == 0 for r in d["runs"])'
	expect 'the result on standard output is the same document' 0 '"schema":*"samedisk-result/1"' "$SAMEDISK" run \
		r.ini \
		n="$(nfs data/n)" -q --format json
	check 'and follows the schema' schema "$out" "$schema"
	# The same seed is the same load, in another process and by another protocol.
	run "$SAMEDISK" run r.ini n="$(nfs data/n)" --seed 4711 --json one.json -q
	run "$SAMEDISK" run r.ini i="$(iscsi 1)" --seed 4711 --json two.json -q
	json 'the same seed makes the same fingerprint' one.json \
		'runs["n"]["fingerprint"] == json.load(open("two.json"))["runs"][0]["fingerprint"] != []'
	json 'the seed is in the result' one.json 'd["plan"]["seed"] == 4711'
}

# Several members of one target share the working set.
run "$SAMEDISK" run w.ini n="$(nfs data/m1)" n="$(nfs data/m2)" --allow-full --json two.json -q
check 'two members: counted exactly' counts two.json 1024 4096 n
check 'two members: both have their half' marked 0 4194304 "$LAB/data/m1" "$LAB/data/m2"
same 'two members: both of one size' "$(stat -c %s "$LAB/data/m1")" "$(stat -c %s "$LAB/data/m2")"

# A working set in the middle.
truncate -s 0 "$LAB/aio" && truncate -s 8M "$LAB/aio"
run "$SAMEDISK" run w.ini i="$(iscsi 2)" --offset 2m --size 4m --destroy i --json offset.json -q
check 'offset: counted exactly' counts offset.json 1024 4096 i
check 'offset: nothing before' zero "$LAB/aio" 0 2097152
check 'offset: the working set' marked 2097152 6291456 "$LAB/aio"
check 'offset: nothing behind' zero "$LAB/aio" 6291456 8388608

# ---- durability: what was asked, what went over the wire, what is said of it ----

# class NAME N I B F EXPRESSION ARGUMENT...: the classes on NFS, iSCSI, block and file; and counters.
{ cat exact.ini; printf 'io_size=1m\n[w]\nrw=randwrite\nbs=4k\n'; } >d.ini
# What a plain and a durable write to a local object are depends on the disk below: as the facts say.
fact='targets[x]["members"][0]'
local_plain="'claims-stable' if ${fact}['volatile_cache'] is False else 'volatile'"
local_durable="'claims-stable' if ${fact}['fua'] or ${fact}['volatile_cache'] is False else 'volatile'"
class() {
	local name nfs_class iscsi_class local_class
	name=$1
	nfs_class=$2
	iscsi_class=$3
	local_class=$4
	shift 4
	measure d.json d.ini "$@"
	json "$name: classes" d.json "runs['n']['durability'] == '$nfs_class'" \
		"runs['i']['durability'] == '$iscsi_class'" \
		"all(runs[x]['durability'] == ($local_class) for x in 'bf')" \
			'all(rows[x]["durability"] == runs[x]["durability"] for x in rows)'
	check "$name: 256 writes" counts d.json 256 4096 n i b f
}
n='runs["n"]["protocol"]' i='runs["i"]["protocol"]'
class 'sync=none' volatile volatile "$local_plain" --sync none
json 'sync=none: WRITE UNSTABLE, no FUA, no flush' d.json \
	"${n}['writes_unstable'] == 256 == ${n}['answered_unstable']" \
	"${n}['writes_filesync'] == ${n}['writes_datasync'] == ${n}['commits'] == 0" \
		"${i}['fua_writes'] == ${i}['cache_syncs'] == 0"
class 'sync=datastore' claims-stable volatile "$local_plain" --sync datastore
json 'sync=datastore: WRITE FILE_SYNC, plain WRITE(16)' d.json \
	"${n}['writes_filesync'] == 256 == ${n}['answered_filesync']" \
	"${n}['writes_unstable'] == ${n}['commits'] == 0" "${i}['fua_writes'] == ${i}['cache_syncs'] == 0"
json 'sync=datastore: NFS and iSCSI are not ranked' d.json \
	'rows["i"]["ratio"] is None and "durability" in rows["i"]["not_comparable"]'
class 'sync=dsync' claims-stable claims-stable "$local_durable" --sync dsync
json 'sync=dsync: WRITE DATA_SYNC, FUA' d.json "${n}['writes_datasync'] == 256" \
	"${n}['answered_datasync'] + ${n}['answered_filesync'] == 256" \
		"${i}['fua_writes'] == 256 and ${i}['cache_syncs'] == 0"
class 'sync=sync' claims-stable claims-stable "$local_durable" --sync sync
json 'sync=sync: WRITE FILE_SYNC, FUA' d.json "${n}['writes_filesync'] == 256 == ${n}['answered_filesync']" \
	"${i}['fua_writes'] == 256"
class 'fsync=16' flushed flushed '"flushed"' --fsync 16 --iodepth 1 --numjobs 1
json 'fsync=16 at depth 1: exactly every 16 writes' d.json 'all(15 <= r["flush"]["ios"] <= 16 for r in d["runs"])' \
	'len({r["flush"]["ios"] for r in d["runs"]}) == 1' \
		"${n}['commits'] == runs['n']['flush']['ios'] and ${i}['cache_syncs'] == runs['i']['flush']['ios']" \
	'all(r["flush"]["lat_ns"]["n"] == r["flush"]["ios"] for r in d["runs"])'
class 'fsync=16 at depth' flushed flushed '"flushed"' --fsync 16
json 'fsync=16 at depth: flushes are no I/Os, and all that are counted went out' d.json \
	'all(0 < r["flush"]["ios"] <= 16 for r in d["runs"])' \
	"${n}['commits'] == runs['n']['flush']['ios'] and ${i}['cache_syncs'] == runs['i']['flush']['ios']"
class 'end_fsync' flushed flushed '"flushed"' --end_fsync
json 'end_fsync: one flush a worker, after the window' d.json \
	'all(r["flush"]["ios"] == 0 and r["end_flush_ns"] > 0 for r in d["runs"])' \
	"${n}['commits'] == 2 and ${i}['cache_syncs'] == 2"
check 'durability: Little'"'"'s law with flushes' sound d.json
run "$SAMEDISK" run d.ini i="$(iscsi 3)" --destroy i=unknown-data --json wce.json -q
# Right data is the contract's matter (contract.sh); here, that there is something to it.
printf '[a]\nrw=read\nbs=16k\nsize=8m\nramp_time=0\nloops=3\nreadahead=1m\n' >ahead.ini
run "$SAMEDISK" run n="$(nfs data/n)" i="$(iscsi 1)" ahead.ini --json ahead.json -q
json 'readahead over NFS and iSCSI: reads from memory, larger ones on the wire' ahead.json 'd["status"] == "ok"' \
	'all(r["wire"]["readahead"]["hits"] > 0 and r["wire"]["ios"] < r["read"]["ios"] for r in d["runs"])' \
	"all(r['protocol']['readahead_hits'] == r['wire']['readahead']['hits'] for r in d['runs'])"
json 'a LUN without write cache: stable without asking' wce.json 'runs["i"]["durability"] == "claims-stable"' \
	"${i}['fua_writes'] == ${i}['cache_syncs'] == 0" 'targets["i"]["members"][0]["volatile_cache"] is False'
it_end
