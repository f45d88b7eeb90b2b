#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The Debian packages that samedisk is built, served and tested with: the one list of them.
#
#   packages.sh list    GROUP ...    prints the names
#   packages.sh install GROUP ...    installs those that are missing; needs root
#
# GROUP is build (compiler and libraries), servers (NFS, iSCSI and links for the test lab) or tests (everything else that
# the test suite uses). Debian 12 and 13. Nothing that is installed here is started, now or at boot.
# shellcheck shell=dash
set -eu

build="autoconf automake build-essential libaio-dev libblkid-dev libiscsi-dev libjansson-dev libnfs-dev liburing-dev pkg-config"
servers="e2fsprogs iproute2 mount netbase nfs-ganesha nfs-ganesha-vfs rpcbind tgt util-linux"
tests="bindfs btrfs-progs clang clang-format dosfstools fdisk fuse3 gnuplot-nox libclang-rt-dev libcmocka-dev
	libiscsi-bin libnfs-utils lvm2 lz4 man-db nftables parted python3 python3-jsonschema shellcheck tshark valgrind
	xfsprogs zstd"

policy=/usr/sbin/policy-rc.d
scratch=

usage() {
	sed -n '/^# shellcheck/q; /^#!/d; /SPDX/d; s/^# \{0,1\}//p' "$0" >&2
	exit 1
}

members() {
	local group
	for group; do
		case $group in
		build) echo "$build" ;;
		servers) echo "$servers" ;;
		tests) echo "$tests" ;;
		*)
			echo "packages.sh: no group '$group'; there are build, servers and tests" >&2
			return 1
			;;
		esac
	done
}

missing() {
	local package
	for package; do
		case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
		installed) ;;
		*) echo "$package" ;;
		esac
	done
}

tidy() {
	[ -z "$scratch" ] || rm -rf "$scratch"
	# Ours has our number in it; one that somebody else wrote stays.
	! grep -qs "^# samedisk $$\$" "$policy" || rm -f "$policy"
}

# The packages of the servers also enable them at boot. A demonstration must not leave an NFS server, an iSCSI target and
# a portmapper behind that open their ports at the next boot.
disable_at_boot() {
	local package unit
	command -v systemctl >/dev/null || return 0
	for package; do
		case " $servers " in *" $package "*) ;; *) continue ;; esac
		dpkg -L "$package" | sed -n 's,.*/lib/systemd/system/\([^/@]*\.\(service\|socket\)\)$,\1,p' |
			while read -r unit; do
				# Offline: links only, no word to a running systemd, which would stop or start something.
				SYSTEMD_OFFLINE=1 systemctl --quiet disable "$unit" 2>/dev/null || :
			done
	done
}

[ $# -ge 2 ] || usage
action=$1
shift
wanted=$(members "$@") || exit 1

case $action in
list)
	# shellcheck disable=SC2086 # one name a line
	printf '%s\n' $wanted
	exit 0
	;;
install) ;;
*) usage ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "packages.sh: this is not a Debian system; install by hand what these packages of Debian 12 hold:" >&2
	printf '  %s\n' "$(echo "$wanted" | tr -s '\n\t' '  ')" >&2
	exit 1
fi
# shellcheck disable=SC2086
names=$(missing $wanted | tr '\n' ' ')
names=${names% }
[ -n "$names" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "packages.sh: these packages are missing, and only root can install them:" >&2
	echo "  apt-get install --no-install-recommends $names" >&2
	exit 1
fi

trap tidy EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
scratch=$(mktemp -d)
# The packages of servers start them when they are installed, unless this file says no.
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\n# samedisk %s\nexit 101\n' "$$" >"$policy"
	chmod +x "$policy"
fi

echo "installing with apt-get: $names"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
{
	apt-get -q update &&
		apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends $names
} >"$scratch/log" 2>&1 </dev/null || {
	tail -n 30 "$scratch/log" >&2
	echo "packages.sh: apt-get failed" >&2
	exit 1
}
# shellcheck disable=SC2086
disable_at_boot $names
