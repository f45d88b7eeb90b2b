#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What may go wrong between consent and the last write: one name for two objects, two names for one, a file system that
# comes while another target is filled, a second samedisk, a file system that gets full. Real servers. TAP output; needs
# root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
[ -n "${SAFETY_NAMESPACE:-}" ] || [ "$(id -u)" != 0 ] ||
	SAFETY_NAMESPACE=1 exec unshare --mount --propagation unchanged \
		sh -c 'mount --make-rprivate / 2>/dev/null; exec sh "$0"' "$0"
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

it_begin mkfs.ext4 ganesha.nfsd tgtd losetup
it_limit=60

cat >p.ini <<'END2'
[w]
rw = randwrite
bs = 4k
iodepth = 8
size = 2m
io_size = 512k
ramp_time = 0
rounds = 1
END2
sed 's/randwrite/randread/; s/^\[w\]/[r]/' p.ini >r.ini
# One that takes a while.
sed 's/^io_size.*/runtime = 60s/' p.ini >long.ini
sed 's/^io_size.*/runtime = 60s/' r.ini >longread.ini

# Minimal systems have no pgrep.
child_of() { tr -d " " <"/proc/$1/task/$1/children"; }
sha() { sha256sum <"$1" | cut -c1-64; }
said() { cat "$out" "$err"; }
# shows NAME PATTERN: the last command said so.
shows() {
	# shellcheck disable=SC2254
	case $(said) in *$2*) ok "$1" ;; *) not_ok "$1" "not found: $2" "$(said | head -12)" ;; esac
}

must lab_tgt
truncate -s 16M "$LAB/one" "$LAB/two" "$LAB/other" "$LAB/slow"
must lab_tgt_lun 1 "$LAB/one" scsi_id=samedisk-1 scsi_sn=S1
must lab_tgt_lun 2 "$LAB/other" scsi_id=samedisk-2 scsi_sn=S2
must lab_tgt_lun 3 "$LAB/slow" scsi_id=samedisk-3 scsi_sn=S3
at() { lab_iscsi_url "$@"; }

# A second tgtd, with the same target, LUN and serial number, and another disk behind them.
port2=$(lab_port)
tgt2() { TGT_IPC_SOCKET="$LAB/tgt2" tgtadm --lld iscsi "$@"; }
tgt2_ready() { tgt2 --mode portal --op show 2>/dev/null | grep -q '^Portal: 127'; }
lab_start tgtd2 env TGT_IPC_SOCKET="$LAB/tgt2" tgtd -f --iscsi "portal=127.0.0.1:$port2"
must lab_until 15 tgt2_ready
must tgt2 --mode target --op new --tid 1 --targetname "$LAB_IQN"
must tgt2 --mode logicalunit --op new --tid 1 --lun 1 --backing-store "$LAB/two"
must tgt2 --mode logicalunit --op update --tid 1 --lun 1 --params scsi_id=samedisk-1,scsi_sn=S1
must tgt2 --mode target --op bind --tid 1 --initiator-address ALL
at2() { printf 'iscsi://127.0.0.1:%s/%s/1\n' "$port2" "$LAB_IQN"; }

# ---- one identity, two objects ----

same 'the two LUNs bear one identity' \
	"$("$SAMEDISK" probe "$(at 1)" | grep -c samedisk-1)$("$SAMEDISK" probe "$(at2)" | grep -c samedisk-1)" \
	"$("$SAMEDISK" probe "$(at 1)" | grep -c samedisk-1)$("$SAMEDISK" probe "$(at 1)" | grep -c samedisk-1)"
head -c 16M /dev/urandom >"$LAB/one"
head -c 16M /dev/urandom >"$LAB/two"
before=$(sha "$LAB/two")
first=$(sha "$LAB/one")
expect 'two objects with one identity: consent for one is none for the other' 1 \
	'bear one identity, but are two objects (they differ at offset*b: refused: unknown data' "$SAMEDISK" run p.ini \
	a="$(at 1)" b="$(at2)" --destroy a=unknown-data
same 'the other is as it was' "$(sha "$LAB/two")" "$before"
same 'so is the first, as the plan was refused whole' "$(sha "$LAB/one")" "$first"
expect 'with consent for each, each is filled' 0 'bear one identity, but are two objects' "$SAMEDISK" run p.ini \
	a="$(at 1)" b="$(at2)" --destroy a=unknown-data --destroy b=unknown-data --json both.json
check 'the first has our data' marked 0 2097152 "$LAB/one"
check 'and the second' marked 0 2097152 "$LAB/two"
json 'and the result says so' both.json "d['sameness'][0]['verdict'] == 'different objects'" \
	"d['plan']['warm_instead_of_asis'] == False"

# Nothing but zeros: a name alone is no proof.
truncate -s 0 "$LAB/one" "$LAB/two" && truncate -s 16M "$LAB/one" "$LAB/two"
before=$(sha "$LAB/two")
expect 'both all zeros: consent for one is none for the other' 1 'nothing confirms*b: refused: all zeros' "$SAMEDISK" \
	run p.ini a="$(at 1)" b="$(at2)" --destroy a
same 'the other is still all zeros' "$(sha "$LAB/two")" "$before"

# A copy bears the identity and the same blocks; only what is written through the one tells.
head -c 16M /dev/urandom >"$LAB/one"
cat "$LAB/one" >"$LAB/two"
before=$(sha "$LAB/two")
expect 'a copy under the same identity is another object' 1 \
	'b: refused: it bears the identity of a*but is another object*--destroy b' "$SAMEDISK" run p.ini a="$(at 1)" \
	b="$(at2)" --destroy a=unknown-data
same 'the copy is as it was' "$(sha "$LAB/two")" "$before"
cat "$LAB/two" >"$LAB/one"
expect 'the same with the consented one last' 1 'b: refused: it bears the identity of a' "$SAMEDISK" run p.ini \
	b="$(at2)" a="$(at 1)" --destroy a=unknown-data
same 'the copy is as it was, again' "$(sha "$LAB/two")" "$before"

# Several portals of one target: that all of them bear the names is no proof either.
portals="portals=127.0.0.1:$LAB_ISCSI_PORT,127.0.0.1:$port2"
before=$(sha "$LAB/two")
truncate -s 0 "$LAB/one" && truncate -s 16M "$LAB/one"
for rr in '' '&rr=1'; do
	expect "portals to two objects, one empty${rr:+, $rr}: refused" 1 'roads lead to different objects' "$SAMEDISK" run p.ini \
		a="$(at 1)?$portals$rr" --destroy a
	same 'the other is as it was' "$(sha "$LAB/two")" "$before"
done
truncate -s 0 "$LAB/two" && truncate -s 16M "$LAB/two"
printf 'precious' | dd of="$LAB/two" bs=1 seek=123456 conv=notrunc 2>/dev/null
before=$(sha "$LAB/two")
expect 'portals to two objects, both all but empty: refused' 1 'roads*lead to different objects' "$SAMEDISK" \
	run p.ini a="$(at 1)?$portals" --destroy a
same 'the other is as it was' "$(sha "$LAB/two")" "$before"
head -c 16M /dev/urandom >"$LAB/one"
cat "$LAB/one" >"$LAB/two"
before=$(sha "$LAB/two")
expect 'portals to an object and its copy: refused' 1 'what was written by the first is not read by' "$SAMEDISK" run p.ini \
	a="$(at 1)?$portals" --destroy a=unknown-data
same 'the copy is as it was' "$(sha "$LAB/two")" "$before"
printf 'other' | dd of="$LAB/two" bs=1 conv=notrunc 2>/dev/null
expect 'reading by portals to two objects: refused' 1 'roads lead to different objects' "$SAMEDISK" run r.ini \
	a="$(at 1)?$portals" --prepare none
cat "$LAB/two" >"$LAB/one"

# Two filers, each with a file system that is a copy of the other's: one fsid, one fileid, one host name, two ports.
truncate -s 24M "$LAB/twin1.img"
must mkfs.ext4 -q -F "$LAB/twin1.img"
mkdir "$LAB/before"
printf '%s\n' "$LAB/before" >>"$LAB/mounts"
must mount -o loop "$LAB/twin1.img" "$LAB/before"
: >"$LAB/before/f" # before the copy is made, so that both have one handle
must umount "$LAB/before"
cp "$LAB/twin1.img" "$LAB/twin2.img"
for twin in 1 2; do
	mkdir "$LAB/twin$twin"
	printf '%s\n' "$LAB/twin$twin" >>"$LAB/mounts"
	must mount -o loop "$LAB/twin$twin.img" "$LAB/twin$twin"
	head -c 8M /dev/urandom >"$LAB/twin$twin/f"
done
# The second filer is a lab of its own, for as long as its standard input is open.
cat >second.sh <<'END2'
LAB_HOME=$1
. "$1/servers.sh"
lab_begin && lab_ganesha "twin=$2" && echo "$LAB_NFS_PORT $LAB_MOUNT_PORT" >"$3.new" && mv "$3.new" "$3" && read -r _
lab_end
END2
mkfifo second.in
must lab_ganesha twin="$LAB/twin1"
sh second.sh "$LAB_HOME" "$LAB/twin2" "$LAB/second" <second.in >second.log 2>&1 &
second=$!
exec 8>second.in
lab_until 30 test -e "$LAB/second" || must cat second.log
read -r port mount_port <"$LAB/second"
first_url=$(lab_nfs_url twin/f)
second_url="nfs://127.0.0.1/twin/f?nfsport=$port&mountport=$mount_port"
same 'two files on two filers bear one identity' "$("$SAMEDISK" probe "$second_url" | grep -c 'fsid:')" \
	"$("$SAMEDISK" probe "$second_url" | grep -cF "$("$SAMEDISK" probe "$first_url" | sed -n 's/^ *identity *//p')")"
before=$(sha "$LAB/twin2/f")
expect 'consent for the one is none for the other' 1 'bear one identity, but are two objects*b: refused: unknown data' \
	"$SAMEDISK" run p.ini a="$first_url" b="$second_url" --destroy a=unknown-data
same 'the other is as it was' "$(sha "$LAB/twin2/f")" "$before"
# servers= that lead to the file and to its copy.
for twin in 1 2; do dd if=/dev/zero of="$LAB/twin$twin/f" bs=1M count=8 conv=notrunc 2>/dev/null; done
printf 'precious' | dd of="$LAB/twin2/f" bs=1 seek=123456 conv=notrunc 2>/dev/null
before=$(sha "$LAB/twin2/f")
expect 'servers= to a file and its copy: refused' 1 'roads*lead to different objects' "$SAMEDISK" run p.ini \
	a="$first_url&servers=127.0.0.1:$LAB_NFS_PORT,127.0.0.1:$port" --allow-full --destroy a
same 'the copy is as it was' "$(sha "$LAB/twin2/f")" "$before"
expect 'servers= to the copy alone, beside the URL of the file: refused' 1 'roads*lead to different objects' \
	"$SAMEDISK" run p.ini a="$first_url&servers=127.0.0.1:$port" --allow-full --destroy a --destroy a=unknown-data
same 'the copy is as it was' "$(sha "$LAB/twin2/f")" "$before"
exec 8>&-
wait "$second"
lab_down ganesha

# ---- two names, one object ----

truncate -s 0 "$LAB/one" && truncate -s 16M "$LAB/one"
expect 'one LUN by two sessions: consented to once, filled once' 0 'a and b are the same object' "$SAMEDISK" run p.ini \
	a="$(at 1)" b="$(at 1 sessions=2)" --destroy a --json twice.json
json 'its cache is warmed' twice.json "d['sameness'][0]['verdict'] == 'one object'" \
	"all(r['cache'] == 'warm' for r in d['runs'])"

mkdir "$LAB/data" "$LAB/small"
truncate -s 16M "$LAB/data/file" "$LAB/data/lun4"
truncate -s 24M "$LAB/small.img"
must lab_mount_ext4 "$LAB/small.img" "$LAB/small"
must lab_ganesha data="$LAB/data:Attr_Expiration_Time=0" small="$LAB/small"
nfs() { lab_nfs_url "$@"; }
must lab_tgt_lun 4 "$LAB/data/lun4" scsi_id=samedisk-4 scsi_sn=S4
before=$(sha "$LAB/data/lun4")
expect 'an NFS file and a LUN that is that file: never both write' 1 \
	'b: refused: what was written to target a is found on it*never both write' "$SAMEDISK" run p.ini \
	a="$(nfs data/lun4)" b="$(at 4)" --destroy a --destroy b
expect 'the same in the other order' 1 'a: refused: what was written to target b is found' "$SAMEDISK" run p.ini \
	b="$(at 4)" a="$(nfs data/lun4)" --destroy a --destroy b
head -c 16M /dev/urandom >"$LAB/data/lun4"
expect 'read only, equal data is said' 0 'a and b may be the same object, or a copy' "$SAMEDISK" run r.ini \
	a="$(nfs data/lun4)" b="$(at 4)"
expect 'different objects: no more is said than was seen' 0 'No sign that a and b share blocks (*looked at)' \
	"$SAMEDISK" run p.ini a="$(nfs data/file)" b="$(at 2)" --destroy a --destroy b --json apart.json
json 'and in the result' apart.json "d['sameness'][0]['verdict'] == 'no sign'" "d['sameness'][0]['blocks'] >= 256"
test_that 'nothing is asserted that was not seen' sh -c "! grep -q 'different objects; on the same disks' '$out'"

# A LUN, and a file that lies in it: at other places.
truncate -s 40M "$LAB/inside.img"
must lab_mount_ext4 "$LAB/inside.img" "$LAB/inside"
must lab_tgt_lun 5 "$LAB/inside.img" scsi_id=samedisk-5 scsi_sn=S5
expect 'a file and the LUN below its file system: found after the fill' 3 \
	'b: refused: what was written to target a is found on it' "$SAMEDISK" run p.ini --size 24m \
	a="file:$LAB/inside/f" b="$(at 5)" --destroy b=ext4 --allow-full --set a.direct=no

# ---- what comes while another target is filled ----

filling() { [ "$(od -An -N4 -tx4 -j1048576 "$LAB/slow" | tr -d ' 0')" != '' ]; }
# meanwhile NAME FILE TARGET: a file system is made in FILE while the slow LUN is filled.
meanwhile() {
	local sum
	truncate -s 0 "$LAB/slow" && truncate -s 16M "$LAB/slow"
	timeout -k 2 60 "$SAMEDISK" run p.ini --size 16m --io_size 32k a="file:$LAB/slow" --set a.delay=500ms b="$3" c="$(nfs data/file)" --destroy a \
		--destroy b --destroy c=unknown-data --allow-full --json mean.json >"$out" 2>"$err" &
	child=$!
	lab_until 30 filling || not_ok "$1: the first target was filled" "$(said)"
	mkfs.ext4 -q -F "$2" 8m
	sum=$(sha "$2")
	wait "$child"
	same "$1: exit status" "$?" 3
	same "$1: not a byte of the new file system was written" "$(sha "$2")" "$sum"
	shows "$1: said" 'b: *overwritten by somebody else'
	json "$1: its runs are lost, the others went on" mean.json \
		"[r['status'] for r in d['runs'] if r['target'] == 'b'] == ['lost']" \
		"[r['status'] for r in d['runs'] if r['target'] in 'ac'] == ['ok', 'ok']"
}
truncate -s 0 "$LAB/other" && truncate -s 16M "$LAB/other" "$LAB/data/file" "$LAB/data/new"
meanwhile 'mkfs on the second LUN' "$LAB/other" "$(at 2)"
meanwhile 'mkfs on the second, an NFS file' "$LAB/data/new" "$(nfs data/new)"
meanwhile 'mkfs on the second, a file that the run has created' "$LAB/created" "file:$LAB/created"
rm "$LAB/created"
truncate -s 0 "$LAB/slow" && truncate -s 16M "$LAB/slow"
timeout -k 2 60 "$SAMEDISK" run p.ini --size 16m --io_size 32k a="file:$LAB/slow" --set a.delay=500ms b="file:$LAB/created" \
	--destroy a --allow-full >"$out" 2>"$err" &
child=$!
lab_until 30 filling || not_ok 'mkfs on a created file, and Ctrl-C: the first target was filled' "$(said)"
mkfs.ext4 -q -F "$LAB/created" 8m
sum=$(sha "$LAB/created")
kill -TERM "$(child_of "$child")"
wait "$child"
same 'mkfs on a created file, and then the end: exit status' "$?" 130
same 'mkfs on a created file, and then the end: the file is left as it is' "$(sha "$LAB/created")" "$sum"
shows 'mkfs on a created file, and then the end: said' 'b: not removed: *ext4 file system was found in it'
rm "$LAB/created"

# ---- two at once ----

# twice NAME TARGET FILE: while one writes, another run that writes or reads is refused; afterwards not.
twice() {
	# The load has begun when the last block of the range is another one twice: by the fill, and by a write.
	last() { dd if="$3" bs=4096 skip=511 count=1 status=none | sha256sum; }
	filled() { [ "$(last "$@")" != "$before" ]; }
	before=$(last "$@")
	timeout -k 2 100 "$SAMEDISK" run long.ini t="$2" --destroy t=unknown-data >"$LAB/first.out" 2>"$LAB/first.err" &
	child=$!
	lab_until 20 filled "$@" || not_ok "$1: the first run fills" "$(cat "$LAB/first.err")"
	before=$(last "$@")
	lab_until 20 filled "$@" || not_ok "$1: the first run writes" "$(cat "$LAB/first.err")"
	pid=$(child_of "$child")
	expect "$1: a second that writes is refused" 1 "t: refused: *samedisk*process $pid*" "$SAMEDISK" run p.ini t="$2" \
		--destroy t=unknown-data
	expect "$1: a second that reads is refused" 1 "t: refused: samedisk on host *process $pid, writes to it since" \
		"$SAMEDISK" run r.ini t="$2"
	same "$1: the first goes on" "$(kill -0 "$pid" && echo on)" on
	kill -INT "$pid"
	wait "$child"
	same "$1: Ctrl-C ends the first" "$?" 130
	expect "$1: then it is free" 0 'samedisk data' "$SAMEDISK" run p.ini t="$2"
	timeout -k 2 100 "$SAMEDISK" run long.ini t="$2" >"$LAB/first.out" 2>"$LAB/first.err" &
	child=$!
	before=$(last "$@")
	lab_until 20 filled "$@" || not_ok "$1: it writes again" "$(cat "$LAB/first.err")"
	kill -KILL "$(child_of "$child")"
	wait "$child"
	expect "$1: one that was killed is no obstacle" 0 'samedisk data' "$SAMEDISK" run p.ini t="$2"
}
head -c 16M /dev/urandom >"$LAB/data/local"
head -c 16M /dev/urandom >"$LAB/data/file"
head -c 16M /dev/urandom >"$LAB/other"
head -c 16M /dev/urandom >"$LAB/disk"
loop=$(lab_loop "$LAB/disk") || must false
twice 'a local file' "file:$LAB/data/local" "$LAB/data/local"
twice 'a loop device' "$loop" "$LAB/disk"
twice 'an NFS file' "$(nfs data/file)" "$LAB/data/file"
twice 'a LUN' "$(at 2)" "$LAB/other"
# The first one's record lies in the middle of the second one's range.
middle() { dd if="$LAB/other" bs=1M skip=8 count=1 status=none | sha256sum; }
moved() { [ "$(middle)" != "$before" ]; }
before=$(middle)
timeout -k 2 100 "$SAMEDISK" run long.ini t="$(at 2)" --offset 8m --destroy t=unknown-data >"$LAB/first.out" 2>"$LAB/first.err" &
child=$!
lab_until 20 moved || not_ok 'a range in the middle of a LUN: it is written' "$(cat "$LAB/first.err")"
pid=$(child_of "$child")
expect 'a second with a larger range finds the record' 1 "t: refused: *samedisk*process $pid*" "$SAMEDISK" run p.ini \
	t="$(at 2)" --size 16m --destroy t=unknown-data
kill -INT "$pid"
wait "$child"
same 'and the first one goes on until it is told to end' "$?" 130

# at_once NAME TARGET: two are started in one moment; one runs, the other is refused by name.
at_once() {
	local first second
	timeout -k 2 60 "$SAMEDISK" run p.ini --io_size 8m t="$2" >"$LAB/first.out" 2>"$LAB/first.err" &
	child=$!
	run "$SAMEDISK" run p.ini --io_size 8m t="$2"
	second=$status
	wait "$child"
	first=$?
	cat "$LAB/first.err" >>"$err"
	same "$1: one runs, one is refused" "$(printf '%s\n' "$first" "$second" | sort | tr '\n' ' ')" '0 1 '
	shows "$1: said" 't: refused: *samedisk'
}
for round in 1 2 3; do
	at_once "an NFS file, two at once, round $round" "$(nfs data/file)"
	at_once "a LUN, two at once, round $round" "$(at 2)"
done

# ---- a file system that gets full ----

# full NAME FILE TARGET WORD [OPTION]: somebody else fills the file system while a new file is filled.
full() {
	local name path target words
	name=$1
	path=$2
	target=$3
	words=$4
	shift 4
	timeout -k 2 60 "$SAMEDISK" run p.ini --size 12m a="$target" --allow-full --json full.json "$@" \
		>"$out" 2>"$err" &
	child=$!
	lab_until 20 test -s "$path" || not_ok "$name: the file is there" "$(said)"
	head -c 32M /dev/zero >"$LAB/small/hog" 2>/dev/null
	wait "$child"
	same "$name: exit status" "$?" 2
	rm -f "$LAB/small/hog"
	shows "$name: said" "$words"
}
full 'a local file that cannot be filled' "$LAB/small/new" "file:$LAB/small/new" 'a: removed: *not filled to the end'
same 'it is removed' "$(ls "$LAB/small")" lost+found
full 'a new file on NFS that cannot be filled' "$LAB/small/new" "$(nfs small/new)" 'a: removed: *not filled to the end'
same 'it is removed, too' "$(ls "$LAB/small")" lost+found
full 'with --keep-partial' "$LAB/small/new" "file:$LAB/small/new" 'a: *not filled to the end; --keep-partial leaves it' \
	--keep-partial
test_that 'it is kept' test -e "$LAB/small/new"
rm -f "$LAB/small/new"

# Ctrl-C while it is filled, and before the second was begun.
timeout -k 2 60 "$SAMEDISK" run p.ini --size 16m a="file:$LAB/data/c1" b="$(nfs data/c2)" --set a.delay=2s --allow-full \
	>"$out" 2>"$err" &
child=$!
begun() { [ -n "$(od -An -N4 -tx4 -j1048576 "$LAB/data/c1" 2>/dev/null | tr -d ' 0')" ]; }
lab_until 20 begun || not_ok 'the fill has begun' "$(said)"
kill -INT "$(child_of "$child")"
wait "$child"
same 'Ctrl-C in a fill: exit status' "$?" 130
same 'new files that were not filled are removed' "$(cd "$LAB/data" && echo c*)" 'c*'
it_end
