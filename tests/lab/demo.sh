#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The first look at samedisk, without a filer: installs what is missing, builds it in build-demo/, starts an NFS server and
# an iSCSI target of its own on this machine, lets a loop device stand for FC, compares the three, and takes everything
# down again, also after Ctrl-C. Needs root on Debian 12 or 13, about eight minutes, and disk space for three files.
#
#   demo.sh [--size SIZE] [--time TIME] [--json DIR] [--dir DIR]
#
#   --size   of each of the three files; default 512M
#   --time   for the comparison with the pattern file quick, which chooses the rounds by it; default 3m, and one round
#            takes about 75 s
#   --json   keeps the results: DIR/quick.json, DIR/vmtn.json and DIR/durable.json
#   --dir    where the files are made; default /var/tmp, or $TMPDIR
# With SAMEDISK=PROGRAM in the environment that program is used, and nothing is built.
# shellcheck shell=dash
set -eu

home=$(cd "$(dirname "$0")" && pwd -P)
top=$(cd "$home/../.." && pwd -P)

usage() {
	sed -n '/^# shellcheck/q; /^#!/d; /SPDX/d; s/^# \{0,1\}//p' "$0" >&2
	exit 1
}

build() {
	mkdir -p "$top/build-demo"
	echo "building samedisk in build-demo/ (a minute or so; the log is build-demo/build.log)"
	(
		cd "$top/build-demo"
		[ "$top/configure" -nt "$top/configure.ac" ] || "$top/autogen.sh"
		[ -f Makefile ] || ../configure
		make -s -j"$(nproc)"
	) >"$top/build-demo/build.log" 2>&1 || {
		tail -n 40 "$top/build-demo/build.log" >&2
		echo "demo.sh: samedisk was not built; the end of build-demo/build.log is above" >&2
		exit 1
	}
}

# Runs inside the lab, with the targets in the environment: PROGRAM SIZE TIME JSON-DIRECTORY.
measure() {
	local program size json
	program=$1
	size=$2
	json=$4
	set -- --time "$3" nfs="$NFS" iscsi="$ISCSI" fc="$BLOCK" --destroy iscsi --destroy fc --size "$size"
	if lacks_room; then
		echo "The three files leave little room on this disk until they are removed at the end: --allow-full is given."
		set -- "$@" --allow-full
	fi

	echo
	echo "== 1. samedisk run quick: the three targets in turns, several rounds, the least and greatest beside the median"
	run quick quick "$program" "$json" "$@" || {
		status=$?
		[ $status -ne 1 ] || echo "demo.sh: nothing was measured; with --time 2m there is room for one round" >&2
		exit $status
	}
	echo
	echo "== 2. samedisk run vmtn: the four VMTN access specifications, here with 5 s instead of 5 min each"
	shift 2
	run vmtn vmtn "$program" "$json" --rounds 1 --ramp_time 1s --runtime 5s "$@"
	echo
	echo "== 3. samedisk run quick --sync dsync: writes of the same durability on all three, so that they can be set against"
	echo "      each other"
	run durable quick "$program" "$json" --only '*write' --sync dsync --rounds 2 "$@"
	explain "$program" "$json"
}

# run NAME PATTERN PROGRAM JSON-DIRECTORY ARGUMENT...
run() {
	local name pattern program json
	name=$1
	pattern=$2
	program=$3
	json=$4
	shift 4
	[ -z "$json" ] || set -- "$@" --json "$json/$name.json"
	"$program" run "$pattern" "$@"
}

# samedisk wants the larger of 10 % and 10 GiB to stay free before it makes a file.
lacks_room() {
	df -Pk "$LAB_DIR" | awk -v files="$(($(stat -c %s "$LAB_DIR/lun.img") * 3 >> 10))" '
		NR == 2 { keep = $2 / 10 > 10485760 ? $2 / 10 : 10485760; exit !($4 - files < keep) }'
}

explain() {
	local program
	program=${1#"$PWD/"}
	cat <<-END

		== What these figures are, and what they are not
		Client and servers share this one machine, its processors and its memory. So the tables above show caches and the
		work of the software, not disks and not a network; the loop device, which stands for FC, has no server at all.
		They are good for two things: to see that everything works here, and to see how the results look. They say nothing
		about which protocol is faster on a filer.
		A ratio marked * is of writes that were not of the same durability: what they cost is not the same work. In the last
		set each write is on stable storage before it is answered, as far as each target says.

		== With your own filer
		Give samedisk a file on an export, a LUN and a device that lie on the same disks, and look at them first:
		  $program probe nfs=nfs://FILER/EXPORT/FILE iscsi=iscsi://FILER/IQN/LUN fc=/dev/DEVICE
		  $program run vmtn --size 4g --json result.json --dry-run \\
		      nfs=nfs://FILER/EXPORT/FILE iscsi=iscsi://FILER/IQN/LUN fc=/dev/DEVICE --destroy iscsi --destroy fc
		The last line says what would be written where, and writes nothing; without --dry-run it measures.
		What is on a target that --destroy names is lost. The working set should be larger than the filer's cache.
	END
	[ -z "$2" ] || printf '\nThe results are in %s: quick.json, vmtn.json and durable.json.\n' "$2"
}

if [ "${1:-}" = --measure ]; then
	shift
	measure "$@"
	exit 0
fi

# Not the default, which the first process of a container does not get.
trap 'exit 130' INT
trap 'exit 143' TERM

size=512M
time=3m
json=
dir=
while [ $# -gt 0 ]; do
	case $1 in
	--*=*)
		key=${1%%=*}
		value=${1#*=}
		;;
	--*)
		[ $# -ge 2 ] || usage
		key=$1
		value=$2
		shift
		;;
	*) usage ;;
	esac
	case $key in --size) size=$value ;; --time) time=$value ;; --json) json=$value ;; --dir) dir=$value ;; *) usage ;; esac
	shift
done

if [ "$(id -u)" != 0 ]; then
	echo "demo.sh needs root: it starts servers in namespaces of their own and sets up a loop device" >&2
	exit 1
fi
if [ -n "$json" ]; then
	mkdir -p "$json"
	json=$(cd "$json" && pwd -P)
fi
if [ -n "${SAMEDISK:-}" ]; then
	sh "$home/packages.sh" install servers
else
	sh "$home/packages.sh" install build servers
	if [ -f "$top/config.status" ]; then # built in the tree, which then cannot be built elsewhere
		make -s -C "$top" -j"$(nproc)" samedisk >/dev/null
		SAMEDISK=$top/samedisk
	else
		build
		SAMEDISK=$top/build-demo/samedisk
	fi
fi
echo "starting an NFS server, an iSCSI target and a loop device, with files of $size in ${dir:-${TMPDIR:-/var/tmp}}"
exec sh "$home/filer.sh" --size "$size" ${dir:+--dir "$dir"} loopback -- \
	sh "$home/demo.sh" --measure "$SAMEDISK" "$size" "$time" "$json"
