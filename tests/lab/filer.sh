#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Brings a lab up, runs a command with ready targets in its environment, and takes the lab down again, also after Ctrl-C.
#
#   filer.sh [--size SIZE] [--dir DIR] LAB ... -- COMMAND ...
#   e.g.  filer.sh --size 2G loopback -- sh -c 'samedisk probe nfs="$NFS" iscsi="$ISCSI" fc="$BLOCK"'
#         filer.sh rtt=5ms -- sh -c 'samedisk run nfs="$NFS" iscsi="$ISCSI" --destroy iscsi'
#
# LAB is loopback (NFS, iSCSI and a loop device, all files on one file system), or the network in front of NFS and iSCSI, of
#   1g, 2x1g      one link of 1 Gbit/s, or two, with an address of the filer and an iSCSI portal on each
#   rtt=TIME      packets take TIME there and back together: 500us to 50ms; alone, the link has no limit of speed
#   loss=PERCENT  so many of the packets are lost, each way
#   rmem=SIZE     the receive buffer of the filer's TCP; the window that it offers for writes is smaller than this
# The command sees
#   NFS     URL of a file that is not there yet
#   ISCSI   URL of a LUN of SIZE (default 512M), all zeros
#   BLOCK   a block device of SIZE, all zeros (loopback only)
#   NFS_SERVERS, ISCSI_PORTALS   the addresses of the filer, and its portals, as A,B (not with loopback)
#   LAB_DIR the folder of the lab: data/ is what NFS exports, *.log are the logs of the servers
# After it, what delayed links have lost or dropped is said.
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
links=
shape=
rmem=
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
	loopback) lab=loopback ;;
	1g) links=1 ;;
	2x1g) links='1 2' ;;
	rtt=* | loss=*) shape="$shape${shape:+,}$1" ;;
	rmem=*) rmem=${1#*=} ;;
	*) usage ;;
	esac
	shift
done
[ $# -gt 0 ] || usage
network=
if [ -n "$shape" ]; then
	# The shorter the way, the more a late wake-up counts.
	case $shape in *us* | *rtt=[01]ms* | *rtt=[01].*) shape=$shape,spin ;; esac
	for link in ${links:-1}; do network="$network $shape${links:+,rate=1gbit}"; done
elif [ -n "$links$rmem" ]; then
	for link in ${links:-1}; do network="$network 984mbit"; done
fi
case $lab${network:+ network} in
loopback) objects=3 ;;
' network') objects=2 ;;
*) usage ;;
esac

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
	lab_network "$network"
	[ -z "$rmem" ] || lab_rmem "$rmem"
	lab_ganesha data="$LAB/data"
	lab_tgt
	NFS_SERVERS=$(echo "$LAB_ADDRS" | tr ' ' ,)
	ISCSI_PORTALS=$(printf "%s:$LAB_ISCSI_PORT," $LAB_ADDRS)
	ISCSI_PORTALS=${ISCSI_PORTALS%,}
	export NFS_SERVERS ISCSI_PORTALS
	# The client's side of the link.
	set -- sh "$LAB/client" "$@"
fi
lab_tgt_lun 1 "$LAB/lun.img"
NFS=$(lab_nfs_url data/samedisk.img)
ISCSI=$(lab_iscsi_url 1)
export NFS ISCSI

status=0
lab_run "$@" || status=$?
for link in "$LAB"/link*.log; do
	link=$(basename "$link" .log)
	[ ! -e "$LAB/$link.log" ] || lab_link_passed "${link#link}" | awk '{
		printf "lab: %s %s %d frames passed, %d were lost, %d found a full queue\n", $1, $2, $6, $10, $12 + $14 }' >&2
done
lab_end
exit "$status"
