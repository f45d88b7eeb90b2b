#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The program as a user meets it, over null targets and files of a temporary folder. TAP output.
# SAMEDISK: the program (default ./samedisk).
program=${SAMEDISK:-$PWD/samedisk}
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
[ -d "$top/src" ] || top=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$program" ] || { echo "Bail out! no program $program (set SAMEDISK)"; exit 99; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/data"

cat > "$tmp/p.ini" <<'END'
[global]
size = 4m
runtime = 50ms
ramp_time = 0
prepare = none
[writes]
rw = randwrite
bs = 8k
[reads]
rw = randread
bs = 4k
END

n=0 failed=0
report() { # NAME RESULT
  n=$((n + 1))
  if [ "$2" -eq 0 ]; then
    echo "ok $n - $1"
  else
    failed=1
    echo "not ok $n - $1"
    sed 's/^/# /' "$tmp/out" "$tmp/err"
  fi
}
run() { "$program" "$@" > "$tmp/out" 2> "$tmp/err"; }
wrong() { # EXIT-STATUS WORDS, then the arguments: the error says these words, and nothing goes to standard output
  wanted=$1 words=$2
  shift 2
  run "$@"
  got=$?
  [ $got -eq "$wanted" ] && grep -qF -- "$words" "$tmp/err" && [ ! -s "$tmp/out" ]
  report "$* -> $wanted, $words" $?
}

wrong 1 "Commands"
wrong 1 "did you mean run?" ran null:
wrong 1 "to measure: samedisk run null:" null:
wrong 1 "no target" run
wrong 1 "did you mean --iodepth?" run null: --iodept 4
wrong 1 "--lat is an access key" run null: --lat 5us
wrong 1 "write --iodepth N" run 'null:?iodepth=4'
wrong 1 "a target begins with nfs://" run nfs:/host/x
wrong 1 "'nosuch' is no pattern file" run nosuch null:
wrong 1 "Iometer" run x.icf null:
wrong 1 "there are: null" run null: --reference nfs
wrong 1 "given automatically" run null: --destroy null
wrong 1 "--note KEY=VALUE" run null: --note array
wrong 1 "--destroy t= names nothing: was a shell variable empty?" run "t=$tmp/data/f" --destroy t=
wrong 1 "names nothing in a part of it: was a shell variable empty?" run "t=$tmp/data/f" --destroy t=ext4,
wrong 1 "names nothing in a part of it" run "t=$tmp/data/f" --destroy "t=ext4, ,gpt"
wrong 1 "names nothing before the '=': was a shell variable empty?" run "t=$tmp/data/f" --destroy =x
wrong 1 "was a shell variable empty?" run t=
wrong 1 "lat= has an empty value: was a shell variable empty?" run t=null: --set t.lat=
wrong 1 "lat= has an empty value: was a shell variable empty?" run 't=null:?lat='
wrong 1 "--reference has an empty value: was a shell variable empty?" run null: --reference ''
wrong 1 "cannot" run "$tmp/p.ini" null: --json "$tmp/nosuch/r.json"
wrong 1 "all of them write" run "$tmp/p.ini" null: --read-only --only writes -q
wrong 3 "/nosuch/folder/file" run "$tmp/p.ini" null: gone=/nosuch/folder/file

# A dry run shows what would be created, and creates nothing.
run run "$tmp/p.ini" f=file:"$tmp/data/x" --allow-full --dry-run --json "$tmp/dry.json"
got=$?
[ $got -eq 0 ] && grep -q "file:$tmp/data/x does not exist; will be created" "$tmp/out" && grep -q "^expected duration" "$tmp/out" &&
  [ ! -e "$tmp/data/x" ] && [ ! -e "$tmp/dry.json" ]
report "a dry run writes nothing" $?

# Of the keys it shows what the load is, and what is not default; --verbose shows all.
run run "$tmp/p.ini" n=null: --set n.lat=1ms --iodepth 4 --dry-run
grep -q '^ *keys: lat=1ms$' "$tmp/out" && grep -q '^    iodepth=4$' "$tmp/out" && grep -q '^    rw=randwrite$' "$tmp/out" &&
  grep -q '^    prepare=none$' "$tmp/out" && ! grep -qE '^    (numjobs|rwmixread|position)=' "$tmp/out"
report "a dry run shows the keys that are not default" $?
run run "$tmp/p.ini" n=null: --dry-run --verbose
grep -q '^ *keys: size=1g lat=0s ' "$tmp/out" && grep -q '^    numjobs=1$' "$tmp/out"
report "with --verbose all keys" $?

# What is in force of each access key, whether it was given or not; block devices take keys as the help says.
run probe 'null:?max_depth=7' && grep -q '^  max_depth= *7$' "$tmp/out" && grep -q '^  write_cache= *yes$' "$tmp/out" &&
  grep -q '^  delay= *0s$' "$tmp/out"
report "probe shows every key in force" $?
"$program" run --help > "$tmp/out"
grep -q '^Access keys of block targets: file:/dev/NAME?KEY=VALUE, or --set LABEL.KEY=VALUE$' "$tmp/out" ||
  ! grep -q 'of block targets' "$tmp/out" # a build without libaio
report "the help says how block devices take keys" $?
if grep -q 'of block targets' "$tmp/out"; then
  wrong 1 "unknown key nosuch" run b=file:/dev/nosuch?nosuch=1 --dry-run
  wrong 3 "/dev/nosuch: no such device" run "b=file:/dev/nosuch?direct=no" --size 1m --dry-run
  wrong 3 "write file:/dev/nosuch?direct=no, or --set LABEL.KEY=VALUE" run "b=/dev/nosuch?direct=no" --size 1m --dry-run
fi

# The same file again is recognised as samedisk's own; --cleanup leaves what an earlier run has created.
run run "$tmp/p.ini" f=file:"$tmp/data/x" --allow-full -q && [ "$(stat -c %s "$tmp/data/x")" -eq 4194304 ]
report "a file is created with the size of the working set" $?
run run "$tmp/p.ini" f=file:"$tmp/data/x" g=file:"$tmp/data/y" --set f.direct=no --allow-full -q --cleanup
got=$?
[ $got -eq 0 ] && [ -e "$tmp/data/x" ] && [ ! -e "$tmp/data/y" ]
report "--cleanup removes what this run created, and nothing else" $?

# Data of somebody else is not touched.
head -c 4194304 /dev/urandom > "$tmp/data/z"
before=$(cksum < "$tmp/data/z")
run run "$tmp/p.ini" z=file:"$tmp/data/z" --allow-full -q
got=$?
[ $got -eq 1 ] && grep -q -- "--destroy z=unknown-data" "$tmp/err" && [ "$before" = "$(cksum < "$tmp/data/z")" ]
report "other data is refused, with the words to type" $?
run run "$tmp/p.ini" z=file:"$tmp/data/z" --allow-full -q --destroy z=unknown-data &&
  [ "$before" != "$(cksum < "$tmp/data/z")" ]
report "... and overwritten when these words are typed" $?

# Standard output holds the result only, and the same as the file.
run run "$tmp/p.ini" null: --format json --json "$tmp/r.json" --seed 7 && cmp -s "$tmp/out" "$tmp/r.json" &&
  head -c 1 "$tmp/out" | grep -q '{' &&
  grep -q '"seed":7,' "$tmp/out"
report "--format json prints what --json saves" $?
hash=$(grep -o '"hash":"[0-9a-f]*"' "$tmp/r.json")
run run "$tmp/p.ini" a=null: --json "$tmp/s.json" -q &&
  [ "$hash" = "$(grep -o '"hash":"[0-9a-f]*"' "$tmp/s.json")" ] && [ ! -s "$tmp/err" ]
report "the same load has the same hash; --quiet says nothing" $?

# An output costs nobody a file: it is created, or replaces a result.
untouched() { # FILE WORDS ARGUMENTS: refused with these words, the file as before, no I/O
  file=$1 words=$2
  shift 2
  before=$(cksum < "$file")
  wrong 1 "$words" "$@"
  [ "$before" = "$(cksum < "$file")" ]
  report "... and $(basename "$file") is as before" $?
}
head -c 65536 /dev/urandom > "$tmp/data/t"
untouched "$tmp/data/t" "this is the target 'file'" run "$tmp/p.ini" "$tmp/data/t" --only reads --size 64k --json "$tmp/data/t"
untouched "$tmp/data/t" "this is the target 'file'" run "$tmp/p.ini" "$tmp/data/t" --only reads --size 64k --json "$tmp/data/../data/t" \
  --force-output
untouched "$tmp/p.ini" "no samedisk result" run "$tmp/p.ini" null: --json "$tmp/p.ini"
wrong 1 "this is the target 'f'" run "$tmp/p.ini" f=file:"$tmp/data/new" --allow-full --json "$tmp/data/new"
wrong 1 "the name of a file is missing before it" run null: --json nfs://filer/vol1/vm.dat
wrong 1 "the name of a file is missing before it" run null: --json fc=/dev/sdc
run run "$tmp/p.ini" null: --json "$tmp/r.json" -q && grep -q '"finished"' "$tmp/r.json"
report "an earlier result is replaced" $?
echo hello > "$tmp/hello" && run run "$tmp/p.ini" null: --json "$tmp/hello" --force-output -q && grep -q '"finished"' "$tmp/hello"
report "--force-output replaces another file" $?

# A password is nowhere.
run run "$tmp/p.ini" null: 'i=iscsi://user%sesame@127.0.0.1:1/iqn.2001-04.com.example:d/0' --keep-going \
  --json "$tmp/p.json"
! grep -q sesame "$tmp/out" "$tmp/err" "$tmp/p.json" 2> /dev/null
report "no password in the output or the result" $?

run run "$tmp/p.ini" null: -q && ! LC_ALL=C grep -q '[^[:print:]]' "$tmp/out" && grep -q '^writes  *null' "$tmp/out"
report "the table" $?
"$program" run "$tmp/p.ini" null: -q > /dev/full 2> "$tmp/err"
[ $? -eq 1 ] && grep -q "standard output" "$tmp/err"
report "a table that cannot be written is an error" $?

# What ships can be shown, and used as one's own file.
run patterns && grep -q '^quick ' "$tmp/out"
report "patterns lists quick" $?
run patterns quick && cmp -s "$tmp/out" "$top/patterns/quick.ini"
report "patterns quick shows the file" $?
wrong 1 "did you mean quick?" patterns quikc
mkdir "$tmp/own" && cp "$tmp/p.ini" "$tmp/own/mine.ini"
SAMEDISK_PATTERNS=$tmp/own "$program" run mine null: -q > "$tmp/out" 2> "$tmp/err"
report "SAMEDISK_PATTERNS is searched first" $?

echo "1..$n"
exit $failed
