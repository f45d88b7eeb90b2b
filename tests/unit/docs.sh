#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The manual and --help say the same, in both directions. TAP output. SAMEDISK: the program (default ./samedisk).
program=${SAMEDISK:-$PWD/samedisk}
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
[ -d "$top/src" ] || top=$(cd "$(dirname "$0")/../.." && pwd)
man=$top/src/samedisk.1
man5=$top/patterns/samedisk-patterns.5
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

[ -x "$program" ] || { echo "Bail out! no program $program (set SAMEDISK)"; exit 99; }

n=0 failed=0
same() { # NAME FILE FILE: both hold the same lines, and some
  n=$((n + 1))
  sort -u "$2" > "$tmp/a"; sort -u "$3" > "$tmp/b"
  if [ -s "$tmp/a" ] && cmp -s "$tmp/a" "$tmp/b"; then
    echo "ok $n - $1"
  else
    failed=1
    echo "not ok $n - $1"
    [ -s "$tmp/a" ] || echo "# nothing was found: has the form of the text changed?"
    comm -23 "$tmp/a" "$tmp/b" | sed 's/^/# only in the first: /'
    comm -13 "$tmp/a" "$tmp/b" | sed 's/^/# only in the second: /'
  fi
}

"$program" --help > "$tmp/help" || exit 99
"$program" run --help > "$tmp/run" || exit 99
"$program" --version > "$tmp/version" || exit 99

# Long names of options in a help text's own section: "  -p, --pattern FILE", "  --seed N".
options() { sed -n '/^Options$/,/^$/p' "$1" | sed -nE 's/^  (-[a-zA-Z], )?--([a-z][a-z_-]*).*/\2/p'; }
options "$tmp/help" > "$tmp/help.options"
options "$tmp/run" > "$tmp/run.options"
sed -nE 's/^\.It Fl -([a-z][a-z_-]*).*/\1/p' "$man" > "$tmp/man.options"
same "options: samedisk --help, samedisk run --help" "$tmp/help.options" "$tmp/run.options"
same "options: samedisk run --help, the manual" "$tmp/run.options" "$tmp/man.options"

# Options of one letter.
short() { sed -n '/^Options$/,/^$/p' "$1" | sed -nE 's/^  -([a-zA-Z]), --([a-z_-]*).*/\1 \2/p'; }
short "$tmp/run" > "$tmp/run.short"
sed -nE 's/^\.It Fl -([a-z_-]+)( Ar [A-Z]+)? , Fl ([a-zA-Z]).*/\3 \1/p' "$man" > "$tmp/man.short"
same "short options: samedisk run --help, the manual" "$tmp/run.short" "$tmp/man.short"

sed -nE 's/^  samedisk ([a-z]+) .*/\1/p' "$tmp/help" > "$tmp/help.commands"
sed -n '/^\.Ss Commands/,/^\.Ss Words/p' "$man" | sed -nE 's/^\.It Cm ([a-z]+)$/\1/p' > "$tmp/man.commands"
same "commands: samedisk --help, the manual" "$tmp/help.commands" "$tmp/man.commands"
while read -r command; do
  "$program" "$command" --help < /dev/null > "$tmp/one" || exit 99
  options "$tmp/one" > "$tmp/one.options"
  grep -Fx -f "$tmp/man.options" "$tmp/one.options" > "$tmp/known"
  same "options of $command are in the manual" "$tmp/one.options" "$tmp/known"
done < "$tmp/help.commands"

# Pattern keys.
sed -n '/^Pattern keys/,/^$/p' "$tmp/run" | sed -nE 's/^  --([a-z][a-z_]*).*/\1/p' > "$tmp/run.keys"
sed -nE 's/^\.It Cm ([a-z_]+) Ns =.*/\1/p' "$man5" > "$tmp/man.keys"
same "pattern keys: samedisk run --help, samedisk-patterns(5)" "$tmp/run.keys" "$tmp/man.keys"

# Access keys of the kinds of targets in this build.
sed -nE 's/^Access keys of ([a-z]+) targets.*/\1/p' "$tmp/run" > "$tmp/kinds"
while read -r kind; do
  sed -n "/^Access keys of $kind targets/,/^\$/p" "$tmp/run" | sed -nE 's/^  ([a-z][a-z_]*)=.*/\1/p' > "$tmp/help.keys"
  sed -n "/^\.Ss Keys of $kind targets/,/^\.S[sh] [^K]/p" "$man" | sed "1!{/^\.S[sh]/,\$d;}" \
    | sed -nE 's/^\.It Cm ([a-z_]+) Ns =.*/\1/p' > "$tmp/man.keys"
  same "keys of $kind targets: samedisk run --help, the manual" "$tmp/help.keys" "$tmp/man.keys"
done < "$tmp/kinds"

# A kind that only the manual knows was left out of this build, and --version says so.
sed -nE 's/^\.Ss Keys of ([a-z]+) targets/\1/p' "$man" | sort > "$tmp/man.kinds"
{ cat "$tmp/kinds"; sed -nE 's/^  left out: ([a-z]+):.*/\1/p' "$tmp/version"; } | sort > "$tmp/all.kinds"
same "kinds of targets: the manual, this build with what it left out" "$tmp/man.kinds" "$tmp/all.kinds"

# Links between the two pages, and pages without warnings where man can tell.
if man --warnings -l "$man" > /dev/null 2> "$tmp/warnings"; then
  n=$((n + 1))
  if [ -s "$tmp/warnings" ]; then
    failed=1
    echo "not ok $n - the manual has no warnings"
    sed 's/^/# /' "$tmp/warnings"
  else
    echo "ok $n - the manual has no warnings"
  fi
fi
echo "1..$n"
exit $failed
