#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The experiments of tests/lab/experiments.sh, whose outcome follows from the links and servers, within their bounds. TAP
# output; needs root and two minutes. Client, links and servers share this machine's CPUs with whatever else runs: what is out
# of its bounds is tried three times, and bounds are wider by EXPERIMENT_SLACK than those that the manual page is held to.
# SAMEDISK_NO_FIGURES=1 in the environment leaves only those that are counted, not timed.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"

[ "$(id -u)" = 0 ] || it_skip_all 'needs root: servers, network namespaces, TUN devices'
for program in python3 timeout ganesha.nfsd tgtd ip tc chrt tshark dumpcap; do
	command -v "$program" >/dev/null || it_skip_all "$program is missing"
done
[ -c /dev/net/tun ] || it_skip_all 'there is no /dev/net/tun'
export builddir SAMEDISK
export EXPERIMENT_SLACK=1.6
set -- --tap
[ -z "${SAMEDISK_NO_FIGURES:-}" ] || set -- "$@" --only e
exec sh "$LAB_HOME/experiments.sh" "$@"
