#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Brings a lab up, runs a command with ready targets in its environment, and takes the lab down again, also after Ctrl-C.
#
#   filer.sh [--size SIZE] [--dir DIR] LAB -- COMMAND ...
#   e.g.  filer.sh --size 2G loopback -- sh -c 'samedisk probe nfs="$NFS" iscsi="$ISCSI" fc="$BLOCK"'
#
# LAB is loopback (NFS, iSCSI and a loop device, all files on one file system) or 1g (NFS and iSCSI behind one link of
# 1 Gbit/s). The command sees
#   NFS     URL of a file that is not there yet
#   ISCSI   URL of a LUN of SIZE (default 512M), all zeros
#   BLOCK   a block device of SIZE, all zeros (loopback only)
#   LAB_DIR the folder of the lab: data/ is what NFS exports, *.log are the logs of the servers
# The lab is made in DIR (default /var/tmp, or $TMPDIR). Needs root. Exit status: the command's; 1 when the lab failed.
# shellcheck shell=dash
set -eu

LAB_HOME=$(cd "$(dirname "$0")" && pwd -P)
# shellcheck disable=SC1091
{
	. "$LAB_HOME/servers.sh"
	. "$LAB_HOME/link.sh"
}

usage() {
	sed -n '/^# shellcheck/q; /^#!/d; /SPDX/d; s/^# \{0,1\}//p' "$0" >&2
	exit 1
}

size=512M
dir=
lab=
while [ $# -gt 0 ]; do
	case $1 in
	--)
		shift
		break
		;;
	--size=*) size=${1#*=} ;;
	--dir=*) dir=${1#*=} ;;
	--size | --dir)
		[ $# -ge 2 ] || usage
		case $1 in --size) size=$2 ;; *) dir=$2 ;; esac
		shift
		;;
	-*) usage ;;
	*)
		[ -z "$lab" ] || usage
		lab=$1
		;;
	esac
	shift
done
case $lab in
loopback) objects=3 ;;
1g) objects=2 ;;
*) usage ;;
esac
[ $# -gt 0 ] || usage

lab_begin ${dir:+"$dir"}
mkdir "$LAB/data"
export LAB_DIR="$LAB"

truncate -s "$size" "$LAB/lun.img" || lab_fail "--size takes a number with K, M, G or nothing after it, not '$size'"
# The files are sparse now; a full disk in the middle of a measurement looks like a slow server.
need=$((($(stat -c %s "$LAB/lun.img") * objects >> 10) + 65536))
free=$(df -Pk "$LAB" | awk 'NR == 2 { print $4 }')
[ "$free" -ge "$need" ] ||
	lab_fail "$LAB has $((free / 1024)) MiB free, and $objects objects of $size need $((need / 1024)) MiB; see --size and --dir"

if [ "$lab" = loopback ]; then
	lab_ganesha data="$LAB/data"
	lab_tgt
	truncate -s "$size" "$LAB/block.img"
	BLOCK=$(lab_loop "$LAB/block.img")
	export BLOCK
else
	lab_filer_1g data="$LAB/data"
	# The client's side of the link.
	set -- sh "$LAB/client" "$@"
fi
lab_tgt_lun 1 "$LAB/lun.img"
NFS=$(lab_nfs_url data/samedisk.img)
ISCSI=$(lab_iscsi_url 1)
export NFS ISCSI

status=0
lab_run "$@" || status=$?
lab_end
exit "$status"
