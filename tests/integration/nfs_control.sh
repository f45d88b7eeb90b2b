#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What is asked of an NFS server before and after the load: by which groups, of which file, and whether it is an NFSv3 server
# at all. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

it_begin ganesha.nfsd mkfs.ext4 tgtd

truncate -s 64M "$LAB/fs"
must lab_mount_ext4 "$LAB/fs" "$LAB/data"
chmod 777 "$LAB/data"
mkdir "$LAB/krb"
must lab_ganesha data="$LAB/data:Attr_Expiration_Time=0" krb="$LAB/krb:SecType=krb5"

cat >one.ini <<END
[one]
rw = write
bs = 64k
size = 1m
io_size = 1m
ramp_time = 0
rounds = 1
prepare = none
END

# ---- gid=: supplementary groups ----

dd if=/dev/urandom of="$LAB/data/shared" bs=1M count=1 2>/dev/null
chown 4001:4020 "$LAB/data/shared"
chmod 660 "$LAB/data/shared"
expect 'gid=: none of the groups has the right' 3 \
	'reading: *NFS3ERR_ACCES (asked as uid 4002 gid 100 groups 20,30 from TCP port *' \
	"$SAMEDISK" probe x="$(lab_nfs_url data/shared 'uid=4002&gid=100,20,30')"
expect 'gid=: a further group has it' 0 'read-only *no*gid *100*groups *20,4020' \
	"$SAMEDISK" probe x="$(lab_nfs_url data/shared 'uid=4002&gid=100,20,4020')"
for engine in native libnfs; do
	expect "gid=: engine=$engine reads and writes by it" 0 '' "$SAMEDISK" run one.ini --destroy x=unknown-data \
		x="$(lab_nfs_url data/shared "engine=$engine")" --set x.uid=4002 --set x.gid=100,20,4020
	dd if=/dev/urandom of="$LAB/data/shared" bs=1M count=1 conv=notrunc 2>/dev/null
done

# ---- --cleanup: an inode number that comes again ----

# The file of ours is removed by somebody, and the next file gets its number. Meanwhile samedisk is stopped.
sed 's/^io_size.*/runtime = 1500ms/' one.ini >long.ini
"$SAMEDISK" run long.ini a="$(lab_nfs_url data/made)" 'b=null:?size=1m' --allow-full --cleanup >"$out" 2>"$err" &
child=$!
must lab_until 20 grep -q '^run 1 of 2 ' "$err"
kill -STOP "$child"
ino=$(stat -c %i "$LAB/data/made")
rm "$LAB/data/made"
lab_kill ganesha
must lab_restart ganesha # it has the file open
again() {
	echo mine >"$LAB/data/made" && sync -f "$LAB/data" && [ "$(stat -c %i "$LAB/data/made")" = "$ino" ] && return 0
	rm "$LAB/data/made"
	return 1
}
if lab_until 10 again; then
	kill -CONT "$child"
	wait "$child"
	same '--cleanup leaves a file that has the inode number of ours' "$(cat "$LAB/data/made" 2>/dev/null)" mine
	test_that '--cleanup says why' grep -qE 'not removed: .*(its file handle is another one|the file (that was created is gone|was removed))' "$err"
else
	kill -CONT "$child"
	wait "$child"
	skip '--cleanup leaves a file that has the inode number of ours' 'the number did not come again'
	skip '--cleanup says why' 'the number did not come again'
fi
rm -f "$LAB/data/made"

# ---- Kerberos ----

expect 'an export that wants Kerberos' 3 'sec=krb5*samedisk speaks AUTH_SYS only*' \
	"$SAMEDISK" probe x="$(lab_nfs_url krb/f)"

# ---- ports of something else, versions ----

must lab_tgt
expect 'nfsport=: where iSCSI is' 3 'NFS*this does not answer as NFS*' timeout 10 \
	"$SAMEDISK" probe x="nfs://127.0.0.1/data/f?nfsport=$LAB_ISCSI_PORT&mountport=$LAB_MOUNT_PORT"
lab_down ganesha
LAB_NFS_VERSIONS=4
must lab_ganesha data="$LAB/data"
expect 'a server with NFSv4 only' 3 'NFSv4 only*' timeout 20 \
	"$SAMEDISK" probe x="nfs://127.0.0.1/data/f?nfsport=$LAB_NFS_PORT&mountport=$LAB_NFS_PORT"

it_end
