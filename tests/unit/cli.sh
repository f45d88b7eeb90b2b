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

# What people type. Each is answered with what would be right.
wrong 1 "did you mean /dev/sdc?" run sdc
wrong 1 "did you mean /dev/sdc?" run quick sdc null:
wrong 1 "did you mean /dev/nvme0n1p1?" probe nvme0n1p1
wrong 1 "did you mean fc=/dev/sdc?" run fc=sdc
wrong 1 "did you mean fc=/dev/sdc?" run fc:/dev/sdc
wrong 1 "did you mean i=iscsi://h/iqn.x.y/1?" run i:iscsi://h/iqn.x.y/1
wrong 1 "no target stands behind the label" run fc=filer
wrong 1 "did you mean --bs=4k?" run bs=4k null:
wrong 1 "the target's name (IQN) and the LUN are missing" run iscsi://filer
wrong 1 "the LUN is missing" run iscsi://filer/iqn.2001-04.com.example:d
wrong 1 "names a file below an export" run nfs://filer
wrong 1 "no such command yet" compare a.json b.json
wrong 1 "no such command yet" help report
wrong 1 "--iodepth has no value (N): what follows it, null:, is a target" run --iodepth null:
wrong 1 "--size has no value (SIZE): what follows it, fc=/dev/sdc, is a target" run --size fc=/dev/sdc
wrong 1 "--rw has no value" run --rw /dev/sdc
wrong 1 "--only has no value" run --only nfs://h/e/f
wrong 1 "is a target, and --destroy takes a label that you gave it: LABEL=/dev/loop0" run x=null: --destroy /dev/loop0
wrong 1 "--destroy takes its label: --destroy x" run "x=$tmp/data/f" --destroy "$tmp/data/f"
wrong 1 "--filename is fio's and not taken here: it says what is measured" run null: --filename=/dev/sda
wrong 1 "--filename is fio's" run null: --filename /dev/sda
wrong 1 "--ioengine is fio's" run null: --ioengine=libaio --direct=1
wrong 1 "--direct=0 is not taken here (only direct=1)" run null: --direct=0
wrong 1 "--name stands twice" run null: --name a --rw read --name b --rw write
wrong 1 "--name names one pattern" run quick null: --name a
wrong 1 "the command line: pattern '4k random read': size=2k is smaller" run quick null: --size 2k
wrong 1 "no smaller --size helps: give a smaller --offset" run 'null:?size=4m' --rw read --size 1m --offset 8m
wrong 1 "at most 4m" run 'null:?size=4m' --rw read --size 8m
wrong 1 "has no room for its blocks" run null: --row '1m share=50 read=100 random=0' --row '1m share=50 read=0 random=100' \
  --position separate --size 4m --numjobs 8 --dry-run
wrong 3 "no such device" run null: /dev/no-such-disk1
run help && grep -q '^Commands' "$tmp/out" && run help run && grep -q '^  --iodepth N' "$tmp/out"
report "help, and help COMMAND" $?
quick_plan() { run run null: --dry-run "$@"; }
quick_plan --group_reporting --direct 1 --end_fsync 1 --runtime 1 && grep -q 'direct has no effect here' "$tmp/err" &&
  grep -q 'end_fsync=1' "$tmp/out" && grep -q '\[1m sequential write\]' "$tmp/out"
report "fio's words, and a switch with its value" $?
quick_plan && ! grep -q . "$tmp/err" && grep -q 'size=4g' "$tmp/out"
report "run null: works as it is" $?
quick_plan --sync dsync --size 64m && ! grep -q . "$tmp/err"
report "sync beside a shipped pattern blames nobody" $?
quick_plan --position separate --rw randwrite --bs 1m --size 4m --numjobs 8
report "a direction without I/O needs no slice" $?

if command -v script > /dev/null; then
  script -qec "$program probe /dev/no-such-disk1" /dev/null > "$tmp/out" 2> "$tmp/err" < /dev/null
  grep -c 'no such device' "$tmp/out" | grep -qx 1
  report "probe on a terminal says it once" $?
fi

# Load keys without a pattern are one pattern of their own; beside a named one they stand in its name.
quick="--size 1m --ramp_time 0 --runtime 50ms --rounds 1"
run run --rw randread --bs 4k $quick null: --json "$tmp/own.json" -q --json "$tmp/own.json" &&
  [ "$(grep -c '^[a-z0-9].* null ' "$tmp/out")" -eq 1 ] && grep -q '^randread 4k d1 *null' "$tmp/out" &&
  grep -q '"pattern":"randread 4k d1"' "$tmp/own.json"
report "load keys alone are one pattern, named by what it is" $?
run run quick --bs 1m --only '4k random read' $quick null: -q --json "$tmp/own.json" &&
  grep -q '^4k random read \[bs=1m\] *null' "$tmp/out" && grep -q '"section":"4k random read"' "$tmp/own.json" &&
  grep -q '"changed":"bs=1m"' "$tmp/own.json"
report "a changed pattern is called so" $?
run run --name test --rw write $quick null: -q && grep -q '^test *null' "$tmp/out"
report "--name" $?

# A full disk under --json does not end the plan; the last good file stays, and it is said once.
run run null: quick $quick --json /dev/full -q
got=$?
[ $got -eq 1 ] && [ "$(grep -c 'No space left' "$tmp/err")" -eq 1 ] && [ "$(grep -c ' null ' "$tmp/out")" -ge 4 ] &&
  ! grep -q interrupted "$tmp/out" "$tmp/err"
report "a result that cannot be saved does not end the plan" $?

# What this client lacks is no loss of the target.
# shellcheck disable=SC3045
limited() { (ulimit -v 400000 && run "$@"); }
if limited --version; then # sanitizers cannot live with it
  limited run null: --rw read --bs 1m --size 64m --iodepth 256 --numjobs 4
  grep -q 'ulimit -v' "$tmp/err" && [ ! -s "$tmp/out" ]
  report "a limit on address space refuses the plan" $?
fi

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
grep -q '^ *keys: size=1t lat=0s ' "$tmp/out" && grep -q '^    numjobs=1$' "$tmp/out"
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
only_y_is_removed() { [ $got -eq 0 ] && [ -e "$tmp/data/x" ] && [ ! -e "$tmp/data/y" ]; }
only_y_is_removed
report "--cleanup removes what this run created, and nothing else" $?

# ... nor one into which somebody else has put something.
"$program" run "$tmp/p.ini" f=file:"$tmp/data/z" --only writes --offset 4m --runtime 1s --allow-full -q --cleanup > "$tmp/out" 2> "$tmp/err" &
writer=$!
tries=0
until [ "$(stat -c %s "$tmp/data/z" 2> /dev/null)" = 8388608 ] || [ $tries -gt 200 ]; do tries=$((tries + 1)); sleep 0.05; done
echo 'of somebody else' | dd of="$tmp/data/z" bs=1 seek=1000000 conv=notrunc 2> /dev/null
wait $writer
got=$?
z_is_left() { [ $got -eq 3 ] && [ -e "$tmp/data/z" ] && [ "$(grep -c 'f: not removed: .*unknown data' "$tmp/err")" -eq 1 ]; }
z_is_left
report "--cleanup leaves a file with what is not ours, and says so once" $?

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
