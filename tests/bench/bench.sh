#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The benchmark: what samedisk costs per I/O, beside fio in the same minutes, against the targets that it is to meet. No
# test: times need a quiet machine, and have a spread; instructions and system calls repeat. Root, up to 15 minutes.
#
#   make bench                        all cases, a table on stdout
#   make bench BENCH_CASES='null nfs-*'     some of them; sh tests/bench/bench.sh --list shows their names
#   make bench BENCH_QUICK=1          fewer and shorter runs, to try it
#   make bench FIO=path/to/fio        a fio with the nfs and libiscsi engines, which packages lack; the one in PATH
#                                     serves for the engines that it has
#   make bench-manual                 writes the manual page samedisk-performance.7 from the figures (or BENCH_MAN=FILE)
#
# Without NFS-Ganesha, tgt, valgrind, perf or fio the cases and figures that need them are missing, and that is said.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
builddir=$(cd "${builddir:-.}" && pwd)
BENCH_SAMEDISK=${SAMEDISK:-$builddir/samedisk}
BENCH_TOOLS=$builddir/tests
LAB_HOME=$srcdir/tests/lab
export BENCH_SAMEDISK BENCH_TOOLS

# shellcheck source=tests/lab/servers.sh
. "$LAB_HOME/servers.sh"

stop() {
	echo "bench: $1" >&2
	exit 1
}

case ${1:-} in --list) exec python3 -B "$srcdir/tests/bench/bench.py" --list ;; esac

# What is measured must be what is shipped. The flags are those of the build, when make starts this.
[ -x "$BENCH_SAMEDISK" ] || stop "there is no program $BENCH_SAMEDISK (set SAMEDISK or builddir)"
case ${BENCH_CFLAGS:--O2} in
*-fsanitize* | *-O0* | *-Og*) stop "this build is for finding errors ($BENCH_CFLAGS): configure one with -O2" ;;
*-O2* | *-O3*) ;;
*) stop "this build is not optimized ($BENCH_CFLAGS): configure with CFLAGS='-O2 -g'" ;;
esac
! grep -q __asan_init "$BENCH_SAMEDISK" || stop "$BENCH_SAMEDISK has a sanitizer in it"
command -v python3 >/dev/null || stop "python3 is missing"

lab_begin || exit 1
cd "$LAB" || exit 1
BENCH_DIR=$LAB
export BENCH_DIR

# pinned NAME: the server to the first CPU, the clients have the other.
pinned() {
	[ "$(nproc)" -lt 2 ] || taskset -ap 1 "$(lab_pid "$1")" >/dev/null 2>&1 || :
}

# The files that the servers and the local cases use are in memory: the client is to be measured, and not a disk.
lab_mount_tmpfs "$LAB/ram" 3g || exit 1
mkdir "$LAB/ram/data"
head -c 256M /dev/urandom >"$LAB/ram/data/file"
cp "$LAB/ram/data/file" "$LAB/ram/lun"
cp "$LAB/ram/data/file" "$LAB/ram/image"
export BENCH_FILE="$LAB/ram/data/file"
if cp "$LAB/ram/data/file" "$LAB/disk"; then export BENCH_DISK="$LAB/disk"; fi
if BENCH_LOOP=$(lab_loop "$LAB/ram/image"); then export BENCH_LOOP; fi
if command -v ganesha.nfsd >/dev/null && lab_ganesha data="$LAB/ram/data"; then
	pinned ganesha
	BENCH_NFS=$(lab_nfs_url data/file)
	export BENCH_NFS
fi
if command -v tgtd >/dev/null && lab_tgt && lab_tgt_lun 1 "$LAB/ram/lun"; then
	pinned tgtd
	BENCH_ISCSI=$(lab_iscsi_url 1)
	export BENCH_ISCSI
fi

lab_run python3 -B "$srcdir/tests/bench/bench.py" "$@"
status=$?
cd /
exit $status
