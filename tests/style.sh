#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Mechanical checks of the tree: shell scripts, white space, licence lines, file sizes, manual pages.
cd "$(dirname "$0")/.." || exit 1
bad=0
fail() { bad=1; printf '%s\n' "$@"; }

scripts=$(git ls-files '*.sh' .ci/run 2>/dev/null) || scripts=$(find . -name '*.sh' ! -path './build*')
# shellcheck disable=SC2086
shellcheck -x -S warning -e SC1091 $scripts || bad=1

sources=$(find src backends tests -name '*.[ch]')
# shellcheck disable=SC2086
hits=$(grep -nE '[[:space:]]+$' $sources); [ -z "$hits" ] || fail "white space at the end of a line:" "$hits"
# shellcheck disable=SC2086
hits=$(grep -nP '^\t' $sources); [ -z "$hits" ] || fail "tabs:" "$hits"
hits=$(for f in $sources; do head -n 1 "$f" | grep -q 'SPDX-License-Identifier: GPL-2.0-or-later' || echo "$f"; done)
[ -z "$hits" ] || fail "no licence line:" "$hits"
hits=$(for f in $sources; do awk -v f="$f" 'length($0) > 140 { print f ":" FNR ": " length($0) " columns" }' "$f"; done)
[ -z "$hits" ] || fail "lines over 140 columns:" "$hits"
hits=$(find src backends -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 500')
[ -z "$hits" ] || fail "files over 500 lines:" "$hits"
for page in src/*.[17] patterns/*.5 tests/lab/*.7; do
  hits=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  [ -z "$hits" ] || fail "$page:" "$hits"
done
exit $bad
