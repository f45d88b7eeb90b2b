#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The contract tests over real servers: NFS-Ganesha and tgt, every engine of each protocol. TAP, passed on from the test
# program through tap.sh with one numbering.
# shellcheck shell=dash
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
it_begin

program=$builddir/tests/contract/test_contract_net
[ -x "$program" ] || it_skip_all "$program was not built"

must mkdir "$LAB/data"
must lab_ganesha data="$LAB/data"
must truncate -s 256M "$LAB/lun"
# With a second portal on the loopback interface.
LAB_ADDRS='127.0.0.1 127.0.0.2'
must lab_tgt
must lab_tgt_lun 1 "$LAB/lun"

# over PROTOCOL ENGINE URL [WORDS]: the URL has keys or not; WORDS are for the names of the tests.
over() {
	local line words
	words=${4:-}
	case $3 in *\?*) set -- "$1" "$2" "$3&engine=$2" ;; *) set -- "$1" "$2" "$3?engine=$2" ;; esac
	env CONTRACT_NFS_URL= CONTRACT_ISCSI_URL= "CONTRACT_$1_URL=$3" timeout 300 \
		sh "$srcdir/tests/tap.sh" "$program" > "$LAB/tap" 2>&1
	status=$?
	while read -r line; do
		case $line in
		"ok "*) ok "$1 $2$words: ${line##*: }" ;;
		"not ok "*) not_ok "$1 $2$words: ${line##*: }" ;;
		*) echo "# ${line#\# }" ;;
		esac
	done < "$LAB/tap"
	grep -q '^ok' "$LAB/tap" || not_ok "$1 $2$words: the contract" "no test passed, status $status"
}

over NFS native "$(lab_nfs_url data/contract)"
over NFS libnfs "$(lab_nfs_url data/contract)"
over NFS native "$(lab_nfs_url data/contract rsize=4k wsize=2k)" ', I/Os in pieces'
over NFS libnfs "$(lab_nfs_url data/contract rsize=4k wsize=2k)" ', I/Os in pieces'
over ISCSI native "$(lab_iscsi_url 1)"
portals=portals=127.0.0.1:$LAB_ISCSI_PORT,127.0.0.2:$LAB_ISCSI_PORT
over ISCSI native "$(lab_iscsi_url 1 "$portals" rr=1)" ', two paths, rr=1'
over ISCSI native "$(lab_iscsi_url 1 "$portals" sessions=3 rr=40)" ', three sessions, rr=40'
over ISCSI libiscsi "$(lab_iscsi_url 1)"
export CONTRACT_READAHEAD=yes
over NFS native "$(lab_nfs_url data/contract)" ', readahead'
over NFS libnfs "$(lab_nfs_url data/contract)" ', readahead'
over ISCSI native "$(lab_iscsi_url 1 "$portals" sessions=3 rr=40)" ', readahead, three sessions'
over ISCSI libiscsi "$(lab_iscsi_url 1)" ', readahead'
it_end
