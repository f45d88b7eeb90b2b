#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Wrong input and servers that refuse: one clear message that says what, where and what would be right, the right exit
# status, no crash, no hang, no password. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

it_begin setpriv ganesha.nfsd tgtd

# ---- the command line ----

complains 'no target' 1 'no target*nfs://*iscsi://*/dev/NAME' run
complains 'a pattern without a target' 1 'no target*nfs://' run quick
complains 'unknown command' 1 'prob: no such command*probe' prob null:
complains 'a target in place of a command' 1 'null:: no such command*samedisk run null:' null:
complains 'an empty word' 1 'empty word' run '' null:
complains 'unknown option, the nearest is named' 1 '--iodept*--iodepth\?' run --iodept 4 null:
complains 'unknown option, nothing is near' 1 'unknown option --frobnicate*--help' run --frobnicate 4 null:
complains 'unknown short option' 1 'unknown option -x' run -x null:
complains 'one dash too few' 1 '-quiet*--quiet' run -quiet null:
complains 'an option without its value at the end' 1 '--json needs a value: FILE' run null: --json
complains 'an option without its value in front of another' 1 '--json needs a value: FILE' run null: --json --quiet
complains 'a pattern key without its value' 1 '--iodepth needs a value' run null: --iodepth
complains 'unknown word of an option' 1 "--format*'xml'*table, json" run --format xml null:
complains 'a note without a key' 1 '--note*KEY=VALUE' run --note x null:
complains '--only that fits nothing lists what there is' 1 "'zz'*4k random read" run --only zz null:
complains 'unknown --reference' 1 '--reference zz*there are: null' run --reference zz null:
complains '--destroy of an unknown label' 1 '--destroy zz*no target has this label*there are: a' run a=null: \
	--destroy zz
complains '--destroy of a label that nobody wrote' 1 '--destroy null*LABEL=null:' run null: --destroy null
complains 'one label for two kinds of target' 1 'a: *one is null and one is file' run a=null: a="$LAB/w/f"
complains 'an option of another command' 1 'patterns has no option --json' patterns --json x
complains '--json into a folder that is not there' 1 '/no/such/r.json*No such file' run null: --json /no/such/r.json
complains '--json onto a folder' 1 "$LAB*directory" run null: --json "$LAB"
mkfifo "$LAB/fifo"
complains '--json onto a named pipe' 1 "$LAB/fifo: this is a named pipe" run null: --json "$LAB/fifo"
complains '--json onto a named pipe, --dry-run' 1 "$LAB/fifo: this is a named pipe" run null: --dry-run --json "$LAB/fifo"
ln -s nothing "$LAB/link"
complains '--json onto a link to nothing' 1 "$LAB/link: this is a symbolic link" run null: --json "$LAB/link"
same 'the link is there' "$(readlink "$LAB/link")" nothing
same 'nothing was left in the current folder' "$(ls -A)" ''
run "$SAMEDISK" run null: --rw randread --ramp_time 0 --runtime 50ms --rounds 3 -q --json /dev/stdout
same '--json /dev/stdout: one document, at the end' "$(grep -c '"schema":"samedisk-result' "$out")" 1

# ---- values ----

complains 'bs=0' 1 '--bs: *0*4k' run --bs 0 null:
complains 'bs=1.5k' 1 "--bs: *'1.5k'*fractions*1536" run --bs 1.5k null:
complains 'bs=1000' 1 '--bs: *1000*512' run --bs 1000 null:
complains 'size=10q' 1 "--size: *'10q'*'q'*k, m, g" run --size 10q null:
complains 'runtime=10min' 1 "--runtime: *'10min'*'min'*10m" run --runtime 10min null:
complains 'iodepth=0' 1 '--iodepth: *0*1 to 4096' run --iodepth 0 null:
complains 'iodepth=-1' 1 "--iodepth: *'-1'*1 to 4096" run --iodepth=-1 null:
complains 'iodepth=4 jobs' 1 "--iodepth: *'4 jobs'" run --iodepth '4 jobs' null:
complains 'a number beyond 64 bits' 1 '--iodepth: *too large' run --iodepth 99999999999999999999 null:
complains 'rounds=0' 1 '--rounds: *0*1000' run --rounds 0 null:
complains 'a seed that is no number' 1 "--seed: *'x'" run --seed x null:
complains 'rwmixread=101' 1 '--rwmixread: *101*100' run --rw randrw --rwmixread 101 null:
complains 'bssplit that does not make 100' 1 '--bssplit: *90*100' run --bssplit 4k/50:8k/40 null:
complains 'a pattern larger than its target' 1 "4k random read*2g*'null'*1g*--size" run --size 2g 'null:?size=1g'
complains 'buffers that do not fit into memory' 1 'buffers*memory' run --rw randread --bs 64m --iodepth 4096 \
	--numjobs 256 --size 64m 'null:?size=64m'

# ---- keys ----

complains 'a key of a target among the pattern keys' 1 '--lat is an access key*--set LABEL.lat=' run --lat 4 null:
complains 'a pattern key behind a URL' 1 'null:\?iodepth=4: iodepth belongs to the pattern*--iodepth' run \
	'null:?iodepth=4'
complains 'a pattern key in --set' 1 '--set*iodepth belongs to the pattern*--iodepth' run --set iodepth=4 null:
complains 'a key of another kind of target' 1 'direct*is a key of block, file targets*null target' run 'null:?direct=no'
complains 'an unknown key, the nearest is named' 1 'unknown key latt*lat\?' run 'null:?latt=4'
complains 'the same in --set' 1 '--set*unknown key lats*lat\?' run --set null.lats=4 null:
complains '--set for an unknown label' 1 '--set*label nul*there are: null' run --set nul.lat=4 null:
complains '--set without a value' 1 '--set lat*KEY=VALUE' run --set lat null:
complains 'a bad value of an access key' 1 "timeout*'x'*" probe 'nfs://h/e/f?timeout=x'

# ---- URLs ----

complains 'port 99999' 1 'nfs://h:99999/e/f*port*65535' probe nfs://h:99999/e/f
complains 'port 0' 1 'iscsi://h:0/*port*65535' probe iscsi://h:0/iqn.2026-01.org.samedisk:x/1
complains 'empty host' 1 'nfs:///e/f*host*empty*nfs://HOST' probe nfs:///e/f
complains 'bad percent-encoding' 1 'nfs://h/e/%zz*percent*%25' probe nfs://h/e/%zz
complains 'a NUL in a URL' 1 'nfs://h/e/%00*' probe nfs://h/e/%00
complains 'unknown scheme' 1 'smb://h/e*no such kind of target*nfs://HOST' probe smb://h/e
complains 'one slash too few' 1 'nfs:/h/e/f*nfs://HOST' probe nfs:/h/e/f
complains 'the form of mount(8)' 1 'h:/e/f*nfs://h/e/f' probe h:/e/f
complains 'a bare IQN' 1 'iqn.2026-01.org.samedisk:x*iscsi://HOST/IQN/LUN' probe iqn.2026-01.org.samedisk:x/1
complains 'a key without a value' 1 "nfs://h/e/f\?uid: key*'uid'*uid=VALUE" probe 'nfs://h/e/f?uid'
complains 'a key twice' 1 "*uid*" probe 'nfs://h/e/f?uid=1&uid=2'
complains 'an unknown key in a URL' 1 'timeot*timeout\?' probe 'nfs://h/e/f?timeot=3'
complains 'a LUN that is no number' 1 'LUN is a number' probe iscsi://h/iqn.2026-01.org.samedisk:x/one
complains 'an iSCSI URL without a LUN' 1 'iscsi://HOST*/IQN/LUN' probe iscsi://h/iqn.2026-01.org.samedisk:x
complains 'a target name that is none' 1 'iqn., eui. or naa.' probe iscsi://h/target/1
complains 'an NFS path with ..' 1 '..' probe nfs://h/e/../f
complains 'a label with a letter that it cannot have' 1 'a+b=null:*label' run a+b=null:

# ---- pattern files ----

head -c 3000 /dev/urandom >bin.ini
: >empty.ini
mkdir dir.ini
printf '[a]\nbs = %010000d\n' 1 >long.ini
printf '[global]\nbs=4k\n' >global.ini
printf '[a]\n\nblocksze = 4k\n' >near.ini
printf '[a]\nfrobnicate = 4k\n' >unknown.ini
printf '[a]\nrcvbuf = 1m\n' >scope.ini
printf '[a]\nbs = 1.5k\n' >value.ini
printf 'bs = 4k\n' >nosection.ini
printf '[a\nbs = 4k\n' >bracket.ini
printf '[a]\nbs=4k\n[a]\nbs=8k\n' >twice.ini
printf '[a]\nbs=4k\n' >keys.fio
complains 'a pattern file that is not there' 1 'nosuch.ini: *No such file' run nosuch.ini null:
complains 'an unknown pattern name, the nearest is named' 1 "'qick'*quick*vmtn" run qick null:
complains 'an unknown pattern name that is near nothing' 1 "'frobnicate'*quick*vmtn" run frobnicate null:
complains '-p of a file that is not there' 1 'x: *No such file' run -p x null:
complains 'a binary pattern file' 1 'bin.ini:*not a text file' run bin.ini null:
complains 'an empty pattern file' 1 'empty.ini: no pattern' run empty.ini null:
complains 'a pattern file with [global] only' 1 'global.ini: no pattern' run global.ini null:
complains 'a folder as pattern file' 1 'dir.ini: *folder' run dir.ini null:
complains 'a device as pattern file' 1 '/dev/zero: *device' run -p /dev/zero null:
complains 'a line of 10000 characters' 1 'long.ini:2: *8192' run long.ini null:
complains 'an unknown key, with its line and the nearest' 1 "near.ini:3: *'blocksze'*blocksize" run near.ini null:
complains 'an unknown key that is near nothing' 1 "unknown.ini:2: *'frobnicate'*samedisk-patterns" run unknown.ini \
	null:
complains 'an access key in a pattern file' 1 'scope.ini:2: rcvbuf belongs to a target*--set' run scope.ini null:
complains 'a bad value, with its line' 1 "value.ini:2: bs: '1.5k'*1536" run value.ini null:
complains 'a key before any section' 1 'nosection.ini:1: ' run nosection.ini null:
complains 'a section without its bracket' 1 "bracket.ini:1: *']'" run bracket.ini null:
complains 'the same section twice' 1 'twice.ini:3: *\[a\]' run twice.ini null:
complains 'a fio job file' 1 'keys.fio: *fio' run keys.fio null:

# ---- local paths ----

complains 'a mistyped device' 3 '/dev/no-such-disk: no such device' probe /dev/no-such-disk
complains 'a character device' 3 '/dev/zero*character device*block device' probe /dev/zero
complains 'a folder in /dev' 3 '/dev is a folder*block device' probe /dev
complains 'a folder' 3 "$LAB*folder" probe "$LAB"
complains 'a folder with a slash behind' 3 'folder' probe "$LAB/"
complains 'a path below a folder that is not there' 3 '/no/such/folder/f: *No such file' probe /no/such/folder/f
complains 'a path below a file' 3 "$LAB/w/keys.fio/f: *Not a directory" probe "$LAB/w/keys.fio/f"
complains 'a file of the kernel' 3 '/proc/kcore*/proc' probe /proc/kcore
mkfifo pipe
complains 'a pipe' 3 "$LAB/w/pipe: is a pipe" probe "$LAB/w/pipe"
mknod node b 7 0
complains 'a block device outside of /dev' 3 "$LAB/w/node: is a block device outside of /dev" probe "$LAB/w/node"
truncate -s 1M closed
chmod 0 closed
SAVED=$SAMEDISK
cat >powerless <<END
#!/bin/sh
exec setpriv --bounding-set=-dac_override,-dac_read_search,-sys_admin --inh-caps=-all "$SAVED" "\$@"
END
chmod +x powerless
SAMEDISK=$LAB/w/powerless
complains 'a file without the right to read it' 3 "$LAB/w/closed: *Permission denied" probe "$LAB/w/closed"
truncate -s 4M "$LAB/disk.img"
loop=$(lab_loop "$LAB/disk.img") || must false
mknod -m 0 closed.dev b 7 "${loop#/dev/loop}"
SAMEDISK=$LAB/w/closed.sh
cat >"$SAMEDISK" <<END
#!/bin/sh
mount --make-rprivate / 2>/dev/null # not in a chroot, which has private mounts already
mount --bind "$LAB/w/closed.dev" "$loop" && exec "$LAB/w/powerless" "\$@"
END
chmod +x "$SAMEDISK"
mv closed.sh closed.inner
printf '#!/bin/sh\nexec unshare --mount --propagation unchanged sh "%s" "$@"\n' "$LAB/w/closed.inner" >closed.sh
chmod +x closed.sh
complains 'a device without the right to read it' 3 "$loop: *Permission denied" probe "$loop"
SAMEDISK=$SAVED

# ---- NFS ----

mkdir "$LAB/data" "$LAB/data/sub" "$LAB/ro" "$LAB/sq" "$LAB/sq/closed" "$LAB/small"
chmod 755 "$LAB/sq"
chmod 700 "$LAB/sq/closed"
truncate -s 1M "$LAB/ro/f" "$LAB/sq/secret"
chmod 600 "$LAB/sq/secret"
must lab_mount_ram "$LAB/small" 16M
must lab_ganesha data="$LAB/data" ro="$LAB/ro:ro" sq="$LAB/sq:root_squash" small="$LAB/small"
must lab_tgt
truncate -s 16M "$LAB/lun"
must lab_tgt_lun 1 "$LAB/lun"
closed=$(lab_port)
write='--size 1m --rw write --prepare none --io_size 1m --ramp_time 0 --rounds 1 --only 1m*read'

complains 'an export that is not there; the others are listed' 3 'no export*/nosuch/f*/data, /ro' probe \
	"$(lab_nfs_url nosuch/f)"
complains 'export= that the path does not begin with' 1 'export=/other*/data/f' probe \
	"$(lab_nfs_url data/f export=/other)"
complains 'the export itself' 3 '/data is the export itself' probe "$(lab_nfs_url data)"
complains 'a folder on the server' 3 '/data/sub is a directory' probe "$(lab_nfs_url data/sub)"
complains 'a path below a folder that is not there' 3 'nodir in export /data*not exist' probe \
	"$(lab_nfs_url data/nodir/f)"
complains 'NFS: the port is closed' 3 "127.0.0.1*NFS*$closed*refused" probe \
	"nfs://127.0.0.1/data/f?nfsport=$closed&mountport=$LAB_MOUNT_PORT"
complains 'MOUNT: the port is closed' 3 "127.0.0.1*MOUNT*$closed*refused" probe \
	"nfs://127.0.0.1/data/f?nfsport=$LAB_NFS_PORT&mountport=$closed"
complains 'an unknown host' 3 'host no-such-host.invalid not found' probe "nfs://no-such-host.invalid/data/f?nfsport=1&mountport=1"
# shellcheck disable=SC2086
{
	complains 'a read-only export: a new file' 1 '/ro/new*read-only' run $write --allow-full n="$(lab_nfs_url ro/new)"
	complains 'a read-only export: a file that is there' 1 "'n'*read-only*--read-only" run $write \
		n="$(lab_nfs_url ro/f)" --destroy n
	complains 'a folder that is not ours: no right to look' 3 '/sq/closed/f*NFS3ERR_ACCES*uid 0*root_squash' \
		run $write --allow-full n="$(lab_nfs_url sq/closed/f)"
	complains 'a folder that is not ours: no right to create' 1 '/sq/new*uid 0' run $write --allow-full \
		n="$(lab_nfs_url sq/new)"
	complains 'a file that is not ours' 3 'reading*/sq/secret*NFS3ERR_ACCES*uid 0*root_squash' probe \
		"$(lab_nfs_url sq/secret)"
	complains 'no space on the server' 1 'n: *32 MiB*KiB free' run $write --allow-full --size 32m \
		n="$(lab_nfs_url small/f)"
	complains 'too little would remain' 1 '1 MiB*10 GiB must remain*--allow-full' run $write \
		n="$(lab_nfs_url small/f)"
	complains 'a reading plan on a file that is not there' 1 '/data/none*does not exist' \
		run $write --rw read n="$(lab_nfs_url data/none)"
	complains 'a file that is too small' 1 "'n'*1m*--size" run $write --rw read --size 2m n="$(lab_nfs_url ro/f)"
}
same 'no file was left on the server' \
	"$(find "$LAB/data" "$LAB/ro" "$LAB/sq" "$LAB/small" -type f ! -name f ! -name secret)" ''

# The file is there, and then its blocks are not, and somebody else has the space: a write has no place to go.
run "$SAMEDISK" run --size 4m --rw randwrite --bs 64k --iodepth 4 --io_size 4m --ramp_time 0 --rounds 1 --only \
	'4k*read' \
	--allow-full n="$(lab_nfs_url small/own)"
fallocate --punch-hole --offset 64k --length 4032k "$LAB/small/own" # its first block holds who writes to it
lab_fill "$LAB/small/rest"
truncate -s 4M "$LAB/small/other"
expect 'the server runs out of space during the run' 2 'server is full*NOSPC' "$SAMEDISK" run --size 4m --rw \
	randwrite --prepare none --bs 64k \
	--iodepth 4 --ramp_time 0 --runtime 1 --rounds 1 --only '4k*read' --allow-full --destroy n \
		n="$(lab_nfs_url small/own)" --json full.json

# ---- iSCSI ----

portal=127.0.0.1:$LAB_ISCSI_PORT
complains 'an unknown IQN; those that there are are listed' 3 \
	"$portal*iqn.2026-01.org.samedisk:wrong*initiator*offers*$LAB_IQN" \
	probe "iscsi://$portal/iqn.2026-01.org.samedisk:wrong/1"
complains 'a LUN that is not there; those that there are are listed' 3 "$portal*LUN 7*nitiator*0, 1" probe \
	"iscsi://$portal/$LAB_IQN/7"
complains 'a LUN that is no disk' 3 'LUN 0: it is not a disk' probe "iscsi://$portal/$LAB_IQN/0"
complains 'iSCSI: the port is closed' 3 "127.0.0.1:$closed*refused" probe "iscsi://127.0.0.1:$closed/$LAB_IQN/1"
complains 'iSCSI: an unknown host' 3 'host no-such-host.invalid not found' probe "iscsi://no-such-host.invalid/$LAB_IQN/1"
complains 'iSCSI: an unknown host, by the library' 3 'host no-such-host.invalid not found' probe \
	"iscsi://no-such-host.invalid/$LAB_IQN/1?engine=libiscsi"
complains 'a pattern larger than the LUN' 1 "'iscsi'*16m*--size" run --size 20m "iscsi://$portal/$LAB_IQN/1"

it_secret=Geheim12345678
wrong_secret=Falsch12345678
must lab_tgt_chap anna "$it_secret"
complains 'CHAP is missing' 3 "$portal*without CHAP*CHAP user and password" probe "iscsi://$portal/$LAB_IQN/1"
complains 'CHAP: the wrong user' 3 "$portal*refuses these credentials" probe \
	"iscsi://bert%$it_secret@$portal/$LAB_IQN/1"
complains 'CHAP: a user without a password' 1 'has no password*password_file' probe "iscsi://anna@$portal/$LAB_IQN/1"
complains 'CHAP: a password file that is not there' 1 '/no/such: *No such file' probe \
	"iscsi://anna@$portal/$LAB_IQN/1?password_file=/no/such"
complains 'a wrong URL with a password in it' 1 'port' probe "iscsi://anna%$it_secret@127.0.0.1:99999/$LAB_IQN/1"
complains 'a wrong key beside a password' 1 'usr' probe "iscsi://anna%$it_secret@$portal/$LAB_IQN/1?usr=x"
complains 'the closed port with a password' 3 'refused' probe "iscsi://anna%$it_secret@127.0.0.1:$closed/$LAB_IQN/1"
expect 'CHAP: the right password, and a warning about it' 0 'warning: a password on the command line*chap*yes' \
	"$SAMEDISK" probe "iscsi://anna%$it_secret@$portal/$LAB_IQN/1"
printf '%s\n' "$it_secret" >password
expect 'CHAP: the right password from a file' 0 'chap*yes' "$SAMEDISK" probe \
	"iscsi://anna@$portal/$LAB_IQN/1?password_file=$LAB/w/password"
expect 'CHAP: the right password from the environment' 0 'chap*yes' env SAMEDISK_CHAP_USER=anna \
	SAMEDISK_CHAP_PASSWORD="$it_secret" \
	"$SAMEDISK" probe "iscsi://$portal/$LAB_IQN/1"
expect 'no password in the result' 0 '' "$SAMEDISK" run --size 1m --rw read --io_size 1m --ramp_time 0 --rounds 1 \
	--only '1m*read' \
	--format json "iscsi://anna%$it_secret@$portal/$LAB_IQN/1"
it_secret=$wrong_secret
complains 'CHAP: the wrong password' 3 "$portal*refuses these credentials*CHAP user and password" probe \
	"iscsi://anna%$it_secret@$portal/$LAB_IQN/1"

# ---- servers that do not answer ----

for how in silent close noise; do
	must lab_start "$how" python3 "$srcdir/tests/integration/check.py" serve "$how" "$LAB/$how.port"
	must lab_up "$how" 5 test -s "$LAB/$how.port"
	read -r port <"$LAB/$how.port"
	complains "NFS: a server that does: $how" 3 "127.0.0.1" probe \
		"nfs://127.0.0.1/data/f?nfsport=$port&mountport=$port&timeout=1s"
	complains "iSCSI: a server that does: $how" 3 "127.0.0.1:$port" probe \
		"iscsi://127.0.0.1:$port/$LAB_IQN/1?timeout=1s"
done
read -r port <"$LAB/silent.port"
complains 'NFS: no answer, and the key that says how long' 3 'no answer*timeout=1s' probe \
	"nfs://127.0.0.1/data/f?nfsport=$port&mountport=$port&timeout=1s"
complains 'iSCSI: no answer, and the key that says how long' 3 'no answer*timeout=' probe \
	"iscsi://127.0.0.1:$port/$LAB_IQN/1?timeout=1s"
lab_stop ganesha
complains 'NFS: a server that hangs' 3 'no answer*timeout=' probe "$(lab_nfs_url data/f timeout=1s)"
lab_cont ganesha

# The password is gone from what others can see (ps) while the program waits for the server.
it_secret=Offen123456789
"$SAMEDISK" probe "iscsi://anna%$it_secret@127.0.0.1:$port/$LAB_IQN/1?timeout=2s" >"$out" 2>"$err" &
child=$!
seen() { tr '\0' ' ' <"/proc/$child/cmdline"; }
overwritten() { seen | grep -q 'anna%xxx'; }
if lab_until 2 overwritten && ! seen | grep -qF "$it_secret"; then
	ok 'no password in the list of processes'
else
	not_ok 'no password in the list of processes' "$(seen)"
fi
wait "$child"

# Several targets, one of which cannot be opened.
it_secret=
complains 'one target of two cannot be opened' 3 'b: *no such device' run quick a=null: b=/dev/no-such-disk
expect '--keep-going goes on without it, and says so in the status' 3 'left out: b: *no such device' "$SAMEDISK" \
	run --size 1m --rw read \
	--io_size 1m --ramp_time 0 --rounds 1 --only '1m*read' a=null: b=/dev/no-such-disk --keep-going
it_end
