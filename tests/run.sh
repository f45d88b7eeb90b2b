#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what is missing, builds in every way that is supported, and runs all tests. Needs root: the tests start servers of
# their own, loop devices and network namespaces. Ends with the line "N passed, N failed, N skipped".
#
#   sh tests/run.sh              everything (what CI runs)
#   sh tests/run.sh STEP ...     only these: gcc clang minimal asan tsan valgrind fuzz style dist
#
# Builds go to build-test/STEP; a step's log is build-test/STEP.log. While the tests with servers of gcc run, which wait most of
# the time, the other steps are built, and run where nothing in them depends on the time, with what the CPUs have left.
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$top" || exit 1
out=$top/build-test
jobs=$(nproc)
began=$(date +%s)
passed=0 failed=0 skipped=0
early_only=0
[ "${1:-}" != --early ] || { early_only=1; shift; }
steps=
for step in gcc asan tsan clang minimal fuzz style valgrind dist; do
  case " ${*:-$step} " in *" $step "*) steps="$steps $step" ;; esac
done

say() { printf '%s\n' "== $*"; }

# The harness leaves one .trs file a test program, with a line for each test case in it.
tally() { # FOLDER
  results=$(find "$1" -name '*.trs' -exec sed -n 's/^:test-result: \([A-Z]*\).*/\1/p' {} +)
  p=$(printf '%s\n' "$results" | grep -cE '^(PASS|XFAIL)$')
  f=$(printf '%s\n' "$results" | grep -cE '^(FAIL|XPASS|ERROR)$')
  s=$(printf '%s\n' "$results" | grep -c '^SKIP$')
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  say "$(basename "$1"): $p passed, $f failed, $s skipped"
  [ "$s" = 0 ] || find "$1" -name '*.log' -exec sed -nE 's/^(ok [0-9]+ - .*# SKIP|1\.\.0 # SKIP)/   \1/p' {} +
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

failed_tests() { # NAME
  find "$out/$1" -name '*.trs' -exec grep -lE '^:test-result: (FAIL|ERROR|XPASS)' {} + 2> /dev/null
}

# Tests have time limits and figures, and share the CPUs of this machine with servers and builds: one that failed is tried a
# second time, alone, and that is said. What fails twice has failed, and so has at once what a sanitizer or valgrind complains
# about.
again() { # NAME
  for trs in $(failed_tests "$1"); do
    test=${trs#"$out/$1/"} test=${test%.trs}
    log=$out/$1/$test.log
    ! grep -qE 'Sanitizer|runtime error|^# ==[0-9]+==' "$log" || continue
    say "$1: $test failed, and is tried again; its first log:"
    grep -vE '^(ok|PASS|#? *$)' "$log" | tail -n 30
    cp -p "$log" "$out/$1/$test.first.txt"
    [ ! -f "$top/$test.sh" ] || test=$test.sh
    wrapper=
    # shellcheck disable=SC2016
    [ "$1" != valgrind ] || wrapper='$(valgrind)'
    make -C "$out/$1" -k check TESTS="$test" TEST_WRAPPER="$wrapper" >> "$out/$1.log" 2>&1
    # As old as the first one was: else make would run those again that come after it.
    touch -r "$out/$1/${test%.sh}.first.txt" "$log"
  done
}

configured() { # STEP
  case $1 in
  gcc) configure gcc CC=gcc ;;
  clang) configure clang CC=clang ;;
  minimal) configure minimal --without-libnfs --without-libiscsi --without-libaio --without-liburing CFLAGS='-O0 -g' ;;
  asan) configure asan --enable-sanitizer=address,undefined CFLAGS='-O1 -g' ;;
  tsan) configure tsan --enable-sanitizer=thread CFLAGS='-O1 -g' ;;
  valgrind) configure valgrind CC=gcc CFLAGS='-O1 -g' ;;
  esac
}

build() { # STEP
  (configured "$1") && make -C "$out/$1" -j"$jobs" all && make -C "$out/$1" -j"$jobs" check TESTS=
}

# ---- the steps, in two parts: what can be done beside others, and the rest ----

early() { # STEP : its status is left in STEP.early
  case $1 in
  asan | tsan) build "$1" ;;
  clang | minimal) build "$1" && make -C "$out/$1" -k -j"$jobs" check-unit ;;
  valgrind) build "$1" && make -C "$out/$1" -k -j"$jobs" check-valgrind ;;
  fuzz) sh tests/fuzz/run.sh "$out/fuzz" "${FUZZ_SECONDS:-4}" ;;
  style) sh tests/style.sh ;;
  dist) (configure dist CFLAGS='-O0') && make -C "$out/dist" -s -j"$jobs" distcheck server_tests= device_tests= contract_tests= \
    DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0 ;;
  esac > "$out/$1.log" 2>&1
  echo $? > "$out/$1.early.new"
  mv "$out/$1.early.new" "$out/$1.early"
}

late() { # STEP
  name=$1
  case $name in
  gcc) { build gcc && make -C "$out/gcc" -k -j$((jobs + 1)) check; } > "$out/gcc.log" 2>&1; status=$? ;;
  asan | tsan)
    read -r status < "$out/$name.early"
    if [ "$status" = 0 ]; then
      make -C "$out/$name" -k -j"$jobs" check-light >> "$out/$name.log" 2>&1
      status=$?
    fi ;;
  *) read -r status < "$out/$name.early" ;;
  esac
  case $name in fuzz | style | dist) one "$name" "$status"; return ;; esac
  if ! find "$out/$name" -name '*.trs' 2>/dev/null | grep -q .; then
    one "$name" 1
    return
  fi
  if [ "$status" != 0 ] && [ -n "$(failed_tests "$name")" ]; then
    again "$name"
    make -C "$out/$name" -k check TESTS= >> "$out/$name.log" 2>&1 # is all there that is to be built?
    status=$?
  fi
  tally "$out/$name"
  if [ "$f" = 0 ]; then
    # What failed otherwise (a test that did not build) is a failure too.
    [ "$status" = 0 ] || one "$name" "$status"
    return
  fi
  failed_tests "$name" | while read -r trs; do
    say "${trs%.trs}.log:"
    grep -vE '^(ok|PASS|#? *$)' "${trs%.trs}.log" | tail -n 40
  done
}

# ---- what is going on ----

# Tests whose log has been begun and whose result is not there yet.
running() { # STEP
  find "$out/$1/tests" -name '*.log' 2> /dev/null | while read -r log; do
    [ -e "${log%.log}.trs" ] || echo "${log#"$out/$1/tests/"}"
  done | sed 's/\.log$//' | tr '\n' ' '
}

tell() {
  while sleep 50 > /dev/null 2>&1; do
    now=
    for step in $steps; do
      [ -e "$out/$step.log" ] || continue # not yet begun
      [ ! -e "$out/$step.told" ] || continue
      if [ -e "$out/$step.early" ] && [ ! -e "$out/$step.late" ]; then continue; fi # its second part waits
      what=$(running "$step")
      now="$now${now:+; }$step: ${what:-building}"
    done
    say "$(($(date +%s) - began)) s: ${now:-finishing}"
  done
}

beside=0 teller=0
finish() {
  for pid in $beside $teller; do
    [ "$pid" = 0 ] || kill -- "-$pid" 2> /dev/null || kill "$pid" 2> /dev/null
  done
}

if [ "$early_only" = 1 ]; then
  for step in $steps; do
    [ "$step" = gcc ] || early "$step"
  done
  exit 0
fi

# Configured in itself, a tree cannot be configured in other folders.
[ ! -f config.status ] || { say "this tree was configured for a build in itself: make distclean first"; exit 1; }
for step; do
  case " $steps " in *" $step "*) ;; *) say "no step '$step'"; exit 1 ;; esac
done
sh tests/lab/packages.sh install build servers tests || exit 1
mkdir -p "$out"
say "autogen"
./autogen.sh > "$out/autogen.log" 2>&1 || { tail "$out/autogen.log"; exit 1; }

for step in $steps; do
  rm -f "$out/$step.early" "$out/$step.late" "$out/$step.told" "$out/$step.log"
done
trap finish EXIT
trap 'exit 130' INT TERM HUP
spare=
case $steps in *gcc*) spare='chrt --idle 0 nice -n 19' ;; esac
# shellcheck disable=SC2086
setsid $spare sh tests/run.sh --early $steps &
beside=$!
tell &
teller=$!

for step in $steps; do
  say "$step: $(($(date +%s) - began)) s"
  if [ "$step" != gcc ]; then
    # Nothing is in its way now.
    while [ ! -e "$out/$step.early" ] && kill -0 "$beside" 2> /dev/null; do sleep 1; done
    [ -e "$out/$step.early" ] || echo 1 > "$out/$step.early"
  fi
  : > "$out/$step.late"
  late "$step"
  : > "$out/$step.told"
done
say "all steps: $(($(date +%s) - began)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
