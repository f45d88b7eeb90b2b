#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What the keys of nfs targets do, seen from the server's side: owner, export, ports, rsize and wsize, several addresses,
# several files; and what a server says of itself. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/lab/link.sh
. "$LAB_HOME/link.sh"

it_begin ganesha.nfsd ip tc

# Two addresses of one server, and more exports than paths.
must lab_network '10gbit 10gbit'
A=${LAB_ADDRS% *} B=${LAB_ADDRS#* }
mkdir "$LAB/data" "$LAB/data/sub" "$LAB/data/closed" "$LAB/inner"
chmod 777 "$LAB/data"
chmod 700 "$LAB/data/closed"
must lab_ganesha data="$LAB/data" data/sub="$LAB/inner"
D=$LAB/data

cat >write.ini <<END
[write]
rw = write
bs = 64k
size = 2m
io_size = 2m
ramp_time = 0
rounds = 1
prepare = none
END

# samedisk ARGUMENT...: run on the client's side, with a result
samedisk() {
	run "$LAB/client" "$SAMEDISK" run write.ini --allow-full --seed 7 --json r.json "$@"
}

# works NAME: what was run just now did
works() {
	if [ "$status" = 0 ]; then ok "$1"; else
		not_ok "$1" "exit status $status"
		sed 's/^/# /' "$err"
	fi
}

# ---- uid=, gid= ----

samedisk x="nfs://$A/data/owned?uid=1234&gid=2345"
works 'uid=, gid=: a file is created'
same 'uid=, gid=: they own it' "$(stat -c %u:%g "$D/owned")" 1234:2345
expect 'uid=, gid=: they are refused where they may not' 3 'NFS3ERR_ACCES *asked as uid 1234 gid 2345 *' \
	"$LAB/client" "$SAMEDISK" probe x="nfs://$A/data/closed/f?uid=1234&gid=2345"

# ---- export= ----

samedisk x="nfs://$A/data/sub/file"
works 'without export=: a run'
test_that 'without export=: the longest match is the export' test -s "$LAB/inner/file"
expect 'export=: the one that is named is mounted' 0 'does not exist*export *data*export_chosen_by *export=*' \
	"$LAB/client" "$SAMEDISK" probe x="nfs://$A/data/other?export=/data"
expect 'export=: it has to be one of the server' 3 'mounting *:/data/nothing: MNT3ERR_*' \
	"$LAB/client" "$SAMEDISK" probe x="nfs://$A/data/nothing/f?export=/data/nothing"

# ---- nfsport=, mountport= ----

expect 'nfsport=, mountport=: no portmapper is asked' 0 'nfs_port *2049*' \
	"$LAB/client" "$SAMEDISK" probe x="nfs://$A/data/owned?nfsport=2049&mountport=20048"
expect 'nfsport=: where nobody listens' 3 'NFS version 3 at TCP port 2050*' \
	"$LAB/client" "$SAMEDISK" probe x="nfs://$A/data/owned?nfsport=2050"
expect 'mountport=: where nobody listens' 3 'MOUNT version 3 at TCP port 2050*' \
	"$LAB/client" "$SAMEDISK" probe x="nfs://$A/data/owned?mountport=2050"

# ---- what the server says ----

run "$LAB/client" "$SAMEDISK" probe --format json x="nfs://$A/data/owned?rsize=32k"
test_that 'probe: FSINFO, FSSTAT, PATHCONF, and what follows from them' python3 -c '
import json, sys
m = json.load(open(sys.argv[1]))["targets"][0]["members"][0]
n = m["negotiated"]
for key in """rtmax rtpref rtmult wtmax wtpref wtmult dtpref maxfilesize time_delta_ns properties fs_total fs_free
fs_available fs_files fs_files_free fs_files_available fs_invariant_s link_max name_max no_trunc chown_restricted
case_insensitive case_preserving""".split():
    assert key in n, key
assert n["rsize"] == 32768 and n["wsize"] == n["wtmax"], n
assert m["max_io"] == 64 * 32768, m
assert n["fs_files"] >= n["fs_files_free"] > 0 and n["name_max"] >= 255 and n["link_max"] > 1
' "$out"

# ---- rsize=, wsize= ----

WIRE='(lambda t: runs[t]["protocol"]["wire_ios_per_io"])'
samedisk --rw rw --bs 128k x="nfs://$A/data/owned?rsize=16k&wsize=32k&engine=native" \
	y="nfs://$A/data/y?rsize=16k&wsize=32k&engine=libnfs" z="nfs://$A/data/z"
works 'rsize=, wsize=: I/Os that are larger'
json 'rsize=, wsize=: they go in pieces, and count once' r.json \
	"all(runs[t]['total']['ios'] == 16 and runs[t]['total']['bytes'] == 2 << 20 and not runs[t]['errors'] for t in runs)" \
	"all(runs[t]['protocol']['wire_ios'] == 8 * runs[t]['read']['ios'] + 4 * runs[t]['write']['ios'] for t in 'xy')" \
	"all(runs[t]['protocol']['split_ios'] == 16 for t in 'xy')" \
	"runs['z']['protocol']['wire_ios'] == 16 and 'split_ios' not in runs['z']['protocol']"
json 'rsize=, wsize=: the row says so, and the others do not' r.json \
	"{r['target'] for r in d['remarks'] if ' requests on the wire per I/O: ' in r['text'] and r['finding']
	and r['text'].endswith(' I/Os were larger than one RPC (rsize, wsize)')} == {'x', 'y'}"
run "$LAB/client" "$SAMEDISK" run write.ini --bs 1m x="nfs://$A/data/owned?wsize=8k"
same 'wsize=: more than 64 pieces are refused' "$status" 1

# ---- the same bytes by every way ----

# One at a time, so that the same buffers come in the same order. A name for each: the server would remember one.
: >sums
number=0
for how in 'engine=native' 'engine=native&nconnect=2' 'engine=libnfs' 'engine=native&wsize=16k' 'engine=libnfs&wsize=24k' \
	"servers=$A,$B&wsize=48k"; do
	number=$((number + 1))
	samedisk --iodepth 1 x="nfs://$A/data/same.$number?$how"
	works "$how: a run"
	check "$how: counts" counts r.json 32 65536 x
	tail -c +4097 "$D/same.$number" | sha256sum >>sums # the first block holds who wrote, and when
done
same 'the same bytes by every way' "$(sort -u sums | wc -l) of $(wc -l <sums)" '1 of 6'
check 'none of them is left out' marked 65536 2097152 "$D/same.1" # behind the record's block

# ---- servers= ----

samedisk --iodepth 8 --bs 4k x="nfs://$A/data/two?servers=$A,$B"
works 'servers=: a run'
json 'servers=: by both addresses' r.json \
	"runs['x']['protocol']['connections'] == 2" \
	"runs['x']['protocol']['server1_addr'] == '$A' and runs['x']['protocol']['server2_addr'] == '$B'" \
	"runs['x']['protocol']['server1_ios'] + runs['x']['protocol']['server2_ios'] == 512" \
	"min(runs['x']['protocol']['server1_ios'], runs['x']['protocol']['server2_ios']) > 100" \
	"runs['x']['protocol']['server1_bytes'] + runs['x']['protocol']['server2_bytes'] == 2 << 20" \
	"targets['x']['members'][0]['negotiated']['servers'] == '$A:2049, $B:2049'"
check 'servers=: all of the file is there' marked 0 2097152 "$D/two"
expect 'servers=: an address where nobody is' 3 'servers=, address 10.213.2.9*' \
	timeout 20 "$LAB/client" "$SAMEDISK" probe x="nfs://$A/data/two?servers=$A,10.213.2.9:1&timeout=2s"

canned=$builddir/tests/lab/canned_nfsd
if [ -x "$canned" ]; then
	must lab_start other nsenter --net="$LAB_NETNS" "$canned" --bind "$B" --port 4000 --file two=2m
	must lab_up other 5 grep -q port= "$LAB/other.log"
	expect 'servers=: another server' 3 "servers=, address $B, asked for the file that $A has: GETATTR: *" \
		"$LAB/client" "$SAMEDISK" probe x="nfs://$A/data/two?servers=$A,$B:4000"
	lab_down other
else
	skip 'servers=: another server' 'canned_nfsd was not built'
fi

# ---- nrfiles= ----

samedisk --bs 64k --size 8m --io_size 8m x="nfs://$A/data/disk?nrfiles=3&nconnect=2"
works 'nrfiles=: a run'
same 'nrfiles=: so many files, and no other' "$(cd "$D" && echo disk*)" 'disk.0 disk.1 disk.2'
json 'nrfiles=: each is a member' r.json \
	"[m['url'] for m in targets['x']['members']] == ['nfs://$A/data/disk.%d?nconnect=2' % i for i in range(3)]" \
	"all(m['created'] for m in targets['x']['members'])" "runs['x']['total']['bytes'] == 8 << 20"
for i in 0 1 2; do check "nrfiles=: file $i was written" marked 65536 2097152 "$D/disk.$i"; done
head -c 8M /dev/urandom >"$D/mixed.1"
expect 'nrfiles=: each is examined by itself' 1 'x: *mixed.1*--destroy x=unknown-data*' "$LAB/client" "$SAMEDISK" run write.ini --size 8m \
	--allow-full x="nfs://$A/data/mixed?nrfiles=3"
same 'nrfiles=: and nothing is created' "$(cd "$D" && echo mixed*)" mixed.1

# ---- committed answers, write verifiers, rtmax, with a server that does what it is told ----

# told NAME STATUS OPTION... -- ARGUMENT...
told() {
	local name wanted options port
	name=$1
	wanted=$2
	shift 2
	options=''
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	if [ ! -x "$canned" ]; then
		skip "$name" 'canned_nfsd was not built'
		return 1
	fi
	: >"$LAB/canned.log"
	# shellcheck disable=SC2086
	must lab_start canned "$canned" --file f=2m $options
	must lab_up canned 5 grep -q port= "$LAB/canned.log"
	port=$(sed -n 's/.*port=\([0-9]*\).*/\1/p' "$LAB/canned.log")
	run "$SAMEDISK" run write.ini --json r.json --destroy x=unknown-data "$@" \
		x="nfs://127.0.0.1/canned/f?nfsport=$port&mountport=$port"
	lab_down canned
	same "$name: exit status" "$status" "$wanted"
}

told 'a verifier that changes' 2 --hostile verf-change --after 20 --every 10 -- --bs 4k &&
	json 'a verifier that changes: data was lost, and that is an error' r.json \
		"runs['x']['errors'].get('write verifier changed', 0) >= 1" "runs['x']['protocol']['verifier_changes'] >= 1"
told 'committed less than asked' 2 --hostile committed-lower --every 10 -- --bs 4k --sync sync &&
	json 'committed less than asked: an error, and counted' r.json \
		"runs['x']['errors'].get('committed lower than asked', 0) >= 1" \
		"runs['x']['protocol']['answered_filesync'] < runs['x']['protocol']['writes_filesync']"
told 'rtmax and wtmax of 512k' 0 --rtmax 524288 --wtmax 524288 -- --bs 1m &&
	json 'rtmax and wtmax of 512k: I/Os of 1m go in two' r.json "$WIRE('x') == 2" "runs['x']['total']['ios'] == 2"

told 'rsize= of more than that' 3 --rtmax 524288 --wtmax 524288 -- --set x.rsize=1m &&
	test_that 'rsize= of more than that: is refused' \
		grep -q 'rsize=1048576 is more than the server takes: its rtmax is 524288' "$err"

it_end
