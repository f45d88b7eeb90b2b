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

# between NAME LOW HIGH COMMAND...: by it, the file becomes LOW to HIGH percent of its size.
between() {
  command -v "$4" > /dev/null || { n=$((n + 1)); echo "ok $n - $1 # SKIP no $4"; return; }
  what=$1 low=$2 high=$3
  shift 3
  "$@" < file > packed 2> out
  size=$(stat -c %s file) less=$(stat -c %s packed)
  echo "$size bytes become $less" >> out
  [ $((less * 100)) -ge $((size * low)) ] && [ $((less * 100)) -le $((size * high)) ]
  report "$what" $?
}

# chosen NAME WORDS LOW HIGH LZ4 ZSTD KEY...: 16 MiB of other data: the row says WORDS, LOW to HIGH percent of the blocks
# are copies, and LZ4 and ZSTD percent of the bytes are left, give or take three (-: any number).
chosen() {
  name=$1 words=$2 low=$3 high=$4 lz4=$5 zstd=$6
  shift 6
  rm -f file
  { printf '[p]\nsize=16m\nloops=1\nramp_time=0\nrounds=1\niodepth=8\n'; printf '%s\n' "$@"; } > p.ini
  "$program" run p.ini f="file:$tmp/file?direct=no" --seed 5 --allow-full -q > out 2>&1 && grep -q "; data $words;" out
  report "$name: the row says so" $?
  python3 "$top/tests/integration/check.py" chosen file "$low" "$high" > out 2>&1
  report "$name: ours or zeros, and as many copies as asked for" $?
  between "$name: lz4" $((lz4 < 3 ? 0 : lz4 - 3)) $((lz4 + 3)) lz4 -B4 -c
  [ "$zstd" = - ] && return
  between "$name: zstd" $((zstd < 3 ? 0 : zstd - 3)) $((zstd + 3)) zstd -3 --long=27 -c
}

chosen 'compressible, written over a fill' '50 % compressible' 0 0 52 52 rw=write bs=64k buffer_compress_percentage=50
chosen 'compressible, as filled' '30 % compressible' 0 0 72 72 rw=randrw rwmixread=99 bs=4k io_size=64k loops=0 \
  buffer_compress_percentage=30
chosen 'duplicates' '40 % duplicates' 38 42 65 62 rw=write bs=4k dedupe_percentage=40 prepare=none
chosen 'duplicates, as filled' '60 % duplicates' 45 75 100 - rw=randrw rwmixread=99 bs=4k io_size=64k loops=0 \
  dedupe_percentage=60
chosen 'compressible duplicates' '50 % compressible, 50 % duplicates' 47 53 29 27 rw=write bs=4k prepare=none \
  buffer_compress_percentage=50 dedupe_percentage=50

# The fill is made once, and read as well.
printf '[global]\nsize=4m\nio_size=64k\nramp_time=0\nrounds=1\nprepare=fill\n' > two.ini
{ cat two.ini; printf '[z]\nrw=read\nzero_buffers\n'; } > p.ini
rm -f file
"$program" run p.ini f="file:$tmp/file?direct=no" --allow-full -q > out 2>&1 && grep -q '; filled with data zeros;' out
report 'a working set of zeros that is only read: said' $?
{ cat two.ini; printf '[z]\nrw=write\nzero_buffers\n[r]\nrw=read\n'; } > p.ini
rm -f file
"$program" run p.ini f="file:$tmp/file?direct=no" --allow-full > out 2>&1 && grep -q 'different data.*: it is random' out &&
  grep -q '; data zeros; filled with data random;' out
report 'patterns with different data: the fill is random, and that is said' $?
chosen 'zeros' zeros 99 100 0 0 rw=write bs=64k zero_buffers

# Zeros prove nothing: by the block with the record of who wrote, and zeros alone, the file is known again. One foreign
# sector in it, or no such block, and nothing is written without consent.
again() { "$program" run p.ini f="file:$tmp/file?direct=no" --allow-full -q "$@" > out 2>&1; }
again
report 'zeros: the next run knows its own record' $?
printf x | dd of=file bs=1 seek=9000001 conv=notrunc 2> /dev/null
! again && grep -q 'unknown data' out
report 'zeros: one foreign byte among them is found' $?
truncate -s 0 file
truncate -s 16M file
! again && grep -q 'all zeros' out
report 'zeros: without the record consent is asked for' $?
again --destroy f
report 'zeros: and taken' $?

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
