#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# iSCSI's control plane against targets that are odd, strict or hostile (tests/lab/odd_iscsid.py): at login, at the first
# command, in discovery. One clear message, within timeout=, no crash. And what has to work: CHAP with every algorithm,
# redirections, LUNs in every form. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

it_begin tgtd

iqn=iqn.2026-01.org.samedisk:odd
port=

# odd NAME KEY=VALUE ...: a target; sets port
odd() {
	local name
	name=$1
	shift
	rm -f "$LAB/$name.port"
	must lab_start "$name" python3 "$srcdir/tests/lab/odd_iscsid.py" "$LAB/$name.port" "$@"
	must lab_up "$name" 5 test -s "$LAB/$name.port"
	read -r port <"$LAB/$name.port"
}

# refused NAME WORDS URL: a run that would write
refused() {
	expect "$1" 1 "$2" "$SAMEDISK" run --rw write --size 1m --io_size 1m --ramp_time 0 --rounds 1 --only '1m*write' t="$3" \
		--destroy t
}

# bounded NAME SECONDS WORDS URL: it fails with WORDS, after so many seconds at most
bounded() {
	local begin took
	begin=$(date +%s%N)
	complains "$1" 3 "$3" probe "$4"
	took=$((($(date +%s%N) - begin) / 1000000))
	if [ "$took" -le $(($2 * 1000)) ]; then ok "$1: in time"; else not_ok "$1: in time" "$took ms, not $2 s"; fi
}

# ---- hostile: engine=native, which is the default ----

for what in data-in r2t garbage oversize wrong-itt close; do
	odd "l-$what" at=login do="$what"
	bounded "login: $what" 2 "127.0.0.1:$port*login" "iscsi://127.0.0.1:$port/$iqn/0?timeout=5s"
done
odd l-keys at=login do=keys
bounded 'login: 64 KiB of keys' 2 'too long' "iscsi://127.0.0.1:$port/$iqn/0?timeout=5s"
for what in continue never-done; do
	odd "l-$what" at=login do="$what"
	bounded "login: $what" 2 'does not come to an end' "iscsi://127.0.0.1:$port/$iqn/0?timeout=5s"
done
odd l-reject at=login do=reject
bounded 'login: reject' 2 'rejects*reason 04h' "iscsi://127.0.0.1:$port/$iqn/0?timeout=5s"
odd l-async at=login do=async
bounded 'login: async' 2 'ends the connection' "iscsi://127.0.0.1:$port/$iqn/0?timeout=5s"
for what in trickle silent; do
	odd "l-$what" at=login do="$what"
	bounded "login: $what" 4 'no answer*timeout=*is this an iSCSI portal?' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"
done
odd l-web at=login do=web
bounded 'login: a web server' 2 'no login response*is this an iSCSI portal?' "iscsi://127.0.0.1:$port/$iqn/0?timeout=5s"
for what in data-beyond r2t garbage oversize wrong-itt reject async close; do
	odd "c-$what" at=command do="$what"
	bounded "command: $what" 2 "127.0.0.1:$port*command" "iscsi://127.0.0.1:$port/$iqn/0?timeout=5s"
done
for what in trickle silent nop-flood nop-flood-asking; do
	odd "c-$what" at=command do="$what"
	bounded "command: $what" 4 'no answer*timeout=' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"
done
odd c-busy at=command do=busy
bounded 'command: busy for ever' 2 'BUSY' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"
odd c-ua at=command do=unit-attention
bounded 'command: unit attentions for ever' 2 'UNIT ATTENTION' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"

# ---- hostile: libiscsi, which can only be ended from outside ----

for what in trickle silent nop-flood; do
	odd "c-$what" at=command do="$what"
	bounded "libiscsi, command: $what" 5 'no answer*timeout=' \
		"iscsi://127.0.0.1:$port/$iqn/0?timeout=1s&engine=libiscsi"
done
odd l-trickle at=login do=trickle
bounded 'libiscsi, login: trickle' 5 'no answer*timeout=' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s&engine=libiscsi"

for what in data-in r2t; do
	odd "l-$what" at=login do="$what"
	bounded "libiscsi, login: $what" 2 'no login response' "iscsi://127.0.0.1:$port/$iqn/0?engine=libiscsi"
done

# ---- hostile: under load ----

for what in trickle nop-flood; do
	odd "r-$what" at=read do="$what"
	expect "read: $what" 3 'timeout=' "$SAMEDISK" run --rw read --size 1m --io_size 1m --ramp_time 0 --prepare none \
		--rounds 1 --only '1m*read' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s&ping=no"
done

# A flood that is one call of the library: what it does not answer must not last.
for engine in native libiscsi; do
	odd r-flood at=read do=nop-flood
	begin=$(date +%s%N)
	expect "read: nop-flood, $engine" 3 'timeout=' "$SAMEDISK" run --rw read --size 1m --io_size 1m --ramp_time 0 \
		--prepare none --rounds 1 --only '1m*read' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s&ping=no&engine=$engine"
	took=$((($(date +%s%N) - begin) / 1000000))
	test_that "read: nop-flood, $engine: in time ($took ms)" [ "$took" -le 8000 ]
done

# ---- strict ----

for how in reject value status; do
	odd digest digest=both answer="$how"
	complains "digests are required: $how" 3 'require*header_digest=crc32c*data_digest=crc32c' probe \
		"iscsi://127.0.0.1:$port/$iqn/0"
	odd digest digest=data answer="$how"
	complains "data digests are required: $how" 3 'require*data_digest=crc32c' probe "iscsi://127.0.0.1:$port/$iqn/0"
done

# ---- CHAP ----

it_secret=Geheim12345678
printf '%s\n' "$it_secret" >own
printf 'Anders12345678\n' >theirs
keys="password_file=$LAB/w/own&target_user=otto&target_password_file=$LAB/w/theirs"
for algorithm in '5 MD5' '6 SHA-1' '7 SHA-256' '8 SHA3-256'; do
	odd chap chap=anna:$it_secret mutual=otto:Anders12345678 algorithm="${algorithm% *}"
	expect "CHAP with ${algorithm#* }" 0 "auth_method*CHAP ${algorithm#* }" "$SAMEDISK" probe \
		"iscsi://anna@127.0.0.1:$port/$iqn/0?password_file=$LAB/w/own"
	expect "mutual CHAP with ${algorithm#* }" 0 "auth_method*mutual ${algorithm#* }" "$SAMEDISK" probe \
		"iscsi://anna@127.0.0.1:$port/$iqn/0?$keys"
done
complains 'CHAP is wanted' 3 'CHAP*user= and password_file=' probe "iscsi://127.0.0.1:$port/$iqn/0"
odd chap chap=anna:$it_secret mutual=otto:Falsch12345678
complains 'mutual CHAP: the target is another one' 3 'not who it should be' probe \
	"iscsi://anna@127.0.0.1:$port/$iqn/0?$keys"
complains 'mutual CHAP: one password for both' 1 'must differ' probe \
	"iscsi://anna@127.0.0.1:$port/$iqn/0?password_file=$LAB/w/own&target_user=otto&target_password_file=$LAB/w/own"

# ---- redirections ----

odd behind chap=anna:$it_secret mutual=otto:Anders12345678
behind=$port
for before in auth chap; do
	odd front chap=anna:$it_secret mutual=otto:Anders12345678 redirect="127.0.0.1:$behind,1" before=$before
	expect "redirected, before=$before" 0 "portal_address*127.0.0.1:$behind" "$SAMEDISK" probe \
		"iscsi://anna@127.0.0.1:$port/$iqn/0?$keys"
	same "a new challenge, before=$before" "$(cat "$LAB/front.log" "$LAB/behind.log")" ''
done
closed=$(lab_port)
odd front redirect="127.0.0.1:$closed"
complains 'redirected to where nobody is' 3 "redirected to portal 127.0.0.1:$closed*refused" probe \
	"iscsi://127.0.0.1:$port/$iqn/0"
odd front redirect='%1b[2Jx:99999'
complains 'redirected to nonsense' 3 'portal' probe "iscsi://127.0.0.1:$port/$iqn/0"
odd second redirect="127.0.0.1:$port"
complains 'redirected twice to nonsense' 3 'portal' probe "iscsi://127.0.0.1:$port/$iqn/0"

# ---- LUNs ----

odd luns luns=0000000000000000,012c000000000000,4191000000000000,d20493e000000000
expect 'LUN 300, listed in peripheral addressing' 0 'lun_address *012c000000000000h' "$SAMEDISK" probe \
	"iscsi://127.0.0.1:$port/$iqn/300"
expect 'LUN 401, listed in flat addressing' 0 'lun_address *4191000000000000h' "$SAMEDISK" probe \
	"iscsi://127.0.0.1:$port/$iqn/401"
expect 'LUN 300000, in extended addressing' 0 'lun_address *d20493e000000000h' "$SAMEDISK" probe \
	"iscsi://127.0.0.1:$port/$iqn/300000"
expect 'LUN 300, with libiscsi' 0 'lun_address *012c000000000000h' "$SAMEDISK" probe \
	"iscsi://127.0.0.1:$port/$iqn/300?engine=libiscsi"
expect 'LUN 300 under load' 0 '' "$SAMEDISK" run --rw read --size 1m --io_size 1m --ramp_time 0 --rounds 1 --only \
	'1m*read' "iscsi://127.0.0.1:$port/$iqn/300"
complains 'another LUN: those that there are are listed' 3 'no such LUN 7*0, 300, 401, 300000' probe \
	"iscsi://127.0.0.1:$port/$iqn/7"
odd luns luns=412c000000000000,012c000000000000
expect 'LUN 300, listed in two forms' 0 '2 forms*012c000000000000h' "$SAMEDISK" probe "iscsi://127.0.0.1:$port/$iqn/300"

# ---- its size ----

odd size size=16 then=32
expect 'a LUN that grew: its size at open is kept' 0 'grown' "$SAMEDISK" probe "iscsi://127.0.0.1:$port/$iqn/0"
odd size size=16 then=32 after=2
expect 'the same, seen by a worker' 0 'has grown by 16.0 MiB' "$SAMEDISK" run --rw read --size 1m --io_size 1m --ramp_time 0 \
	--rounds 1 --only '1m*read' "iscsi://127.0.0.1:$port/$iqn/0"
odd size size=32 then=16
complains 'a LUN that shrank' 3 'shrunk*32*16' probe "iscsi://127.0.0.1:$port/$iqn/0"

# ---- who else uses it: no answer is not "nobody" ----

for what in busy:BUSY 'attention:UNIT ATTENTION 29/00' 'hardware:HARDWARE ERROR 44/00' 'aborted:ABORTED COMMAND 47/00' \
	'empty:0 bytes' 'short:3 bytes'; do
	odd reserve on=5e say="${what%%:*}"
	refused "PERSISTENT RESERVE IN: ${what%%:*}" "in use: whether others*could not be found out*${what#*:}" \
		"iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"
done
expect 'the same, for one who reads' 0 'persistent_reservations *not answered*3 bytes' "$SAMEDISK" probe \
	"iscsi://127.0.0.1:$port/$iqn/0"
odd reserve on=5e say=conflict
refused 'PERSISTENT RESERVE IN: conflict' 'in use: it is reserved by another initiator' \
	"iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"
for what in illegal field; do
	odd reserve on=5e say=$what
	expect "PERSISTENT RESERVE IN: there is no such thing ($what)" 0 'persistent_reservations *not supported' \
		"$SAMEDISK" probe "iscsi://127.0.0.1:$port/$iqn/0"
done

# ---- who it is: no answer is not "no name" ----

for page in 1200 1283 1200,1280,1283,12b0,12b1,12b2; do
	odd names on=$page say=busy
	bounded "VPD $page: BUSY" 2 'does not say who it is now*BUSY' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"
done
for what in hardware empty aborted; do
	odd names on=1283 say=$what
	bounded "VPD 83: $what" 2 'does not say who it is now: VPD page 83h' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"
done
odd names on=1200 say=field
expect 'no VPD pages at all' 0 'has no name' "$SAMEDISK" probe "iscsi://127.0.0.1:$port/$iqn/0"
odd size on=9e say=busy
bounded 'READ CAPACITY: BUSY' 2 'READ CAPACITY: BUSY' "iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"

# ---- what may stay unknown, within one timeout= ----

odd cache on=5a,1a say=busy
expect 'MODE SENSE: BUSY' 0 'could not be found out (MODE SENSE: BUSY)*taken to have one' "$SAMEDISK" probe \
	"iscsi://127.0.0.1:$port/$iqn/0?timeout=1s"
odd cache cache=yes
expect 'a flush that was not tried' 0 'SYNCHRONIZE CACHE(16), not tried' "$SAMEDISK" probe "iscsi://127.0.0.1:$port/$iqn/0"
odd late on=1283 say=busy times=5
expect 'put off while it is opened: said' 0 'answered 5 times*the last: BUSY' "$SAMEDISK" probe \
	"iscsi://127.0.0.1:$port/$iqn/0"

# ---- discovery, for the error of a name that is wrong ----

odd names refuse=0203 names='iqn.a:one,%1b[2Jtwo,iqn.c:three'
complains 'a wrong name: those that there are, and nothing raw' 3 'iqn.a:one, *\[2Jtwo, iqn.c:three' probe \
	"iscsi://127.0.0.1:$port/$iqn/0"
same 'no escape sequence' "$(tr -d '[:print:]\n' <"$err" | od -c | sed 1q)" 0000000
odd names refuse=0301 names=$iqn
complains 'a name that is there and does not let anybody in' 3 "0301*$iqn is there*enabled" probe \
	"iscsi://127.0.0.1:$port/$iqn/0"
odd names refuse=0203 at=discovery do=endless
bounded 'discovery: endless' 3 "no target $iqn*offers" "iscsi://127.0.0.1:$port/$iqn/0?timeout=5s"
odd names refuse=0202
complains 'an initiator that is not admitted' 3 'does not admit initiator iqn.2026-01.org.samedisk:x*ACL*initiator=' probe \
	"iscsi://127.0.0.1:$port/$iqn/0?initiator=iqn.2026-01.org.samedisk:x"

# ---- tgt ----

must lab_tgt
truncate -s 16M "$LAB/lun"
must lab_tgt_lun 1 "$LAB/lun"
must lab_tgt_lun 300 "$LAB/lun"
expect 'tgt: LUN 300' 0 'lun_address *412c000000000000h' "$SAMEDISK" probe "$(lab_iscsi_url 300)"
it_end
