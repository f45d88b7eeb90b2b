# SPDX-License-Identifier: GPL-2.0-or-later
# A filer behind network links of known speed: two network namespaces, joined by shaped veth pairs, with the servers of
# servers.sh in one of them. To be sourced after it, by root:
#
#   . "$LAB_HOME/servers.sh"; . "$LAB_HOME/link.sh"
#   lab_begin
#   mkdir "$LAB/data" && lab_filer_1g data="$LAB/data" && lab_tgt_lun 1 "$LAB/lun"
#   lab_client samedisk run "$(lab_nfs_url data/file)" "$(lab_iscsi_url 1)"
#
# The servers have their standard ports and a portmapper there, and everything of servers.sh works on them. The namespaces
# have no names and are held by processes of the lab, so they and the links are gone with them, however the lab ends.
# shellcheck shell=dash disable=SC2034

# lab_filer RATE EXPORT=DIR ...: starts Ganesha and tgtd (a portal on each link) behind one link for each word in RATE.
lab_filer() {
	local rate number
	lab_need ip tc || return 1
	lab_netns client && lab_netns filer || return 1
	LAB_NETNS=$(lab_ns filer)
	LAB_ADDRS=
	number=0
	for rate in $1; do
		number=$((number + 1))
		lab_link "$number" "$rate" || return 1
		LAB_ADDRS="$LAB_ADDRS${LAB_ADDRS:+ }10.213.$number.2"
	done
	shift
	LAB_ADDR=${LAB_ADDRS%% *}
	# A file, for programs that cannot call lab_client. Like `ip netns exec` it shows the /sys of the namespace.
	cat >"$LAB/client" <<-END
		#!/bin/sh
		exec nsenter --net="$(lab_ns client)" unshare --mount --propagation unchanged sh -c '
			mount --make-rprivate / 2>/dev/null || mount --make-rprivate /sys
			mount -t sysfs sysfs /sys && exec "\$@"' sh "\$@"
	END
	chmod +x "$LAB/client"
	lab_ganesha "$@" && lab_tgt
}

# One link of 1 Gbit/s. tbf does not count the 24 bytes that a frame also takes on a real wire (preamble, checksum, gap):
# 984 Mbit/s give the 940 Mbit/s of TCP payload that real Gigabit Ethernet gives.
lab_filer_1g() {
	lab_filer 984mbit "$@"
}

# lab_client COMMAND...: runs a command on the client's side. Programs may run $LAB/client COMMAND... instead.
lab_client() {
	sh "$LAB/client" "$@"
}

# lab_netns NAME: a network namespace; lab_ns NAME prints what nsenter --net= takes.
lab_netns() {
	lab_keeper "ns-$1" 'ip link set lo up' unshare --net
}

lab_ns() {
	echo "/proc/$(lab_pid "ns-$1")/ns/net"
}

# lab_link N RATE: joins client and filer with 10.213.N.1 and 10.213.N.2, shaped on both ends. RATE is that of tc.
lab_link() {
	local side
	nsenter --net="$(lab_ns client)" ip link add "link$1" type veth peer name "link$1" netns "$(lab_pid ns-filer)" || return 1
	for side in client:1 filer:2; do
		# shellcheck disable=SC2016
		nsenter --net="$(lab_ns "${side%:*}")" sh -euc '
			ip addr add "10.213.$1.$2/24" dev "link$1"
			ip link set "link$1" up
			tc qdisc add dev "link$1" root tbf rate "$3" burst 128k latency 20ms
		' sh "$1" "${side#*:}" "$2" || return 1
	done
	lab_link_is_up "$1"
}

lab_link_is_up() {
	local side
	for side in client filer; do
		lab_until 5 lab_link_carries "$side" "$1" || lab_fail "link $1 does not come up" || return 1
	done
}

lab_link_carries() {
	nsenter --net="$(lab_ns "$1")" ip -o link show "link$2" | grep -q 'state UP'
}

# lab_link_down N, lab_link_up N: the cable of link N is pulled out at the filer, and put back.
lab_link_down() {
	lab_net ip link set "link$1" down
}

lab_link_up() {
	lab_net ip link set "link$1" up && lab_link_is_up "$1"
}
