# SPDX-License-Identifier: GPL-2.0-or-later
# samedisk in the background, so that something can happen to it or to its servers at a known point. After lib.sh:
#
#   start ARGUMENT ...          samedisk ARGUMENT ..., in the background
#   reach 'NAME' 10 finished 3  waits until three runs are over; if not in 10 s, that is a failed test, and status 1
#   reach 'NAME' 5 running
#   lab_kill ganesha
#   finish 10                   waits for its end, sets status; what does not end in 10 s is killed: status 124
#
# shellcheck shell=dash disable=SC2034,SC2154

it_pid=         # of the program
it_took=        # milliseconds that finish has waited

# start ARGUMENT...; $it_prefix goes in front of the program.
start() {
	it_launch ${it_prefix:-} "$SAMEDISK" "$@"
}

it_launch() {
	# Nothing of the program before must be found by a condition that is faster than this one.
	: >"$out"
	: >"$err"
	# A background command ignores Ctrl-C, unless told.
	env --default-signal=INT,QUIT "$@" >"$out" 2>"$err" </dev/null &
	it_pid=$!
	# lab_end ends what is written here.
	echo "$it_pid $(lab_stat "$it_pid" 20)" >"$LAB/command.pid"
}

# reach NAME SECONDS CONDITION...: waits for CONDITION as long as the program lives.
reach() {
	local name seconds
	name=$1
	seconds=$2
	shift 2
	! lab_up command "$seconds" "$@" || return 0
	not_ok "$name" "did not come within $seconds s: $*"
	sed 's/^/# stderr: /; 12q' "$err"
	lab_down command 10
	wait "$it_pid"
	return 1
}

# finish SECONDS
finish() {
	local from
	from=$(it_ms)
	lab_until "$1" lab_not lab_alive command || kill -KILL "$it_pid"
	it_took=$(($(it_ms) - from))
	wait "$it_pid"
	status=$?
	# It ended by itself, or else it was too late for any other status.
	[ "$status" != 137 ] || [ "$it_took" -lt $(($1 * 1000)) ] || status=124
	rm -f "$LAB/command.pid"
}

it_ms() {
	echo $(($(date +%s%N) / 1000000))
}

# ended NAME STATUS WORDS: of the program that finish has waited for, and what it said on stderr, well.
ended() {
	local why
	why=$(it_status "$2"; it_words "$3" 1; it_leak
		if grep -E '(^|[^A-Za-z0-9_.])([A-Za-z0-9_-]+): \2: ' "$err" "$out"; then echo "a prefix stands twice"; fi
		if grep -E 'runtime error|Sanitizer' "$err"; then echo "a sanitizer found something"; fi)
	it_judge "$1" "$why" "$SAMEDISK"
}

# ---- where it is: conditions for reach ----

# finished N: so many runs are over; each has a line on stderr, before the next begins.
finished() {
	[ "$(grep -c '^run ' "$err")" -ge "$1" ]
}

# running: workers are at it, in the ramp or in the window: they have used more of a CPU than connecting takes.
running() {
	local task rest ns
	for task in "/proc/$it_pid/task/"*; do
		[ "${task##*/}" != "$it_pid" ] && read -r ns rest 2>/dev/null <"$task/schedstat" || continue
		[ "$ns" -lt 20000000 ] || return 0
	done
	return 1
}

# between: no worker is there, only the coordinator and who names what takes long.
between() {
	set -- "/proc/$it_pid/task/"*
	[ $# -le 2 ]
}

# written FILE KIB: so much of a file has storage, on the server's side.
written() {
	[ "$(($(stat -c '%b * %B / 1024' "$1" 2>/dev/null || echo 0)))" -ge "$2" ]
}
