#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Results follow their schema, whatever the end of the run, and the schema is worth something: documents that were
# broken on purpose do not. TAP output. SAMEDISK: the program (default ./samedisk).
program=${SAMEDISK:-$PWD/samedisk}
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
[ -d "$top/src" ] || top=$(cd "$(dirname "$0")/../.." && pwd)
schema=$top/src/result/samedisk-result-1.schema.json

if ! python3 -c 'import jsonschema; jsonschema.Draft202012Validator' 2> /dev/null; then
  echo "1..0 # SKIP no python3-jsonschema"
  exit 0
fi
[ -x "$program" ] || { echo "Bail out! no program $program (set SAMEDISK)"; exit 99; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

cat > "$tmp/p.ini" <<'END'
[global]
size = 16m
runtime = 200ms
ramp_time = 50ms
iodepth = 4
[mixed "8k"]
rw = randrw
bs = 8k
fsync = 1000
[read]
rw = read
bs = 64k
rate_iops = 2000
END

n=0 failed=0 stop=
check() { # NAME WANTED-STATUS WANTED-EXIT, then the arguments of run
  name=$1 wanted=$2 exit=$3
  shift 3
  $stop "$program" run "$tmp/p.ini" --quiet --json "$tmp/r.json" "$@" > "$tmp/out" 2> "$tmp/err"
  got=$?
  n=$((n + 1))
  if [ $got -ne "$exit" ]; then
    failed=1
    echo "not ok $n - $name"
    echo "# exit status $got, wanted $exit"
    sed 's/^/# /' "$tmp/err"
    return
  fi
  if python3 - "$schema" "$tmp/r.json" "$wanted" <<'END'
import json, sys
from jsonschema import Draft202012Validator
schema, doc = (json.load(open(f)) for f in sys.argv[1:3])
Draft202012Validator.check_schema(schema)
valid = Draft202012Validator(schema)
errors = ["%s: %s" % (e.json_path, e.message[:200]) for e in valid.iter_errors(doc)]
if doc["status"] != sys.argv[3]:
    errors.append("status is %s" % doc["status"])

# What a schema cannot say.
for run in doc["runs"]:
    for op in ("read", "write", "total"):
        for l in (run[op]["lat_ns"], run[op]["clat_ns"]):
            if sum(c for _, c in l["histogram"]) + l["above"] != l["n"]:
                errors.append("%s: the histogram does not add up" % op)
            # What was due and never sent is in the latencies from the due time; of which direction, the total does not tell.
            never = run["rate_missed"] + run["rate_unsent"] if l is run[op]["lat_ns"] and run["rate_limited"] else 0
            if not run[op]["ios"] <= l["n"] <= run[op]["ios"] + never or (op == "total" and l["n"] != run[op]["ios"] + never):
                errors.append("%s: %d latencies of %d I/Os" % (op, l["n"], run[op]["ios"]))
    for key in ("ios", "bytes"):
        if run["total"][key] != run["read"][key] + run["write"][key]:
            errors.append("total %s" % key)
    columns = [v for k, v in run["series"].items() if k not in ("interval_ns", "protocol", "ping")]
    for part in ("protocol", "ping"):
        columns += (run["series"][part] or {}).values()
    if len({len(v) for v in columns}) != 1:
        errors.append("the columns of the series have different lengths")

# Broken on purpose: a field is gone, has another type, or a word that means nothing.
small = json.loads(json.dumps(doc))
small["runs"] = small["runs"][:1]
for run in small["runs"]:
    for op in ("read", "write", "total"):
        for l in (run[op]["lat_ns"], run[op]["clat_ns"]):
            l["histogram"] = l["histogram"][:1]
if not valid.is_valid(small):
    errors.append("the shortened document is not valid")

def broken(change):
    copy = json.loads(json.dumps(small))
    change(copy)
    return not valid.is_valid(copy)
for key in schema["required"]:
    if not broken(lambda d: d.pop(key)):
        errors.append("valid without %s" % key)
if doc["runs"]:
    for key in schema["$defs"]["run"]["required"]:
        if not broken(lambda d: d["runs"][0].pop(key)):
            errors.append("valid without runs/%s" % key)
        if not broken(lambda d: d["runs"][0].update({key: ["x", {"y": "z"}]})):
            errors.append("valid with any runs/%s" % key)
    if not broken(lambda d: d["runs"][0]["total"]["lat_ns"].pop("percentiles")):
        errors.append("valid without percentiles")
for change in (lambda d: d.update(status="fine"), lambda d: d.update(schema="samedisk-result/2"),
               lambda d: d["plan"].update(seed="1"), lambda d: d["targets"][0].update(label="a b")):
    if not broken(change):
        errors.append("valid although broken")
for e in errors[:10]:
    print("# " + e)
sys.exit(bool(errors))
END
  then echo "ok $n - $name"; else failed=1; echo "not ok $n - $name"; fi
}

check "two targets, two rounds" ok 0 a=null:?lat=50us b=null:?lat=100us --rounds 2 --note 'site=4 "quoted" \ ä'
check "I/Os that fail" errors 2 'null:?errors=20000'
check "short transfers" errors 2 'null:?short=20000'
check "a target that is lost" lost 3 ok=null: 'bad=null:?lost_after=2000'
check "a target left out" lost 3 ok=null:?lat=50us gone=/no/such/folder/file --keep-going
stop="timeout -s TERM --preserve-status 1"
check "cut short" interrupted 130 null:?lat=50us --runtime 30
echo "1..$n"
exit $failed
