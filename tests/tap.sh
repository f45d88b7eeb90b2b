#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs a cmocka program and makes proper TAP of what it prints: one numbering and one plan for several groups of tests, and
# skipped tests as "ok ... # SKIP" (cmocka 1.1 says "not ok"). $TEST_WRAPPER, such as valgrind, goes in front of the program.
CMOCKA_MESSAGE_OUTPUT=TAP
export CMOCKA_MESSAGE_OUTPUT
status=$(mktemp) || exit 99
# shellcheck disable=SC2086
{ $TEST_WRAPPER "$@" 2>&1; echo $? > "$status"; } | awk '
  /^1\.\.[0-9]+$/ { next }
  /^(not )?ok / {
    skip = / # SKIP/
    bad = /^not ok/ && !skip
    name = $0
    sub(/^(not )?ok *[0-9]* *-? */, "", name)
    if (skip) { sub(/^# SKIP */, "", name); name = name " # SKIP" }
    printf "%s %d - %s\n", bad ? "not ok" : "ok", ++n, name
    next
  }
  { print /^#/ ? $0 : "# " $0 }
  END { printf "1..%d\n", n }'
read -r code < "$status"
rm -f "$status"
exit "$code"
