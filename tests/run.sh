#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what is missing, builds in every way that is supported, and runs all tests. Needs root: the tests start servers of
# their own, loop devices and network namespaces. Ends with the line "N passed, N failed, N skipped".
#
#   sh tests/run.sh              everything (what CI runs)
#   sh tests/run.sh STEP ...     only these: gcc clang minimal asan tsan valgrind fuzz style dist
#
# Builds go to build-test/STEP; a step's log is build-test/STEP.log.
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$top" || exit 1
out=$top/build-test
jobs=$(nproc)
passed=0 failed=0 skipped=0
steps=${*:-gcc clang minimal asan tsan valgrind fuzz style dist}

say() { printf '%s\n' "== $*"; }

# The harness leaves one .trs file a test program, with a line for each test case in it.
tally() { # FOLDER
  results=$(find "$1" -name '*.trs' -exec sed -n 's/^:test-result: \([A-Z]*\).*/\1/p' {} +)
  p=$(printf '%s\n' "$results" | grep -cE '^(PASS|XFAIL)$')
  f=$(printf '%s\n' "$results" | grep -cE '^(FAIL|XPASS|ERROR)$')
  s=$(printf '%s\n' "$results" | grep -c '^SKIP$')
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  say "$(basename "$1"): $p passed, $f failed, $s skipped"
}

one() { # NAME STATUS : a step that is one test
  if [ "$2" = 0 ]; then passed=$((passed + 1)); say "$1: passed"; return; fi
  failed=$((failed + 1))
  say "$1: FAILED, the end of its log:"
  tail -n 40 "$out/$1.log"
}

configure() { # NAME ARGUMENT ... : a build folder of its own
  rm -rf "${out:?}/$1" && mkdir -p "$out/$1" && cd "$out/$1" || return 1
  shift
  "$top/configure" --enable-option-checking=fatal --enable-werror "$@"
}

failed_servers() { # NAME
  find "$out/$1/tests/integration" -name '*.trs' -exec grep -lE '^:test-result: (FAIL|ERROR|XPASS)' {} + 2> /dev/null
}

# Tests with servers have time limits and figures, and share the CPUs of this machine with their servers: one that failed is
# tried a second time, alone, and that is said. What fails twice has failed.
again() { # NAME
  for trs in $(failed_servers "$1"); do
    test=tests/integration/$(basename "$trs" .trs)
    [ -f "$top/$test.sh" ] || continue
    say "$1: $test failed, and is tried again; its first log:"
    grep -vE '^(ok|PASS|#? *$)' "$out/$1/$test.log" | tail -n 30
    cp -p "$out/$1/$test.log" "$out/$1/$test.first.txt"
    make -C "$out/$1" -k check TESTS="$test.sh" >> "$out/$1.log" 2>&1
    # As old as the first one was: else make would run those again that come after it.
    touch -r "$out/$1/$test.first.txt" "$out/$1/$test.log"
  done
}

check() { # NAME MAKE-ARGUMENTS -- CONFIGURE-ARGUMENTS
  name=$1 make=
  shift
  while [ "$1" != -- ]; do make="$make $1"; shift; done
  shift
  say "$name: building and testing"
  # shellcheck disable=SC2086
  { (configure "$name" "$@") && make -C "$out/$name" -j"$jobs" all && make -C "$out/$name" -k -j"$jobs" $make; } > "$out/$name.log" 2>&1
  status=$?
  if ! find "$out/$name" -name '*.trs' 2>/dev/null | grep -q .; then
    one "$name" 1
    return
  fi
  if [ $status != 0 ] && [ -n "$(failed_servers "$name")" ]; then
    again "$name"
    make -C "$out/$name" -k check TESTS= >> "$out/$name.log" 2>&1 # is all there that is to be built?
    status=$?
  fi
  tally "$out/$name"
  if [ "$f" = 0 ]; then
    # What failed otherwise (a test that did not build) is a failure too.
    [ $status = 0 ] || one "$name" $status
    return
  fi
  find "$out/$name" -name '*.trs' -exec grep -lE '^:test-result: (FAIL|ERROR|XPASS)' {} + | while read -r trs; do
    say "${trs%.trs}.log:"
    grep -vE '^(ok|PASS|#? *$)' "${trs%.trs}.log" | tail -n 40
  done
}

# Configured in itself, a tree cannot be configured in other folders.
[ ! -f config.status ] || { say "this tree was configured for a build in itself: make distclean first"; exit 1; }
sh tests/lab/packages.sh install build servers tests || exit 1
mkdir -p "$out"
say "autogen"
./autogen.sh > "$out/autogen.log" 2>&1 || { tail "$out/autogen.log"; exit 1; }

for step in $steps; do
  began=$(date +%s)
  case $step in
  gcc) check gcc check -- CC=gcc ;;
  clang) check clang check-unit -- CC=clang ;;
  minimal) check minimal check-unit -- --without-libnfs --without-libiscsi --without-libaio --without-liburing --without-liburing ;;
  asan) check asan check-light -- --enable-sanitizer=address,undefined CFLAGS='-O1 -g' ;;
  tsan) check tsan check-light -- --enable-sanitizer=thread CFLAGS='-O1 -g' ;;
  valgrind) check valgrind check-valgrind -- CC=gcc CFLAGS='-O1 -g' ;;
  fuzz)
    say "fuzz: every target for ${FUZZ_SECONDS:-4} s"
    sh tests/fuzz/run.sh "$out/fuzz" "${FUZZ_SECONDS:-4}" > "$out/fuzz.log" 2>&1
    one fuzz $? ;;
  style)
    sh tests/style.sh > "$out/style.log" 2>&1
    one style $? ;;
  dist)
    say "dist: make distcheck"
    { (configure dist) && make -C "$out/dist" -s -j"$jobs" distcheck server_tests= device_tests= contract_tests=; } > "$out/dist.log" 2>&1
    one dist $? ;;
  *) say "no step '$step'"; exit 1 ;;
  esac
  say "$step took $(($(date +%s) - began)) s"
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
