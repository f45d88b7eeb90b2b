# SPDX-License-Identifier: GPL-2.0-or-later
# A filer behind network links of known speed, delay and loss: two network namespaces, joined by shaped veth pairs or delay
# lines, with the servers of servers.sh in one of them. To be sourced after it, by root:
#
#   . "$LAB_HOME/servers.sh"; . "$LAB_HOME/link.sh"
#   lab_begin
#   mkdir "$LAB/data" && lab_filer_1g data="$LAB/data" && lab_tgt_lun 1 "$LAB/lun"
#   lab_client samedisk run "$(lab_nfs_url data/file)" "$(lab_iscsi_url 1)"
#
# The servers have their standard ports and a portmapper there, and everything of servers.sh works on them. The namespaces
# have no names and are held by processes of the lab, so they and the links are gone with them, however the lab ends.
# A delay line is a program, $builddir/tests/lab/delayline; where it was not built, ${CC:-cc} builds it in $LAB.
# shellcheck shell=dash disable=SC2034

# lab_filer LINKS EXPORT=DIR ...: Ganesha and tgtd (a portal on each link) behind the links.
lab_filer() {
	lab_network "$1" || return 1
	shift
	lab_ganesha "$@" && lab_tgt
}

# lab_network LINKS: one link for each word: a rate of tc (984mbit), or rtt=TIME[,loss=PERCENT][,rate=N] and whatever else
# delayline.c takes. Servers that are started after it are behind them.
lab_network() {
	local link number side
	lab_need ip tc || return 1
	lab_netns client && lab_netns filer || return 1
	for side in client filer; do
		# The one that every kernel has and lets a namespace use; and what one connection has learned about the path
		# is no business of the next.
		lab_sysctl "$side" tcp_congestion_control reno && lab_sysctl "$side" tcp_no_metrics_save 1 || return 1
	done
	LAB_NETNS=$(lab_ns filer)
	LAB_ADDRS=
	number=0
	for link in $1; do
		number=$((number + 1))
		lab_link "$number" "$link" || return 1
		LAB_ADDRS="$LAB_ADDRS${LAB_ADDRS:+ }10.213.$number.2"
	done
	LAB_ADDR=${LAB_ADDRS%% *}
	# A file, for programs that cannot call lab_client. Like `ip netns exec` it shows the /sys of the namespace.
	cat >"$LAB/client" <<-END
		#!/bin/sh
		exec nsenter --net="$(lab_ns client)" unshare --mount --propagation unchanged sh -c '
			mount --make-rprivate / 2>/dev/null || mount --make-rprivate /sys
			mount -t sysfs sysfs /sys && exec "\$@"' sh "\$@"
	END
	chmod +x "$LAB/client"
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

# lab_link N LINK: joins client and filer with 10.213.N.1 and 10.213.N.2; LINK is a word of lab_filer's.
lab_link() {
	local side
	case $2 in
	*=*) lab_link_delayed "$@" ;;
	*) nsenter --net="$(lab_ns client)" ip link add "link$1" type veth peer name "link$1" netns "$(lab_pid ns-filer)" ;;
	esac || return 1
	for side in client:1 filer:2; do
		# shellcheck disable=SC2016
		nsenter --net="$(lab_ns "${side%:*}")" sh -euc '
			# Nothing but what the servers and clients send; and on a delayed link not 64 KiB at a time, in which a
			# small window has no room to move. That is as much as a card with receive offload hands up at once.
			v6=/proc/sys/net/ipv6/conf/link$1/disable_ipv6
			[ ! -e "$v6" ] || echo 1 >"$v6"
			ip addr add "10.213.$1.$2/24" dev "link$1"
			ip link set "link$1" up
			case $3 in
			*=*) ip link set "link$1" gso_max_size 16384 ;;
			*) tc qdisc add dev "link$1" root tbf rate "$3" burst 128k latency 20ms ;;
			esac
		' sh "$1" "${side#*:}" "$2" || return 1
	done
	lab_link_is_up "$1"
}

# A process of the lab, link N, which holds both ends.
lab_link_delayed() {
	local program number options option
	program=${builddir:-.}/tests/lab/delayline
	[ -x "$program" ] || program=$LAB/delayline
	[ -x "$program" ] || {
		lab_need "${CC:-cc}" || return 1
		"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O2 -o "$program" "$LAB_HOME/delayline.c" || return 1
	}
	[ -c /dev/net/tun ] || lab_fail "there is no /dev/net/tun, which delay and loss need" || return 1
	number=$1
	options=$2
	set --
	while [ -n "$options" ]; do
		option=${options%%,*}
		case $options in *,*) options=${options#*,} ;; *) options= ;; esac
		set -- "$@" "--$option"
	done
	lab_start "link$number" "$program" "$@" "link$number" "$(lab_ns client)" "$(lab_ns filer)" || return 1
	lab_up "link$number" 5 grep -q ready "$LAB/link$number.log" || lab_show "link$number"
}

# lab_link_passed N: two lines of what has passed a delayed link so far, from the client to the filer and back.
lab_link_passed() {
	local before
	before=$(wc -l <"$LAB/link$1.log")
	lab_signal "link$1" USR1 && lab_until 5 lab_link_told "$1" $((before + 2)) || lab_fail "link $1 does not answer" ||
		return 1
	tail -n +$((before + 1)) "$LAB/link$1.log"
}

lab_link_told() {
	[ "$(wc -l <"$LAB/link$1.log")" -ge "$2" ]
}

# lab_rmem SIZE: servers that are started after it have receive buffers of SIZE (as in 64k; 0: as the kernel likes), and offer
# a window of at most that. A connection has its buffer from the socket that listens, so lab_restart those that run.
lab_rmem() {
	local size
	case $1 in
	*[kK]) size=$((${1%?} * 1024)) ;;
	*[mM]) size=$((${1%?} * 1048576)) ;;
	*) size=$1 ;;
	esac
	if [ "$size" = 0 ]; then
		lab_sysctl filer tcp_rmem "$(cat /proc/sys/net/ipv4/tcp_rmem)"
	else
		lab_sysctl filer tcp_rmem "4096 $size $size"
	fi
}

# lab_sysctl SIDE NAME VALUE: net.ipv4.NAME in the namespace client or filer.
lab_sysctl() {
	# shellcheck disable=SC2016
	nsenter --net="$(lab_ns "$1")" sh -c 'echo "$2" >"/proc/sys/net/ipv4/$1"' sh "$2" "$3" ||
		lab_fail "net.ipv4.$2 of the $1 cannot be '$3'"
}

lab_link_is_up() {
	local side
	for side in client filer; do
		lab_until 5 lab_link_carries "$side" "$1" || lab_fail "link $1 does not come up" || return 1
	done
}

# Of a TUN interface the state is "unknown".
lab_link_carries() {
	nsenter --net="$(lab_ns "$1")" ip -o link show "link$2" | grep -q LOWER_UP
}

# lab_link_down N, lab_link_up N: the cable of link N is pulled out at the filer, and put back.
lab_link_down() {
	lab_net ip link set "link$1" down
}

lab_link_up() {
	lab_net ip link set "link$1" up && lab_link_is_up "$1"
}
