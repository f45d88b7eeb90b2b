#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds every fuzz target with clang, address and undefined-behaviour sanitizers, and runs each for SECONDS, from its corpus.
#   sh tests/fuzz/run.sh FOLDER SECONDS
set -eu
out=$1 seconds=$2
top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
for source in "$top"/tests/fuzz/fuzz_*.c; do
  name=$(basename "$source" .c)
  case $name in # what a target needs besides the leaves and the patterns
  fuzz_nfs_calls)
    more="$top/backends/heed.c $top/backends/net/again.c $top/backends/net/sock.c"
    for part in calls export mount portmap record; do
      more="$more $top/backends/nfs/nfs_$part.c"
    done ;;
  fuzz_nfs_*) more="$top/backends/nfs/nfs_wire.c" ;;
  fuzz_iscsi_*)
    more="$top/backends/heed.c $top/backends/net/sock.c"
    for part in again chap context crc32c 'done' facts hash hold in keys login luns out recheck wire words; do
      more="$more $top/backends/iscsi/iscsi_$part.c"
    done ;;
  *) more= ;;
  esac
  # shellcheck disable=SC2046,SC2086
  clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -I"$top/src" -I"$top" -o "$out/$name" "$source" $more $(find "$top/src/base" "$top/src/option" "$top/src/pattern" -name '*.c') -lm
  mkdir -p "$out/corpus_${name#fuzz_}"
  echo "== $name"
  "$out/$name" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$out/$name-" -print_final_stats=1 \
    "$out/corpus_${name#fuzz_}" "$top/tests/fuzz/corpus_${name#fuzz_}"
done
