#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Nothing is written but what was agreed: real LUNs, loop devices and NFS files with something on them. After every refusal
# the whole object is compared with what it was before, and what the refusal says to type is typed. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# Mounts of this script are its own. In a chroot, "/" is no mount point, and its mounts are private already.
[ -n "${SAFETY_NAMESPACE:-}" ] || [ "$(id -u)" != 0 ] ||
	SAFETY_NAMESPACE=1 exec unshare --mount --propagation unchanged \
		sh -c 'mount --make-rprivate / 2>/dev/null; exec sh "$0"' "$0"
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

it_begin sfdisk partx mkfs.ext4 mkswap pvcreate ganesha.nfsd tgtd

# One short run that writes, in [0, 2 MiB) after filling it.
cat >p.ini <<'END'
[w]
rw = randwrite
bs = 4k
iodepth = 8
size = 2m
io_size = 512k
ramp_time = 0
END
# The same reading.
sed 's/randwrite/randread/; s/^\[w\]/[r]/' p.ini >r.ini

# refuses NAME 'FILE ...' LINES WORDS ARGUMENT...: status 1, so many lines on stderr, and the FILEs stay as they are.
refuses() {
	local name files lines words before why
	name=$1
	files=$2
	lines=$3
	words=$4
	shift 4
	# shellcheck disable=SC2086
	before=$(sums $files)
	run "$SAMEDISK" run "$@"
	# shellcheck disable=SC2086
	why=$(it_status 1; it_words "$words" 1; it_clear "$lines"
		[ ! -s "$out" ] || echo "stdout is not empty"
		[ "$(sums $files)" = "$before" ] || echo "something was written to $files")
	it_judge "$name" "$why" samedisk run "$@"
}

# writes NAME FILE ARGUMENT...: the run goes well, and afterwards FILE has our data.
writes() {
	local name file why
	name=$1
	file=$2
	shift 2
	run "$SAMEDISK" run "$@"
	why=$(it_status 0; python3 "$srcdir/tests/integration/check.py" marked 0 2097152 "$file")
	it_judge "$name" "$why" samedisk run "$@"
}

# offer [safest]: what the last refusal says to type.
offer() {
	if [ "${1:-}" = safest ]; then
		sed -n 's/.*(safest: \(.*\))$/\1/p' "$err"
	else
		sed -n 's/.*to overwrite it, type: \(.*\)/\1/p' "$err" | sed 's/ (safest: .*//'
	fi
}

# known NAME FILE TARGET FOUND SIGNATURES: refused with the name of what was found; not enough: a bare --destroy; enough:
# what is offered, which a dry run shows and does not do, and then with the identity, which a run does.
known() {
	local typed safest before
	refuses "$1: refused, and named" "$2" 2 "t: refused: *$4*found on*--destroy t=$5" p.ini t="$3"
	typed=$(offer)
	safest=$(offer safest)
	refuses "$1: a bare --destroy does not do" "$2" 2 "lacks $(echo "$5" | sed "s/,/, /g")" p.ini t="$3" --destroy t
	refuses "$1: another name does not do" "$2" 2 "--destroy t=xfs*not there*$4" p.ini t="$3" --destroy t=xfs
	before=$(sums "$2")
	# shellcheck disable=SC2086
	{
		expect "$1: what is offered is enough for the plan ($typed)" 0 "would be written*$4*agreed by $typed" \
			"$SAMEDISK" run p.ini t="$3" $typed --dry-run
		same "$1: --dry-run writes nothing" "$(sums "$2")" "$before"
		writes "$1: what is offered as safest is enough for the run" "$2" p.ini t="$3" $safest
	}
}

# ---- what lies on a LUN ----

must lab_tgt
lun() { # NUMBER NAME
	[ -e "$LAB/$2" ] || truncate -s 8M "$LAB/$2"
	must lab_tgt_lun "$1" "$LAB/$2"
}
truncate -s 8M "$LAB/gpt" "$LAB/ext4" "$LAB/swap" "$LAB/vmfs" "$LAB/lvm"
printf 'label: gpt\nstart=2048,size=8192\n' | must sfdisk -q "$LAB/gpt"
must mkfs.ext4 -q -F -E offset=1048576 "$LAB/gpt" 4m
must mkfs.ext4 -q -F -L 'my data' "$LAB/ext4"
must mkswap -q "$LAB/swap"
# The volume header of VMFS begins 1 MiB into the disk or partition.
printf '\015\320\001\300' | must dd of="$LAB/vmfs" bs=1M seek=1 conv=notrunc status=none
head -c 8M /dev/urandom >"$LAB/raw"
loop=$(lab_loop "$LAB/lvm") || must false
must pvcreate -qq -ff -y --devices "$loop" "$loop" >/dev/null 2>&1
lab_down "${loop#/dev/}"
n=1
for name in gpt ext4 lvm swap vmfs raw zero; do
	lun $n "$name"
	n=$((n + 1))
done
at() { lab_iscsi_url "$@"; }

known 'GPT with ext4 in its partition' "$LAB/gpt" "$(at 1)" 'GPT partition table*partition 1 at 1 MiB: ext4' gpt,ext4
known 'ext4' "$LAB/ext4" "$(at 2)" 'ext4 file system "my data"' ext4
known 'LVM' "$LAB/lvm" "$(at 3)" 'LVM physical volume' LVM2_member
known 'swap' "$LAB/swap" "$(at 4)" 'swap space' swap
known 'VMFS' "$LAB/vmfs" "$(at 5)" 'VMFS' VMFS
refuses 'unknown data, deliver=no' "$LAB/raw" 2 'unknown data' p.ini t="$(at 6)?deliver=no" --destroy t
known 'unknown data' "$LAB/raw" "$(at 6)" 'unknown data' unknown-data

refuses 'all zeros: refused without consent' "$LAB/zero" 2 \
	't: refused: all zeros*type: --destroy t (safest: --destroy t=naa' p.ini t="$(at 7)"
safest=$(offer safest)
refuses 'all zeros: the identity of another LUN' "$LAB/zero" 2 'means another object: t is naa' p.ini t="$(at 7)" \
	--destroy "${safest##* }1"
before=$(sums "$LAB/zero")
expect 'all zeros: --dry-run' 0 'would be written*all zeros' "$SAMEDISK" run p.ini t="$(at 7)" --destroy t --dry-run
same 'all zeros: --dry-run writes nothing' "$(sums "$LAB/zero")" "$before"
refuses 'a label that was not written' "$LAB/zero" 3 'all zeros*label iscsi was given automatically*LABEL=' p.ini \
	"$(at 7)"
# shellcheck disable=SC2086
writes 'all zeros: the identity is enough' "$LAB/zero" p.ini t="$(at 7)" $safest
check 'nothing outside of the working set was written' zero "$LAB/zero" 2097152 8388608
writes 'our own LUN is used again without consent' "$LAB/zero" p.ini t="$(at 7)"
refuses 'our own LUN, but more than what it has' "$LAB/zero" 1 "16m*'t' has only 8m" p.ini t="$(at 7)" --size 16m
for block in 0 100 511; do
	printf something | dd of="$LAB/zero" bs=4096 seek=$block conv=notrunc status=none
	refuses "our own LUN, and foreign data in its block $block" "$LAB/zero" 2 \
		"unknown data*first at offset $((block * 4096))" p.ini t="$(at 7)"
	run "$SAMEDISK" run p.ini t="$(at 7)" --destroy t=unknown-data
done
printf something | dd of="$LAB/zero" bs=4096 seek=512 conv=notrunc status=none
run "$SAMEDISK" run p.ini t="$(at 7)"
same 'foreign data right behind the working set is left alone' \
	"$(dd if="$LAB/zero" bs=4096 skip=512 count=1 status=none | head -c 9)" something
truncate -s 0 "$LAB/zero" && truncate -s 8M "$LAB/zero"

# ---- who else uses it ----

if [ -x "$builddir/tests/integration/reserve" ]; then
	for how in register reserve; do
		must "$builddir/tests/integration/reserve" "$(at 7)" "$how"
		refuses "a LUN of a cluster: $how" "$LAB/zero" 1 'in use*persistent reservation*cluster' p.ini t="$(at 7)" \
			--destroy t
		expect "a LUN of a cluster: $how; probe says it" 0 'in use*persistent reservation' "$SAMEDISK" probe "$(at 7)"
		must "$builddir/tests/integration/reserve" "$(at 7)" clear
	done
	before=$(sums "$LAB/zero")
	expect 'a LUN that the cluster gave back' 0 'would be written' "$SAMEDISK" run p.ini t="$(at 7)" --destroy t \
		--dry-run
	same 'which is still as it was' "$(sums "$LAB/zero")" "$before"
else
	skip 'a LUN of a cluster' "$builddir/tests/integration/reserve was not built"
fi

# The LUN is also a local disk: a made-up sysfs, whose disk has the LUN's name and the number of a device that is mounted.
truncate -s 8M "$LAB/mounted.img"
must lab_mount_ext4 "$LAB/mounted.img" "$LAB/mounted"
mkdir -p "$LAB/empty" "$LAB/sys/sdx/device" "$LAB/sys/sdx/holders"
page() { # the VPD page 83 with the LUN's naa name
	printf '\000\203\000\024\001\003\000\020'
	"$SAMEDISK" probe --format json "$(at 7)" | python3 -c '
import json, sys
sys.stdout.buffer.write(bytes.fromhex(json.load(sys.stdin)["targets"][0]["members"][0]["identity"].split(".")[1]))'
}
page >"$LAB/sys/sdx/device/vpd_pg83"
mountpoint -d "$LAB/mounted" >"$LAB/sys/sdx/dev"
must mount --bind "$LAB/sys" /sys/block
refuses 'a LUN that is mounted here as a local disk' "$LAB/zero" 1 \
	"in use on this machine: /dev/sdx is mounted on $LAB/mounted" \
	p.ini t="$(at 7)" --destroy t
echo 259:9999 >"$LAB/sys/sdx/dev"
mkdir "$LAB/sys/sdx/holders/dm-3"
refuses 'a LUN that is here part of a volume' "$LAB/zero" 1 \
	'in use on this machine: /dev/sdx is held by /dev/dm-3' p.ini t="$(at 7)" --destroy t
rmdir "$LAB/sys/sdx/holders/dm-3"
expect 'a LUN that is here too, but unused' 0 'same object as unused /dev/sdx' "$SAMEDISK" run p.ini t="$(at 7)" \
	--destroy t --dry-run
umount /sys/block
must mount --bind "$LAB/empty" /sys
refuses 'without /sys/block nobody can say what is in use' "$LAB/zero" 1 '/sys/block*nobody can say' p.ini \
	t="$(at 7)" --destroy t
umount /sys

# ---- loop devices ----

truncate -s 20M "$LAB/disk"
printf 'label: gpt\nstart=2048,size=16384\nstart=20480,size=16384\n' | must sfdisk -q "$LAB/disk"
loop=$(lab_loop "$LAB/disk") || must false
partx --add "$loop" 2>/dev/null || partx --update "$loop" 2>/dev/null
parts() { [ -b "${loop}p1" ] && [ -b "${loop}p2" ]; }
if lab_until 2 parts; then
	must mkfs.ext4 -q -F "${loop}p1" 8m
	mkdir "$LAB/m"
	must mount "${loop}p1" "$LAB/m"
	echo precious >"$LAB/m/file"
	sync -f "$LAB/m"
	refuses 'a device with a mounted partition' "$LAB/m/file" 1 "in use*${loop}p1 is mounted on $LAB/m" p.ini \
		t="$loop" --destroy t=gpt,ext4
	refuses 'a mounted partition' "$LAB/m/file" 1 "in use*${loop}p1 is mounted on $LAB/m" p.ini t="${loop}p1" \
		--destroy t=ext4
	expect 'the partition beside it is free' 0 'would be written' "$SAMEDISK" run p.ini t="${loop}p2" --destroy t \
		--dry-run
	umount "$LAB/m"
	expect 'no longer mounted' 0 'would be written' "$SAMEDISK" run p.ini t="${loop}p1" --destroy t=ext4 --dry-run
else
	skip 'partitions of a loop device' 'this kernel makes none'
fi
refuses 'a device with a partition table' "$LAB/disk" 2 'GPT partition table*--destroy t=gpt' p.ini t="$loop" \
	--destroy t
lab_down "${loop#/dev/}"

truncate -s 8M "$LAB/fs"
must mkfs.ext4 -q -F "$LAB/fs"
loop=$(lab_loop "$LAB/fs") || must false
mkdir -p "$LAB/m"
must mount -o ro "$loop" "$LAB/m"
refuses 'a mounted device' "$LAB/fs" 1 "in use*$loop is mounted on $LAB/m" p.ini t="$loop" --destroy t=ext4
refuses 'the file behind a mounted device' "$LAB/fs" 1 "in use on this machine*mounted on $LAB/m" p.ini \
	t="file:$LAB/fs" --destroy t=ext4
umount "$LAB/m"
known 'a device with a file system' "$LAB/fs" "$loop" 'ext4 file system' ext4
writes 'our own device is used again' "$LAB/fs" p.ini t="$loop"
refuses 'a device and the file behind it' "$LAB/fs" 2 'same object*never both write' p.ini t="$loop" u="file:$LAB/fs"
refuses 'one device twice' "$LAB/fs" 2 'exclusively' p.ini t="$loop" u="$loop"
exec 9<>"$loop"
before=$(sums "$LAB/fs")
expect 'a device that another program has open is no obstacle' 0 '' "$SAMEDISK" run p.ini t="$loop" --dry-run
exec 9<&-
same 'which --dry-run leaves as it was' "$(sums "$LAB/fs")" "$before"
lab_down "${loop#/dev/}"

# ---- files ----

mkdir "$LAB/data" "$LAB/locked" "$LAB/full" "$LAB/ro"
must lab_mount_ram "$LAB/full" 16M
head -c 8M /dev/urandom >"$LAB/data/foreign"
cp "$LAB/data/foreign" "$LAB/ro/foreign"
truncate -s 8M "$LAB/locked/vm-flat.vmdk"
: >"$LAB/locked/.lck-0123456789abcdef"
ln -s foreign "$LAB/data/link"
ln -s . "$LAB/data/dir"
# Ganesha must see at once what is changed behind its back.
must lab_ganesha data="$LAB/data:Attr_Expiration_Time=0" locked="$LAB/locked" full="$LAB/full" ro="$LAB/ro:ro"
nfs() { lab_nfs_url "$@"; }

known 'a foreign file on NFS' "$LAB/data/foreign" "$(nfs data/foreign)" 'unknown data' unknown-data
# What a load need not deliver is looked at all the same, before it.
head -c 8M /dev/urandom >"$LAB/data/foreign"
refuses 'a foreign file on NFS, deliver=no' "$LAB/data/foreign" 2 'unknown data' p.ini t="$(nfs data/foreign)&deliver=no" \
	--destroy t
head -c 8M /dev/urandom >"$LAB/data/foreign"
before=$(names "$LAB/data")
refuses 'too little free space for a new file' "$LAB/data/new" 1 'would be allocated*must remain*--allow-full' \
	p.ini t="$(nfs full/new)"
writes 'too little free space, and --allow-full' "$LAB/full/new" p.ini t="$(nfs full/new)" --allow-full
refuses 'more than there is, and --allow-full' "$LAB/full/more" 1 '1 GiB would be allocated*free' p.ini \
	t="$(nfs full/more)" --allow-full --size 1g
expect '--dry-run tells the same' 1 'would be allocated' "$SAMEDISK" run p.ini t="$(nfs full/more)" --dry-run
test_that '... and shows the plan' grep -q '^expected duration' "$out"
expect '--dry-run of a new file' 0 '/data/new*will be created' "$SAMEDISK" run p.ini t="$(nfs data/new)" --allow-full \
	--dry-run
same '--dry-run creates nothing' "$(names "$LAB/data")" "$before"
writes 'a new file' "$LAB/data/new" p.ini t="$(nfs data/new)" --allow-full
writes 'our own file is used again without consent' "$LAB/data/new" p.ini t="$(nfs data/new)"
refuses 'our own file, but too small' "$LAB/data/new" 1 "4m*'t' has only 2m*never grows" p.ini t="$(nfs data/new)" \
	--size 4m
refuses 'a file in a folder with locks of ESXi' "$LAB/locked/vm-flat.vmdk" 1 'in use*.lck-0123456789abcdef*ESXi' \
	p.ini t="$(nfs locked/vm-flat.vmdk)" --destroy t
refuses 'a new file in such a folder' "$LAB/locked/new" 1 'in use*.lck-0123456789abcdef*ESXi' p.ini \
	t="$(nfs locked/new)" --allow-full
refuses 'the same by its local path' "$LAB/locked/vm-flat.vmdk" 1 'in use*.lck-0123456789abcdef*ESXi' \
	p.ini t="file:$LAB/locked/vm-flat.vmdk" --destroy t
before=$(sums "$LAB/data/foreign"; names "$LAB/data")
expect 'a symbolic link on NFS' 3 'link is a symbolic link' "$SAMEDISK" run p.ini t="$(nfs data/link)" --destroy \
	t=unknown-data
expect 'a symbolic link on the way on NFS' 3 'dir*is a symbolic link' "$SAMEDISK" run p.ini t="$(nfs data/dir/x)" \
	--allow-full
expect 'a local symbolic link' 3 'link: is a symbolic link' "$SAMEDISK" run p.ini t="file:$LAB/data/link" \
	--destroy t=unknown-data
same 'what the links point to is as it was' "$(sums "$LAB/data/foreign"; names "$LAB/data")" "$before"
known 'a foreign local file' "$LAB/data/foreign" "file:$LAB/data/foreign" 'unknown data' unknown-data
head -c 8M /dev/urandom >"$LAB/data/foreign"

# Nothing is made under /dev, /proc and /sys, by whatever road.
ln -s /dev/shm "$LAB/data/shm"
before=$(names /dev)
for path in /dev/no-such-disk file:/dev/no-such-disk file:/dev/shm/samedisk-test \
	"file:$LAB/data/shm/samedisk-test" file:/proc/x file:/sys/x; do
	case $path in */dev/no* | file:/dev/*) words='no such device' ;; *) \
		words='files under /dev, /proc and /sys are never targets' ;; esac
	expect "no file is made: ${path#file:"$LAB"}" 3 "$words" "$SAMEDISK" run p.ini t="$path" --destroy t --allow-full
done
same 'nothing is new in /dev' "$(names /dev)" "$before"
if [ "$(stat -c %d "$LAB")" = "$(stat -c %d /)" ]; then
	refuses 'a new file on the root file system' "$LAB/data/new2" 2 'root file system*file:/PATH' p.ini \
		t="$LAB/data/new2" --allow-full
else
	skip 'a new file on the root file system' 'the lab is on another one'
fi

everything() {
	names "$LAB/data"
	sums "$LAB/zero" "$LAB/data/new" "$LAB/data/foreign" "$LAB/ext4" "$LAB/vmfs"
}

# ---- the plan as a whole ----

before=$(everything)
refuses 'one refused target of four' "$LAB/data/foreign" 2 'd: refused: unknown data' p.ini a="$(nfs data/other)" \
	b="$(at 7)" c="$(nfs data/new)" d="$(nfs data/foreign)" --destroy b --allow-full
same 'the other three were not touched' "$(everything)" "$before"
refuses 'two refused targets: both are said' "$LAB/data/foreign" 4 'b: refused: all zeros*d: refused: unknown data' \
	p.ini b="$(at 7)" d="$(nfs data/foreign)"
expect 'one target of two cannot be opened' 3 'no such LUN 77' "$SAMEDISK" run p.ini a="$(nfs data/other)" \
	b="$(at 77)" --destroy b --allow-full
same 'the other was not touched' "$(everything)" "$before"
refuses 'one NFS file under two labels, one agreed size too large' "$LAB/data/new" 1 'only 2m' p.ini r.ini \
	a="$(nfs data/new)" b="$(nfs data/new)" --size 9m

# ---- reading ----

before=$(everything)
truncate -s 8M "$LAB/rodisk"
must mkfs.ext4 -q -F "$LAB/rodisk"
loop=$(lab_loop "$LAB/rodisk" --read-only) || must false
expect 'reading needs no consent' 0 '' "$SAMEDISK" run r.ini a="$(nfs data/foreign)" b="$(at 7)" c="$(at 2)" \
	d="file:$LAB/data/foreign" e="$loop" f="$(nfs ro/foreign)"
same 'reading writes nothing' "$(everything)" "$before"
expect '--read-only leaves out what writes' 0 '--read-only leaves out w' "$SAMEDISK" run p.ini r.ini \
	a="$(nfs data/foreign)" b="$(at 7)" --read-only
same '--read-only writes nothing' "$(everything)" "$before"
refuses '--read-only with nothing but writing' "$LAB/data/foreign" 2 '--read-only*all of them write' p.ini \
	a="$(nfs data/foreign)" --read-only
expect 'probe writes nothing' 0 'data/foreign' "$SAMEDISK" probe "$(nfs data/foreign)" "$(at 7)" \
	"file:$LAB/data/foreign" "$loop"
same 'probe left everything as it was' "$(everything)" "$before"

# ---- cleaning up ----

expect '--cleanup removes what was created' 0 'a: removed: *data/made' "$SAMEDISK" run p.ini a="$(nfs data/made)" \
	b="$(nfs data/new)" c="file:$LAB/data/made2" --allow-full --cleanup
same 'and only that' "$(cd "$LAB/data" && echo made* new foreign)" 'made* new foreign'
# While it is measured, somebody puts another file into the place of the new one.
sed 's/^io_size.*/runtime = 1500ms/' p.ini >long.ini
timeout -k 2 20 "$SAMEDISK" run long.ini a="$(nfs data/made)" c="file:$LAB/data/made2" --allow-full --cleanup \
	>"$out" 2>"$err" &
child=$!
must lab_until 5 test -e "$LAB/data/made2"
for f in made made2; do
	mv "$LAB/data/$f" "$LAB/data/$f.away"
	echo mine >"$LAB/data/$f"
done
wait "$child"
for f in made made2; do
	same "--cleanup leaves a file that took the place of ours: $f" "$(cat "$LAB/data/$f" 2>/dev/null)" mine
done
test_that '--cleanup says that it was not removed' grep -q 'not removed: .*made' "$err"
it_end
