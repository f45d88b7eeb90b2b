#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Protocol pings beside a load, behind a network that takes 2 ms there and back: the network's share is these 2 ms, and
# what a server does, or does not do for a while, is the server's. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
# shellcheck source=tests/lab/link.sh
. "$LAB_HOME/link.sh"
# shellcheck source=tests/integration/background.sh
. "$srcdir/tests/integration/background.sh"

it_begin ganesha.nfsd tgtd ip

# Without a delay line: the same on loopback, whose network share is only known to be small.
RTT_US=0
it_prefix=''
if [ -c /dev/net/tun ]; then
	must lab_network rtt=2ms
	it_prefix=$LAB/client
	RTT_US=2000
fi
mkdir "$LAB/data"
head -c 16M /dev/urandom >"$LAB/data/read"
cp "$LAB/data/read" "$LAB/lun"
must lab_ganesha data="$LAB/data"
must lab_tgt
must lab_tgt_lun 1 "$LAB/lun"
NFS=$(lab_nfs_url data/read)
ISCSI=$(lab_iscsi_url 1)
SCHEMA=$srcdir/src/result/samedisk-result-1.schema.json

cat >rate.ini <<END
[random]
rw = randread
bs = 4k
size = 16m
iodepth = 8
rate_iops = 200
ramp_time = 300ms
rounds = 1
END

# Python: the ping of a target's run, and its mean latency.
P='(lambda t: runs[t]["ping"])'
MEAN='(lambda t: runs[t]["total"]["clat_ns"]["mean"])'

# network_is NAME FILE RTT_US LABEL...: the network's share is the round trip within a tenth; 0: below a millisecond.
network_is() {
	local name file rtt label
	name=$1
	file=$2
	rtt=$3
	shift 3
	for label; do
		if [ "$rtt" = 0 ]; then
			json "$name: $label" "$file" "0 < $P('$label')['network_ns'] < 1e6"
		else
			json "$name: $label" "$file" "abs($P('$label')['network_ns'] / ($rtt * 1e3) - 1) <= 0.1"
		fi
	done
}

# ---- probe ----

run $it_prefix "$SAMEDISK" probe --format json nfs="$NFS" iscsi="$ISCSI"
cp "$out" probe.json
test_that 'probe: an idle ping of each kind' python3 -c '
import json
t = {t["label"]: t["ping"] for t in json.load(open("probe.json"))["targets"]}
assert list(t["nfs"]["kinds"]) == ["null_rpc"], t
assert list(t["iscsi"]["kinds"]) == ["nop_out", "test_unit_ready"], t
for p in t.values():
    assert p["error"] is None and p["tcp_min_rtt_ns"] > 0, p
    assert all(k["n"] == 10 and 0 < k["min_ns"] <= k["median_ns"] < 1e8 for k in p["kinds"].values()), p
'
expect 'probe: in words' 0 'ping null_rpc *, median * of 10*TCP round trip*ping nop_out*ping test_unit_ready*' \
	$it_prefix "$SAMEDISK" probe nfs="$NFS" iscsi="$ISCSI"

# ---- a calm server ----

run $it_prefix "$SAMEDISK" run rate.ini --verbose --runtime 3s --json calm.json nfs="$NFS" iscsi="$ISCSI"
same 'a calm server: exit status 0' "$status" 0
cp "$out" calm.txt
check 'a calm server: the result is sound, and the table says what it says' document calm.json calm.txt "$SCHEMA"
json 'a calm server: once a second, each kind in turn, all answered' calm.json \
	"$P('nfs')['kinds']['null_rpc']['n'] == 3" \
	"sorted(k['n'] for k in $P('iscsi')['kinds'].values()) == [1, 2]" \
	"all(k['lost'] == 0 and k['idle_n'] == 20 and k['after_n'] == 5 and 0 < k['min_ns'] <= k['median_ns'] <= k['max_ns']
	for t in runs for k in $P(t)['kinds'].values())" \
	"all($P(t)['error'] is None for t in runs)"
json 'a calm server: second by second' calm.json \
	"all(v > 0 for v in runs['nfs']['series']['ping']['null_rpc']) and len(runs['nfs']['series']['ping']['null_rpc']) == 3" \
	"[v is not None for v in runs['iscsi']['series']['ping']['nop_out']] in ([True, False, True], [False, True, False])" \
	"all((a is None) != (b is None) for a, b in zip(*runs['iscsi']['series']['ping'].values()))"
json 'a calm server: the parts are the whole' calm.json \
	"all($P(t)['estimate'] is True for t in runs)" \
	"all($P(t)['server_ns'] is None or
	abs($P(t)['network_ns'] + $P(t)['front_ns'] + $P(t)['server_ns'] - $MEAN(t)) < 1 for t in runs)"
network_is 'a calm server: the network takes what it takes' calm.json "$RTT_US" nfs iscsi
for label in nfs iscsi; do
	json "a calm server: what is said of $label" calm.json \
		"any(r['target'] == '$label' and ('estimate from' in r['text'] or 'longer than an I/O' in r['text'])
		and not r['finding'] for r in d['remarks'])"
done

# ---- a server that stands still for two seconds ----

# stopped SERVER LABEL URL
stopped() {
	start run rate.ini --runtime 4500ms --json stopped.json "$2=$3"
	reach "$1 stands still" 10 window || return
	must lab_stop "$1"
	sleep 2.2 # this long it hangs: every ping of a second is out for more than a second
	must lab_cont "$1"
	finish 15
	ended "$1 stands still for 2 s: exit status 0" 0 ''
	python3 - stopped.json calm.json "$2" >both.txt 2>&1 <<-'END'
		import json, sys
		def of(path):
		    return [r for r in json.load(open(path))["runs"] if r["target"] == sys.argv[3]][0]["ping"]
		now, calm = of(sys.argv[1]), of(sys.argv[2])
		print(now, calm)
		lost = sum(k["lost"] for k in now["kinds"].values())
		assert lost in (1, 2), "lost"
		assert now["error"] is None
		assert now["server_ns"] > (calm["server_ns"] or 0) + 10e6, "the server's share"
		assert abs(now["network_ns"] - calm["network_ns"]) < 1e6, "the network's share"
		assert all(k["max_ns"] is None or k["max_ns"] < 1e9 for k in now["kinds"].values()), "a late answer was taken"
	END
	if [ $? = 0 ]; then ok "$1 stands still for 2 s: the server's share rises, the network's does not"; else
		not_ok "$1 stands still for 2 s: the server's share rises, the network's does not"
		sed 's/^/# /' both.txt
	fi
	network_is "$1 stands still for 2 s: the network takes what it takes" stopped.json "$RTT_US" "$2"
}

# Beside the workers there is the pinger.
window() {
	running && [ "$(cat "/proc/$it_pid/task/"*/comm | wc -l)" -ge 4 ]
}

stopped ganesha nfs "$NFS"
stopped tgtd iscsi "$ISCSI"

# ---- not wanted, not possible ----

run $it_prefix "$SAMEDISK" run rate.ini -v --runtime 500ms --json no.json --set nfs.ping=no --set iscsi.ping=no \
	nfs="$NFS" iscsi="$ISCSI"
json 'ping=no: none, and nothing is said of it' no.json "all($P(t) is None and runs[t]['series']['ping'] == {} for t in runs)"
if grep -qi 'ping\|estimate' "$out" "$err"; then not_ok 'ping=no: no words'; else ok 'ping=no: no words'; fi

# ---- time at the server's door is not the network's ----

if [ -x "$builddir/tests/lab/canned_nfsd" ]; then
	must lab_start canned "$builddir/tests/lab/canned_nfsd" --delay-us 3000 --file f=16m
	must lab_up canned 5 grep -q port= "$LAB/canned.log"
	port=$(sed -n 's/.*port=\([0-9]*\).*/\1/p' "$LAB/canned.log")
	run "$SAMEDISK" run rate.ini --runtime 1s --prepare none --json canned.json \
		"nfs=nfs://127.0.0.1/canned/f?nfsport=$port&mountport=$port"
	same 'a server that takes 3 ms for everything: exit status 0' "$status" 0
	json 'a server that takes 3 ms for everything: they are not the network'"'"'s' canned.json \
		"0 < $P('nfs')['network_ns'] < 1e6" "$P('nfs')['front_ns'] > 2e6" \
		"$P('nfs')['network_ns'] + $P('nfs')['front_ns'] >= 3e6"
	lab_down canned
else
	skip 'a server that takes 3 ms for everything' 'canned_nfsd was not built'
fi

# ---- Ctrl-C ----

start run rate.ini --runtime 30s --json int.json nfs="$NFS"
if reach 'Ctrl-C' 10 window; then
	must lab_stop ganesha
	kill -INT "$it_pid"
	finish 10
	must lab_cont ganesha
	same 'Ctrl-C while nobody answers: exit status 130' "$status" 130
	# The load's own requests are waited for: 3 s for the drain, 2 s for the end of the connection.
	if [ "$it_took" -lt 6500 ]; then ok 'Ctrl-C while nobody answers: ends soon'; else
		not_ok 'Ctrl-C while nobody answers: ends soon' "it took $it_took ms"
	fi
fi
start run rate.ini --runtime 30s --json int.json iscsi="$ISCSI"
if reach 'Ctrl-C' 10 window; then
	kill -INT "$it_pid"
	finish 10
	same 'Ctrl-C: exit status 130' "$status" 130
	if [ "$it_took" -lt 1000 ]; then ok 'Ctrl-C: ends at once'; else not_ok 'Ctrl-C: ends at once' "it took $it_took ms"; fi
fi

it_end
