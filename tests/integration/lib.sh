# SPDX-License-Identifier: GPL-2.0-or-later
# What the integration tests share: TAP, commands that cannot hang, and the lab's servers. To be sourced by sh:
#
#   srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
#   . "$srcdir/tests/integration/lib.sh"
#   it_begin [PROGRAM ...]              # a lab; the current folder is an empty one in it
#   expect 'NAME' STATUS 'WORDS' "$SAMEDISK" probe null:
#   it_end
#
# The environment: srcdir is the top of the source, builddir where the programs are (default: the current folder),
# SAMEDISK overrides the program, IT_VERBOSE=1 shows all messages. WORDS is a shell pattern that must be found somewhere in
# what was printed: * stands for anything, [ ] ? for themselves if they are written \[ \] \?; '' is anything.
# shellcheck shell=dash

: "${srcdir:?}"
builddir=$(cd "${builddir:-.}" && pwd)
SAMEDISK=${SAMEDISK:-$builddir/samedisk}
LAB_HOME=$srcdir/tests/lab
it_count=0
it_failed=0
it_limit=20     # seconds that one command may take
it_secret=''    # must stand in nothing that a command prints
out=''          # files with what the last command printed
err=''
status=''       # and its exit status

# shellcheck source=tests/lab/servers.sh
. "$LAB_HOME/servers.sh"

# it_begin [PROGRAM ...]: skips the whole script where a PROGRAM is missing.
it_begin() {
	local program
	[ "$(id -u)" = 0 ] || it_skip_all "needs root: servers, loop devices, namespaces"
	for program in python3 timeout "$@"; do
		command -v "$program" >/dev/null || it_skip_all "$program is missing"
	done
	[ -x "$SAMEDISK" ] || {
		echo "Bail out! there is no program $SAMEDISK (set SAMEDISK or builddir)"
		exit 99
	}
	lab_begin || exit 99
	mkdir "$LAB/w" && cd "$LAB/w" || exit 99
	out=$LAB/stdout
	err=$LAB/stderr
}

it_skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

it_end() {
	echo "1..$it_count"
	cd /
	lab_end
	exit "$it_failed"
}

# What must work for the rest to make sense.
must() {
	"$@" || {
		echo "Bail out! failed: $*"
		cd /
		exit 99
	}
}

# ---- TAP ----

ok() {
	it_count=$((it_count + 1))
	echo "ok $it_count - $1"
}

# not_ok NAME [LINE ...]
not_ok() {
	it_count=$((it_count + 1))
	it_failed=1
	echo "not ok $it_count - $1"
	shift
	[ $# = 0 ] || printf '# %s\n' "$@"
}

skip() {
	it_count=$((it_count + 1))
	echo "ok $it_count - $1 # SKIP $2"
}

# test_that NAME COMMAND...: ok if COMMAND succeeds; what it prints is shown if not.
test_that() {
	local name
	name=$1
	shift
	if timeout -k 2 "$it_limit" "$@" >"$LAB/test_that" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "$* failed"
		sed 's/^\(# \)\{0,1\}/# /' "$LAB/test_that"
	fi
}

# same NAME GOT WANTED
same() {
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got:    $2" "wanted: $3"; fi
}

# ---- commands ----

# run COMMAND...: sets status, and fills $out and $err.
run() {
	timeout -k 2 "$it_limit" "$@" >"$out" 2>"$err" </dev/null
	status=$?
}

# expect NAME STATUS WORDS COMMAND...: the exit status, and WORDS on stderr, or if there is a result (STATUS 0 or 2) on
# stderr and then stdout.
expect() {
	local name wanted words why
	name=$1
	wanted=$2
	words=$3
	shift 3
	run "$@"
	why=$(it_status "$wanted"; it_words "$words" "$wanted"; it_leak)
	it_judge "$name" "$why" "$@"
}

# complains NAME STATUS WORDS ARGUMENT...: samedisk says one thing, well.
complains() {
	local name wanted words why
	name=$1
	wanted=$2
	words=$3
	shift 3
	run "$SAMEDISK" "$@"
	why=$(it_status "$wanted"; it_words "$words" "$wanted"; it_leak; it_clear 1
		[ "$1" = probe ] || [ ! -s "$out" ] || echo "stdout is not empty")
	it_judge "$name" "$why" samedisk "$@"
}

it_judge() {
	if [ -z "$2" ]; then
		ok "$1"
		[ -z "${IT_VERBOSE:-}" ] || sed 's/^/# stderr: /' "$err"
		return
	fi
	not_ok "$1"
	printf '%s\n' "$2" | sed 's/^/# /'
	shift 2
	echo "# command: $*"
	sed 's/^/# stderr: /; 12q' "$err"
	sed 's/^/# stdout: /; 12q' "$out"
}

it_status() {
	[ "$status" = "$1" ] && return
	case $status in
	124 | 137) echo "exit status $status: it did not end within $it_limit s" ;;
	*) echo "exit status $status, wanted $1" ;;
	esac
}

it_words() {
	local text
	text=$(cat "$err")
	case $2 in 0 | 2) text=$text$(cat "$out") ;; esac
	# shellcheck disable=SC2254
	case $text in *$1*) ;; *) echo "not found: $1" ;; esac
}

it_leak() {
	if [ -n "$it_secret" ] && grep -qF -e "$it_secret" "$out" "$err"; then echo "the password was printed"; fi
}

# it_clear LINES: so many lines on stderr, each ours, none garbled. Warnings do not count.
it_clear() {
	local lines
	grep -v '^samedisk: warning: ' "$err" >"$err.clear"
	lines=$(wc -l <"$err.clear")
	[ "$lines" = "$1" ] || echo "$lines lines on stderr, wanted $1"
	if grep -qv '^samedisk: ' "$err.clear"; then echo "a line does not begin with samedisk:"; fi
	if grep -qE '(^|[^A-Za-z0-9_])([A-Za-z0-9_-]+): (--)?\2: ' "$err.clear" ||
		grep -qE -e '--([a-z_]+): \1: ' "$err.clear"; then
		echo "a prefix stands twice"
	fi
	if grep -qE '(^|[^l]): *$|\(null\)|: Success|runtime error|Sanitizer|``' "$err.clear"; then echo "garbled"; fi
	if grep -qE '^.{1100}' "$err.clear"; then echo "a line of more than 1100 characters"; fi
}

# ---- results ----

# check NAME FUNCTION ARGUMENT...: a function of check.py
check() {
	local name
	name=$1
	shift
	test_that "$name" python3 "$srcdir/tests/integration/check.py" "$@"
}

# json NAME FILE EXPRESSION...: each is true, in Python, with `d` the document and `runs` its runs by target.
json() {
	local name
	name=$1
	shift
	check "$name" true "$@"
}

# sums FILE...: one line that changes with any byte, name, size or time of modification.
sums() {
	local file
	for file; do
		[ -e "$file" ] && stat -c '%n %s %y' "$file" && sha256sum <"$file" || echo "$file is not there"
	done | sha256sum
}

# names FOLDER...: one line that changes with any name or file number in them
names() {
	find "$@" -printf '%p %i %s\n' | sort | sha256sum
}
