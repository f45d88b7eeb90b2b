#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What the program writes into a file, at any depth, size and mix: nothing of it compresses, no sector comes twice, each
# proves itself, and none is what a read had left in a buffer. TAP output.
# SAMEDISK: the program (default ./samedisk).
program=${SAMEDISK:-$PWD/samedisk}
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
[ -x "$program" ] || { echo "Bail out! no program $program (set SAMEDISK)"; exit 99; }
command -v python3 > /dev/null || { echo '1..0 # SKIP no python3'; exit 0; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 99

n=0 failed=0
report() { # NAME RESULT
  n=$((n + 1))
  if [ "$2" -eq 0 ]; then
    echo "ok $n - $1"
  else
    failed=1
    echo "not ok $n - $1"
    sed 's/^/# /' out
  fi
}

# packed NAME COMMAND...: by it, what was written stays at least 99 % of its size.
packed() {
  command -v "$2" > /dev/null || { n=$((n + 1)); echo "ok $n - $1 # SKIP no $2"; return; }
  what=$1
  shift
  "$@" < kept > packed 2> out
  echo "$(stat -c %s kept) bytes become $(stat -c %s packed)" >> out
  [ "$(stat -c %s packed)" -ge $(($(stat -c %s kept) * 99 / 100)) ]
  report "$what" $?
}

# looked NAME: what lies in the file now.
looked() {
  python3 "$top/tests/integration/check.py" ours file kept > out 2>&1
  report "$1: each sector proves itself, none comes twice" $?
  packed "$1: lz4" lz4 -B4 -c
  packed "$1: zstd" zstd -3 --long=27 -c
}

# written NAME KEY=VALUE...: 8 MiB that were zeros before, by one run without a fill.
written() {
  name=$1
  shift
  rm -f file
  { printf '[p]\nsize=8m\nio_size=16m\nramp_time=0\nprepare=none\nrounds=1\n'; printf '%s\n' "$@"; } > p.ini
  "$program" run p.ini f="file:$tmp/file?direct=no" --allow-full -q > out 2>&1
  report "$name: runs" $?
  looked "$name"
}

for depth in 1 32; do
  written "depth $depth, 4k random" rw=randwrite bs=4k iodepth=$depth
  written "depth $depth, sectors" rw=randwrite bs=512 iodepth=$depth
  written "depth $depth, 8k unaligned" rw=randwrite bs=8k ba=512 iodepth=$depth
  written "depth $depth, 1m" rw=write bs=1m iodepth=$depth
  written "depth $depth, reads and writes" rw=randrw rwmixread=30 bssplit=512/20:4k/40:64k/40 iodepth=$depth numjobs=2
done

# What a mix writes back is no copy of what it read: two runs over the same file, the second a mix of equal sizes.
rm -f file
printf '[p]\nsize=8m\nramp_time=0\nprepare=fill\nrounds=1\nrw=randrw\nrwmixread=50\nbs=4k\nio_size=8m\niodepth=8\n' > p.ini
"$program" run p.ini f="file:$tmp/file?direct=no" --allow-full -q > out 2>&1
report 'a mix over a filled file: runs' $?
looked 'a mix over a filled file'

# The same seed leaves the same bytes, at any depth, where no two writes meet; but for the first block, where it stands who
# wrote.
sum() {
  rm -f file
  printf '[p]\nsize=8m\nloops=1\nramp_time=0\nprepare=none\nrounds=1\nrw=write\nbs=64k\niodepth=%s\n' "$1" > p.ini
  "$program" run p.ini f="file:$tmp/file?direct=no" --seed "$2" --allow-full -q > out 2>&1 && tail -c +4097 file | cksum
}
one=$(sum 1 7) deep=$(sum 16 7) other=$(sum 1 8)
[ -n "$one" ] && [ "$one" = "$deep" ]
report 'the same seed leaves the same bytes at depth 1 and 16' $?
[ "$one" != "$other" ]
report 'another seed leaves others' $?
echo "1..$n"
exit $failed
