# SPDX-License-Identifier: GPL-2.0-or-later
# Private NFS and iSCSI servers, loop devices and small file systems for tests. To be sourced by sh, dash or bash, by root:
#
#   LAB_HOME=path/to/tests/lab
#   . "$LAB_HOME/servers.sh"
#   lab_begin
#   mkdir "$LAB/data" && lab_ganesha data="$LAB/data"
#   truncate -s 1G "$LAB/lun" && lab_tgt && lab_tgt_lun 1 "$LAB/lun"
#   samedisk run "$(lab_nfs_url data/file)" "$(lab_iscsi_url 1)"
#
# Everything lives in the folder $LAB and ends with lab_end, which lab_begin also sets as the trap for EXIT, HUP, INT and
# TERM: a script that wants a trap of its own sets it after lab_begin and calls lab_end in it. When the script itself is
# killed, a watchdog cleans up. Any number of labs can run side by side; no port, service or folder of the system is used.
# Functions that set variables (lab_begin, lab_ganesha, lab_tgt, lab_tgt_chap) must not be called in a subshell. All
# functions return 1 after a message when they fail. NAME is ganesha or tgtd; its log is $LAB/NAME.log.
# shellcheck shell=dash

LAB=
LAB_ADDR=127.0.0.1     # where clients find the servers
LAB_ADDRS=$LAB_ADDR    # all such addresses: the portals of the iSCSI target
LAB_NETNS=             # the network namespace of the servers; empty: the one we are in
LAB_NFS_PORT=          # set by lab_ganesha
LAB_NFS_VERSIONS=3     # what lab_ganesha serves: "3", "4", "3, 4"
LAB_MOUNT_PORT=        # set by lab_ganesha
LAB_ISCSI_PORT=        # set by lab_tgt
LAB_CHAP=              # set by lab_tgt_chap: USER%PASSWORD@ of the URL
LAB_IQN=iqn.2026-01.org.samedisk:lab

# ---- the lab itself ----

# lab_begin [DIR]: makes $LAB, in DIR or else $TMPDIR or else /var/tmp, which unlike /tmp is on a disk everywhere.
lab_begin() {
	[ -z "$LAB" ] || lab_fail "lab_begin: there is a lab already, $LAB" || return 1
	[ "$(id -u)" = 0 ] || lab_fail "the lab needs root: namespaces, loop devices, NFS and iSCSI servers" || return 1
	[ -r "${LAB_HOME:-}/servers.sh" ] || lab_fail "LAB_HOME must name the folder of servers.sh" || return 1
	LAB_HOME=$(cd "$LAB_HOME" && pwd -P)
	lab_need setsid unshare nsenter setpriv tail || return 1
	lab_traps
	LAB=$(mktemp -d "${1:-${TMPDIR:-/var/tmp}}/samedisk-lab.XXXXXX") || return 1
	LAB=$(cd "$LAB" && pwd -P)
	case $LAB in
	/run/* | /var/run/*) lab_fail "the lab cannot be in /run, which the NFS server has for itself" || return 1 ;;
	esac
	# A socket's path has 107 characters at most.
	[ ${#LAB} -le 90 ] || lab_fail "the lab's folder has too long a name: $LAB" || return 1
	# shellcheck disable=SC2016
	lab_start watchdog sh -c '
		setpriv --pdeathsig KILL tail --pid="$1" -f /dev/null
		LAB_HOME=$2; . "$2/servers.sh"; LAB=$3; lab_end' watchdog $$ "$LAB_HOME" "$LAB"
}

# lab_end: ends the command, the servers, the mounts and the devices, in this order, and removes $LAB. It goes by what is
# written in $LAB alone, so that the watchdog can do it too.
lab_end() {
	local name path device
	[ -n "$LAB" ] && [ -d "$LAB" ] || return 0
	: >"$LAB/ending"
	lab_down command 10
	for path in "$LAB"/*.pid; do
		name=${path##*/}
		name=${name%.pid}
		[ "$name" = watchdog ] || lab_down "$name"
	done
	if [ -f "$LAB/mounts" ]; then
		tac "$LAB/mounts" | while read -r path; do
			! mountpoint -q "$path" || lab_until 5 umount -q "$path" || {
				lab_fail "$path is busy; it is unmounted when it no longer is" || umount --lazy "$path"
			}
		done
	fi
	# Their keepers are gone, so only a device whose script was interrupted in lab_loop can be left.
	if [ -f "$LAB/loops" ]; then
		while read -r path; do
			for device in $(losetup --noheadings --output NAME --associated "$path" 2>/dev/null); do
				losetup --detach "$device"
			done
		done <"$LAB/loops"
	fi
	# The watchdog is last, for the case that we are killed before, and must not end itself.
	lab_alive watchdog && [ "$(lab_pid watchdog)" != $$ ] && lab_down watchdog
	rm -rf --one-file-system "$LAB"
	LAB=
}

# lab_run COMMAND...: runs a command that a signal to the script ends at once; its status is returned. Without it a shell
# finishes the command in the foreground before it looks at a signal.
lab_run() {
	local child status now again
	lab_signalled=''
	child=''
	again=''
	status=0
	# Ctrl-C at a terminal reaches the command anyway, and twice may mean more than once.
	trap 'lab_signalled=1; (: </dev/tty) 2>/dev/null || kill -INT $child 2>/dev/null || :' INT
	trap 'lab_signalled=1; kill -TERM $child 2>/dev/null || :' HUP TERM
	# A background command gets no standard input and ignores Ctrl-C, unless told.
	{ env --default-signal=INT,QUIT "$@" <&3 3<&- & } 3<&0
	child=$!
	echo "$child $(lab_stat "$child" 20)" >"$LAB/command.pid"
	[ -z "$lab_signalled" ] || kill -TERM "$child" 2>/dev/null || :
	while :; do
		lab_signalled=''
		now=0
		wait "$child" || now=$?
		# 127 after a signal: the first wait had the status already.
		[ "$now$again" = 1271 ] || status=$now
		[ -n "$lab_signalled" ] || break
		again=1
	done
	rm -f "$LAB/command.pid"
	lab_traps
	return "$status"
}

lab_traps() {
	trap lab_end EXIT
	trap 'lab_interrupted HUP 129' HUP
	trap 'lab_interrupted INT 130' INT
	trap 'lab_interrupted TERM 143' TERM
}

lab_interrupted() {
	lab_end
	trap - "$1"
	kill -s "$1" $$
	# The first process of a container does not die of a signal.
	exit "$2"
}

lab_fail() {
	echo "lab: $1" >&2
	return 1
}

# lab_need PROGRAM...
lab_need() {
	local program
	for program; do
		command -v "$program" >/dev/null ||
			lab_fail "$program is missing; as root: sh $LAB_HOME/packages.sh install servers" || return 1
	done
}

# lab_until SECONDS COMMAND...: tries until COMMAND succeeds; 1 when the time is over.
lab_until() {
	local end
	end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -le "$end" ] || return 1
		sleep 0.03
	done
}

lab_not() {
	! "$@"
}

# ---- processes: $LAB/NAME.pid holds the number and the start time, so that a number used again is not mistaken ----

# A process writes its record itself, as it may be a child of what the shell starts. Arguments: file, command. Either
# lab_end finds the record, or the process finds that the lab is ending, or the folder is gone: in this order of looking.
# shellcheck disable=SC2016
lab_recorded='
	read -r stat </proc/$$/stat
	record() { echo "$$ ${20}"; }
	record ${stat##*) } >"$1.new" && mv "$1.new" "$1" && [ ! -e "${1%/*}/ending" ] && [ -e "$1" ] || exit 1
	shift
	exec "$@"'

# lab_start NAME COMMAND...: as a session of its own (Ctrl-C does not reach it), and no child of the script (`wait` does
# not wait for it).
lab_start() {
	local name
	name=$1
	shift
	lab_down "$name"
	(setsid sh -c "$lab_recorded" sh "$LAB/$name.pid" "$@" </dev/null >>"$LAB/$name.log" 2>&1 &)
	lab_until 5 test -s "$LAB/$name.pid" || lab_fail "cannot start $name"
}

# lab_keeper NAME SETUP [PREFIX ...]: a process that holds what SETUP opens for as long as the script lives.
lab_keeper() {
	local name setup
	name=$1
	setup=$2
	shift 2
	lab_start "$name" "$@" sh -ec "$setup; echo ready; exec tail --pid=$$ -f /dev/null" || return 1
	lab_up "$name" 5 grep -q ready "$LAB/$name.log" || lab_show "$name"
}

# lab_stat PID N: the Nth field of /proc/PID/stat after the name: 1 is the state, 20 the start time.
lab_stat() {
	local stat
	read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
	# shellcheck disable=SC2086
	set -- "$2" ${stat##*) }
	shift "$1"
	echo "$1"
}

lab_pid() {
	local pid born
	[ -f "$LAB/$1.pid" ] && read -r pid born <"$LAB/$1.pid" && echo "$pid"
}

lab_alive() {
	local pid born state
	[ -f "$LAB/$1.pid" ] && read -r pid born <"$LAB/$1.pid" || return 1
	[ -d "/proc/$pid" ] && [ "$(lab_stat "$pid" 20)" = "$born" ] || return 1
	state=$(lab_stat "$pid" 1) || return 1
	# The first thread of a process can be dead before the others, which still hold locks, ports and files.
	set -- "/proc/$pid/task/"*
	[ "$state" != Z ] || [ $# -gt 1 ]
}

lab_signal() {
	lab_alive "$1" && kill -s "$2" "$(lab_pid "$1")" 2>/dev/null
}

# lab_up NAME SECONDS COMMAND...: waits until COMMAND succeeds, or the process ends, or the time is over.
lab_up() {
	local name end
	name=$1
	end=$(($(date +%s) + $2))
	shift 2
	until "$@"; do
		lab_alive "$name" && [ "$(date +%s)" -le "$end" ] || return 1
		sleep 0.03
	done
	lab_alive "$name"
}

# lab_down NAME [SECONDS]: ends a process and waits for its end.
lab_down() {
	case $1 in
	# It takes no notice of TERM, and has nothing to tidy up.
	tgtd) lab_signal tgtd KILL ;;
	# One that is stopped must go on to end.
	*) lab_signal "$1" TERM && lab_signal "$1" CONT ;;
	esac || :
	lab_until "${2:-5}" lab_not lab_alive "$1" || lab_kill "$1"
	rm -f "$LAB/$1.pid"
}

lab_show() {
	tail -n 30 "$LAB/$1.log" >&2
	lab_fail "$1 did not come up; the end of its log is above"
}

# ---- faults ----

# lab_kill NAME: as in a crash. lab_stop, lab_cont: it hangs, with all connections open. lab_restart: on the same ports.
lab_kill() {
	lab_signal "$1" KILL || :
	lab_until 5 lab_not lab_alive "$1" || lab_fail "$1 does not end"
}

lab_stop() {
	lab_signal "$1" STOP || lab_fail "$1 is not running"
}

lab_cont() {
	lab_signal "$1" CONT || lab_fail "$1 is not running"
}

lab_restart() {
	lab_down "$1"
	"lab_${1}_up" || lab_show "$1"
}

# ---- ports ----

# In the servers' network namespace.
lab_net() {
	${LAB_NETNS:+nsenter --net="$LAB_NETNS"} "$@"
}

# lab_port: prints a free TCP port, below the range that the kernel gives to clients; an even one, as Ganesha takes the
# next one too.
lab_port() {
	local port
	while :; do
		port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 5000 * 2))
		[ -n "$(lab_net ss -Htan "sport = :$port")" ] || break
	done
	echo "$port"
}

# lab_listens NAME PORT: NAME itself does, not another lab that was faster.
lab_listens() {
	lab_net ss -Hltnp "sport = :$2" | grep -q "pid=$(lab_pid "$1"),"
}

# ---- NFS: Ganesha ----

# lab_ganesha EXPORT=DIR[:OPTION,...] ...: exports the folders as /EXPORT, NFSv3 on TCP. Options: ro, root_squash,
# all_squash, or KEY=VALUE of Ganesha's EXPORT block (MaxRead=65536, PrivilegedPort=true ...). What is to be exported is
# mounted before. In a network namespace of its own (link.sh) the server has the standard ports and a portmapper.
lab_ganesha() {
	local try
	lab_need ganesha.nfsd rpcbind rpcinfo ss || return 1
	for try in 1 2 3 4 5; do
		LAB_NFS_PORT=2049 LAB_MOUNT_PORT=20048
		if [ -z "$LAB_NETNS" ]; then
			LAB_NFS_PORT=$(lab_port) LAB_MOUNT_PORT=$((LAB_NFS_PORT + 1))
		fi
		lab_ganesha_config "$@" >"$LAB/ganesha.conf" || return 1
		: >"$LAB/ganesha.log"
		! lab_ganesha_up || return 0
		# Somebody may have taken the port between the look and the bind.
		grep -q 'Address already in use' "$LAB/ganesha.log" || break
	done
	lab_show ganesha || :
	lab_down ganesha
	return 1
}

lab_ganesha_config() {
	local item name dir options option access squash id
	: >"$LAB/ganesha.exports"
	cat <<-END
		NFS_CORE_PARAM {
			NFS_Port = $LAB_NFS_PORT; MNT_Port = $LAB_MOUNT_PORT; Protocols = $LAB_NFS_VERSIONS; Enable_NLM = false; Enable_RQUOTA = false;
			Bind_addr = $([ -z "$LAB_NETNS" ] && echo "$LAB_ADDR" || echo 0.0.0.0);
			mount_path_pseudo = true;
			# Release 6 wants a right that a container may not have, unless told; earlier ones warn about the word.
			Allow_Set_Io_Flusher_Fail = true;
			Plugins_Dir = "$(dirname /usr/lib/*/ganesha/libfsalvfs.so)";
		}
		NFSv4 { Graceless = true; RecoveryRoot = "$LAB/ganesha"; }
		NFS_KRB5 { Active_krb5 = false; }
		# Tests put another file in the place of one behind the server's back: it is to look, not to remember names.
		MDCACHE { Dir_Chunk = 0; }
		EXPORT_DEFAULTS { Protocols = $LAB_NFS_VERSIONS; Transports = TCP; SecType = sys; PrivilegedPort = false; }
	END
	id=0
	for item; do
		id=$((id + 1))
		name=${item%%=*}
		dir=${item#*=}
		options=''
		access=RW
		squash=No_Root_Squash
		case $dir in *:*) options=${dir##*:} dir=${dir%:*} ;; esac
		[ -d "$dir" ] || lab_fail "there is no folder $dir to export" || return 1
		printf '%s\n' "$(cd "$dir" && pwd -P)" >>"$LAB/ganesha.exports"
		echo "EXPORT { Export_Id = $id; Path = /run/export/$id; Pseudo = \"/$name\"; FSAL { Name = VFS; }"
		while [ -n "$options" ]; do
			option=${options%%,*}
			case $options in *,*) options=${options#*,} ;; *) options= ;; esac
			case $option in
			ro) access=RO ;;
			root_squash) squash=Root_Squash ;;
			all_squash) squash=All_Squash ;;
			*=*) echo "  ${option%%=*} = ${option#*=};" ;;
			*) lab_fail "lab_ganesha: unknown option $option" || return 1 ;;
			esac
		done
		echo "  Access_Type = $access; Squash = $squash; }"
	done
}

lab_ganesha_up() {
	mkdir -p "$LAB/ganesha"
	# The one of an earlier start is in a mount namespace that nobody else can enter.
	lab_down rpcbind
	# Ganesha must register with a portmapper, and finds it through the socket /run/rpcbind.sock. A /run of its own, in a
	# mount namespace that is gone with its last process, keeps the system's out of it; and since a socket with a path
	# works across network namespaces, the portmapper can have its port 111 in one of its own. The exports are bound into
	# this /run because Ganesha only exports what it finds among the mounts, where the / of a chroot is missing.
	# shellcheck disable=SC2016
	lab_start ganesha ${LAB_NETNS:+nsenter --net="$LAB_NETNS"} \
		unshare --mount --propagation unchanged sh -euc '
			mount --make-rprivate / 2>/dev/null || mount --make-rprivate /run || {
				echo "no mount point in / or /run: in a chroot, mount a tmpfs on /run first"
				exit 1
			}
			mount -t tmpfs -o mode=755 tmpfs /run
			mkdir /run/ganesha
			id=0
			while read -r dir; do
				id=$((id + 1))
				mkdir -p "/run/export/$id"
				mount --rbind "$dir" "/run/export/$id"
			done <"$1/ganesha.exports"
			sh -c "$3" sh "$1/rpcbind.pid" $2 rpcbind -f -w &
			until [ -S /run/rpcbind.sock ] && [ -s "$1/rpcbind.pid" ]; do
				kill -0 $!
				sleep 0.02
			done
			# It reads /etc/mtab, which a minimal system lacks.
			root=/
			[ -e /etc/mtab ] || {
				root=/run/root
				mkdir $root
				mount --rbind / $root
				mount --make-rprivate $root
				cp -a /etc /run/etc
				ln -s /proc/self/mounts /run/etc/mtab
				mount --bind /run/etc $root/etc
			}
			exec chroot $root ganesha.nfsd -F -f "$1/ganesha.conf" -L "$1/ganesha.log" -p /run/ganesha.pid -N EVENT
		' sh "$LAB" "$([ -n "$LAB_NETNS" ] || echo 'unshare --net')" "$lab_recorded" || return 1
	# It would go on without an export that it does not understand or cannot have.
	lab_up ganesha 30 lab_ganesha_ready &&
		! grep -e 'CONFIG :CRIT' -e 'EXPORT :CRIT' -e 'Unknown parameter' "$LAB/ganesha.log" | grep -v Allow_Set_Io >&2
}

lab_ganesha_ready() {
	lab_listens ganesha "$LAB_NFS_PORT" && lab_answers "$LAB_NFS_PORT" 100003 "${LAB_NFS_VERSIONS%%,*}" || return 1
	[ "$LAB_NFS_VERSIONS" = 4 ] || lab_answers "$LAB_MOUNT_PORT" 100005 3
}

# lab_answers PORT PROGRAM VERSION: a call of the NULL procedure.
lab_answers() {
	lab_net timeout 3 rpcinfo -a "$LAB_ADDR.$(($1 / 256)).$(($1 % 256))" -T tcp "$2" "$3" >/dev/null 2>&1
}

# lab_nfs_url PATH [KEY=VALUE ...]: PATH is EXPORT/FILE.
lab_nfs_url() {
	printf 'nfs://%s/%s' "$LAB_ADDR" "$1"
	shift
	[ "$LAB_NFS_PORT" = 2049 ] || set -- "nfsport=$LAB_NFS_PORT" "mountport=$LAB_MOUNT_PORT" "$@"
	lab_query "$@"
}

lab_query() {
	local separator word
	separator='?'
	for word; do
		printf '%s%s' "$separator" "$word"
		separator='&'
	done
	echo
}

# ---- iSCSI: tgt ----

# lab_tgt: a target without LUNs that every initiator may use, with a portal on each address.
lab_tgt() {
	local try
	lab_need tgtd tgtadm ss || return 1
	: >"$LAB/tgtd.config"
	: >"$LAB/tgtd.log"
	for try in 1 2 3 4 5; do
		LAB_ISCSI_PORT=3260
		[ -n "$LAB_NETNS" ] || LAB_ISCSI_PORT=$(lab_port)
		! lab_tgtd_up || break
		# The port was taken between the look and the bind, or else another one is no cure.
		[ "$try" != 5 ] && lab_tgtd_ready || lab_show tgtd || return 1
	done
	lab_tgtadm_kept --mode target --op new --tid 1 --targetname "$LAB_IQN" &&
		lab_tgtadm_kept --mode target --op bind --tid 1 --initiator-address ALL
}

lab_tgtd_up() {
	local address first
	# It insists on a portal from the start; this one, on a port of the kernel's choice, gives way to the true ones when
	# the LUNs are there. An initiator that reconnects after lab_restart never meets a target without its LUNs.
	lab_start tgtd ${LAB_NETNS:+nsenter --net="$LAB_NETNS"} env TGT_IPC_SOCKET="$LAB/tgt" \
		tgtd -f --iscsi portal=127.0.0.1:0 || return 1
	lab_up tgtd 15 lab_tgtd_ready || return 1
	# shellcheck disable=SC1091
	. "$LAB/tgtd.config" || return 1
	first=$(lab_tgtadm --mode portal --op show | sed -n 's/^Portal: \(.*\),1$/\1/p')
	for address in $LAB_ADDRS; do
		lab_tgtadm --mode portal --op new --param "portal=$address:$LAB_ISCSI_PORT" >>"$LAB/tgtd.log" 2>&1 || return 1
	done
	lab_tgtadm --mode portal --op delete --param "portal=$first"
}

lab_tgtd_ready() {
	lab_tgtadm --mode portal --op show 2>/dev/null | grep -q '^Portal: 127'
}

lab_tgtadm() {
	TGT_IPC_SOCKET="$LAB/tgt" tgtadm --lld iscsi "$@"
}

# What is to be the same after lab_restart.
lab_tgtadm_kept() {
	lab_tgtadm "$@" || lab_fail "tgtadm $* failed" || return 1
	{
		printf lab_tgtadm
		for word; do
			printf " '%s'" "$(printf %s "$word" | sed "s/'/'\\\\''/g")"
		done
		echo
	} >>"$LAB/tgtd.config"
}

# lab_tgt_lun LUN FILE [KEY=VALUE ...]: LUN is 1 or more. Keys: bstype=rdwr (page cache, default) or aio (O_DIRECT),
# bsoflags=sync, blocksize=4096, wce=0 (no write cache, by the mode page), and those of tgtadm --params:
# readonly=1, thin_provisioning=1, vendor_id=, product_id=, scsi_id= (VPD 83), scsi_sn= (VPD 80), online=0 ...
lab_tgt_lun() {
	local lun file word params
	lun=$1
	file=$2
	shift 2
	params=
	set -- "$@" --
	while [ "$1" != -- ]; do
		case $1 in
		bstype=*) set -- "$@" --bstype "${1#*=}" ;;
		bsoflags=*) set -- "$@" --bsoflags "${1#*=}" ;;
		blocksize=*) set -- "$@" --blocksize "${1#*=}" ;;
		# The caching mode page as tgt has it, with and without the WCE bit.
		wce=0) params="$params,mode_page=8:0:18:0x10:0:0xff:0xff:0:0:0xff:0xff:0xff:0xff:0x80:0x14:0:0:0:0:0:0" ;;
		wce=1) params="$params,mode_page=8:0:18:0x14:0:0xff:0xff:0:0:0xff:0xff:0xff:0xff:0x80:0x14:0:0:0:0:0:0" ;;
		*=*) params="$params,$1" ;;
		*) lab_fail "lab_tgt_lun: not KEY=VALUE: $1" || return 1 ;;
		esac
		shift
	done
	shift
	lab_tgtadm_kept --mode logicalunit --op new --tid 1 --lun "$lun" --backing-store "$file" "$@" || return 1
	[ -z "$params" ] || lab_tgtadm_kept --mode logicalunit --op update --tid 1 --lun "$lun" --params "${params#,}"
}

# lab_tgt_chap USER PASSWORD [USER PASSWORD]: logins need these; the second pair is what the target answers with.
lab_tgt_chap() {
	LAB_CHAP="$1%$2@"
	lab_tgtadm_kept --mode account --op new --user "$1" --password "$2" &&
		lab_tgtadm_kept --mode account --op bind --tid 1 --user "$1" || return 1
	[ $# = 2 ] || {
		lab_tgtadm_kept --mode account --op new --user "$3" --password "$4" &&
			lab_tgtadm_kept --mode account --op bind --tid 1 --user "$3" --outgoing
	}
}

# lab_iscsi_url LUN [KEY=VALUE ...]
lab_iscsi_url() {
	printf 'iscsi://%s%s' "$LAB_CHAP" "$LAB_ADDR"
	[ "$LAB_ISCSI_PORT" = 3260 ] || printf ':%s' "$LAB_ISCSI_PORT"
	printf '/%s/%s' "$LAB_IQN" "$1"
	shift
	lab_query "$@"
}

# ---- devices and file systems ----

# lab_loop FILE [OPTION of losetup ...]: prints the loop device that it makes of FILE, with direct I/O where that works.
lab_loop() {
	local file device
	lab_need losetup || return 1
	file=$1
	shift
	printf '%s\n' "$file" >>"$LAB/loops"
	device=$(losetup --find --show --direct-io=on "$@" "$file" 2>/dev/null) ||
		device=$(losetup --find --show "$@" "$file") || return 1
	# The keeper has the device open, and so --detach only marks it: it goes with the keeper, however that ends.
	lab_keeper "${device##*/}" "exec <$device" && losetup --detach "$device" || return 1
	echo "$device"
}

# lab_mount_ext4 FILE DIR [OPTION of mkfs.ext4 ...]: makes a file system of the size of FILE in it.
lab_mount_ext4() {
	local file dir
	lab_need mkfs.ext4 || return 1
	file=$1
	dir=$2
	shift 2
	printf '%s\n' "$dir" >>"$LAB/mounts"
	mkfs.ext4 -q -F "$@" "$file" && mkdir -p "$dir" && mount -o loop "$file" "$dir"
}

# lab_mount_tmpfs DIR SIZE
lab_mount_tmpfs() {
	printf '%s\n' "$1" >>"$LAB/mounts"
	mkdir -p "$1" && mount -t tmpfs -o "size=$2" tmpfs "$1"
}

# lab_mount_ram DIR SIZE: a file system of this size that no disk is behind. Ganesha from version 6 on exports no tmpfs, so
# it is an ext4 in a file in one; all of its blocks are for files.
lab_mount_ram() {
	lab_mount_tmpfs "$1.ram" 100% && truncate -s "$2" "$1.ram/image" &&
		lab_mount_ext4 "$1.ram/image" "$1" -m 0 -O ^has_journal
}

# lab_fill FILE: all the space that is left in its file system goes into FILE.
lab_fill() {
	local left
	left=$(($(stat --file-system --format '%a * %S' "$(dirname "$1")")))
	until [ "$left" -le 0 ] || fallocate --length "$left" "$1" 2>/dev/null; do left=$((left - 262144)); done
	cat /dev/zero >>"$1" 2>/dev/null || :
}
