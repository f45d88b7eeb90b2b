#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices and files that are not what they seem: descriptors that were closed by the caller, loop devices over what is in
# use. What consent did not cover is compared with what it was before. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# Mounts of this script are its own. In a chroot, "/" is no mount point, and its mounts are private already.
[ -n "${SAFETY_NAMESPACE:-}" ] || [ "$(id -u)" != 0 ] ||
	SAFETY_NAMESPACE=1 exec unshare --mount --propagation unchanged \
		sh -c 'mount --make-rprivate / 2>/dev/null; exec sh "$0"' "$0"
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

it_begin losetup mkfs.ext4

cat >p.ini <<'END'
[w]
rw = randwrite
bs = 4k
iodepth = 4
size = 2m
io_size = 512k
ramp_time = 0
END

# ---- closed descriptors ----

# The working set is [0, 2 MiB): what lies behind it stays, and no text gets into it.
fresh() { head -c 8M /dev/urandom >"$LAB/disk"; }
tail_sum() { tail -c +2097153 "$LAB/disk" | sha256sum; }
no_text() { ! grep -aq 'IOPS\|samedisk:\|avg resp' "$LAB/disk"; }

# closed NAME STATUS TARGET REDIRECTIONS [ARGUMENT ...]: exit status, and no byte where none belongs.
closed() {
	local name wanted target how before why
	name=$1
	wanted=$2
	target=$3
	how=$4
	shift 4
	before=$(tail_sum)
	eval "timeout -k 2 $it_limit \"\$SAMEDISK\" run p.ini t=\"\$target\" --destroy t=unknown-data --destroy t \
		--set t.direct=no \"\$@\" $how"
	status=$?
	why=$([ "$status" = "$wanted" ] || echo "exit status $status, not $wanted"
		[ "$(tail_sum)" = "$before" ] || echo "what lies behind the working set has changed"
		no_text || echo "text was written into the target")
	if [ -z "$why" ]; then ok "$name"; else not_ok "$name" "$why"; fi
}

fresh
loop=$(lab_loop "$LAB/disk") || must false
for target in "$loop" "file:$LAB/disk"; do
	kind=${target%%:*}
	[ "$kind" = file ] || kind=device
	closed "$kind: standard output is closed" 1 "$target" '>&- 2>"$err"'
	test_that "$kind: and it says so" grep -q 'standard output is closed.*--json FILE' "$err"
	closed "$kind: standard output and error are closed" 1 "$target" '>&- 2>&-'
	closed "$kind: all three are closed" 1 "$target" '<&- >&- 2>&-'
	closed "$kind: standard input is closed" 0 "$target" '<&- >"$out" 2>"$err"'
	closed "$kind: standard error is closed" 0 "$target" '2>&- >"$out"'
	closed "$kind: standard output is for reading only" 1 "$target" '1</dev/null 2>"$err"'
	closed "$kind: a result file is enough" 0 "$target" '<&- >&- 2>&-' --json r.json
	json "$kind: which is whole" r.json 'd["status"] == "ok"' 'len(d["runs"]) == 1'
	rm -f r.json
done
before=$(sums "$LAB/disk")
"$SAMEDISK" probe null: >"$loop" 2>"$err"
same 'standard output is a block device: refused' "$?" 1
same 'and nothing is written there' "$(sums "$LAB/disk")" "$before"
"$SAMEDISK" patterns >&- 2>"$err"
same 'patterns without a standard output' "$?" 1
lab_down "${loop#/dev/}"

# ---- loop devices over what is in use ----

truncate -s 16M "$LAB/fs"
must mkfs.ext4 -q -F "$LAB/fs"
lower=$(lab_loop "$LAB/fs") || must false
upper=$(lab_loop "$lower") || must false
twin=$(lab_loop "$LAB/fs") || must false
mkdir -p "$LAB/m"
must mount -o ro "$lower" "$LAB/m"
before=$(sums "$LAB/fs")
for target in "$upper" "$twin" "$lower" "file:$LAB/fs"; do
	expect "over a mounted device: ${target#"file:$LAB"}" 1 "in use*mounted on $LAB/m" "$SAMEDISK" run p.ini t="$target" \
		--destroy t=ext4
done
umount "$LAB/m"
expect 'no longer mounted, but a loop device is over it' 1 "in use*behind loop device $upper" "$SAMEDISK" run p.ini \
	t="$lower" --destroy t=ext4
same 'nothing of it was written' "$(sums "$LAB/fs")" "$before"
lab_down "${upper#/dev/}"
expect 'a result into the file behind it' 1 "in use: it is behind*$lower" "$SAMEDISK" run p.ini t="$lower" --destroy t=ext4 \
	--json "$LAB/fs" --force-output
expect 'free again' 0 'would be written' "$SAMEDISK" run p.ini t="$lower" --destroy t=ext4 --dry-run

# Mounted where this script does not see it: only the device's exclusive open tells.
mkfifo "$LAB/end"
unshare --mount --propagation unchanged sh -c 'mount -o ro "$1" "$2/m" && : >"$2/mounted" && read -r _ <"$2/end"' sh "$lower" "$LAB" &
hidden=$!
it_wait_for() { it_tries=0; until [ -e "$1" ]; do it_tries=$((it_tries + 1)); [ $it_tries -lt 200 ] || return 1; sleep 0.05; done; }
must it_wait_for "$LAB/mounted"
for target in "$twin" "file:$LAB/fs"; do
	expect "mounted in another namespace: ${target#"file:$LAB"}" 1 "$lower is opened exclusively" "$SAMEDISK" run p.ini \
		t="$target" --destroy t=ext4
done
echo >"$LAB/end"
wait "$hidden"

# ---- the layers of an overlay ----

layers=$LAB/layers
mkdir -p "$layers"
must mount -t tmpfs tmpfs "$layers"
mkdir "$layers/low" "$layers/up" "$layers/work" "$layers/all"
if mount -t overlay overlay -o "lowerdir=$layers/low,upperdir=$layers/up,workdir=$layers/work" "$layers/all"; then
	truncate -s 16M "$layers/all/fs"
	must mkfs.ext4 -q -F "$layers/all/fs"
	before=$(sums "$layers/up/fs")
	for over in all up; do
		loop=$(lab_loop "$layers/$over/fs") || must false
		must mount -o ro "$loop" "$LAB/m"
		for other in all up; do
			expect "mounted by loop over the file in $over/: the one in $other/" 1 "in use*$loop is mounted" "$SAMEDISK" \
				run p.ini t="file:$layers/$other/fs" --destroy t=ext4
		done
		umount "$LAB/m"
		lab_down "${loop#/dev/}"
	done
	same 'nothing of it was written' "$(sums "$layers/up/fs")" "$before"
	umount "$layers/all"
fi
umount "$layers"
it_end
