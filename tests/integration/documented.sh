#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every command line of README.md and of the EXAMPLES of the manual pages does what it says: each is run on servers of this
# script, which stand in for those of the text: the plan as it is written, the run in little time. A line that this script does not know is a failure, and so
# is a name in its lists that is in no text any more. TAP output; needs root.
# shellcheck shell=dash
set -u
srcdir=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# Mounts of this script are its own. In a chroot, "/" is no mount point, and its mounts are private already.
[ -n "${DOCUMENTED_NAMESPACE:-}" ] || [ "$(id -u)" != 0 ] ||
	DOCUMENTED_NAMESPACE=1 exec unshare --mount --propagation unchanged \
		sh -c 'mount --make-rprivate / 2>/dev/null; exec sh "$0"' "$0"
# shellcheck source=tests/integration/lib.sh
. "$srcdir/tests/integration/lib.sh"
it_limit=60

it_begin ganesha.nfsd tgtd mkfs.ext4 losetup

# ---- what the texts say ----

# The lines of fenced blocks and of EXAMPLES that are commands (tables end with a version), continued ones as one, without the remark beside them.
python3 - "$srcdir/README.md" "$srcdir"/src/*.1 "$srcdir"/patterns/*.5 >commands <<'END'
import re, sys

def fenced(text):
    return "\n".join(re.findall(r"^```\n(.*?)^```", text, re.S | re.M))

def examples(text):
    part = re.search(r"^\.S[hH] EXAMPLES\n(.*?)(?=^\.S[hH]|\Z)", text, re.S | re.M)
    lines = part.group(1).replace("\\e", "\\").replace("\\-", "-") if part else ""
    return re.sub(r"^\.Dl ", "", lines, flags=re.M)

for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    text = fenced(text) if path.endswith(".md") else examples(text)
    for line in re.sub(r" *\\\n *", " ", text).splitlines():
        if re.match(r"(sudo|sh|samedisk|apt-get|make|\./\S+) ", line) and not re.match(r"samedisk [0-9]", line):
            print(re.sub(r"(\s+#| {3,}).*", "", line))
END

# Of those that are not run here, why not. REASON | COMMAND
cat >left-out <<'END'
this is the test of what it installs, builds and compares, for minutes|sh tests/lab/demo.sh
this script is a part of it|sh tests/run.sh
it changes this machine|sudo make install
it changes this machine|apt-get install build-essential autoconf automake pkg-config libnfs-dev libiscsi-dev libaio-dev liburing-dev libblkid-dev libjansson-dev
how this program was built|./autogen.sh && ./configure && make && make check
END

# ---- what stands in for the targets of the texts ----

truncate -s 128G "$LAB/disk" "$LAB/big" "$LAB/sdc"
truncate -s 16G "$LAB/lun1" "$LAB/lun7"
must mkfs.ext4 -q -E lazy_itable_init=1,lazy_journal_init=1 -m 0 "$LAB/disk"
mkdir "$LAB/data"
must mount -o loop,noatime "$LAB/disk" "$LAB/data"
mkdir "$LAB/data/bench"
truncate -s 110G "$LAB/data/test.dat"
must lab_ganesha vol1="$LAB/data"
must lab_tgt
must lab_tgt_lun 3 "$LAB/big"
must lab_tgt_lun 1 "$LAB/lun1"
sdc=$(lab_loop "$LAB/sdc")
lun7=$(lab_loop "$LAB/lun7")
cp "$srcdir/patterns/quick.ini" my.ini
export PATH="$builddir:$PATH"

# Quoted for the shell, and that for the right side of sed's s|||.
url() {
	"$@" | sed 's/&/\\\\\\&/g'
}
url lab_nfs_url vol1/bench/vm.dat >url.vm
url lab_nfs_url vol1/new.dat >url.new
url lab_nfs_url vol1/test.dat >url.there

# here COMMAND: the same for this lab.
here() {
	# What is read only is there; what is written is new.
	case $1 in *--read-only* | *probe*) file=url.there ;; *) file=url.new ;; esac
	printf '%s\n' "$1" | sed \
		-e "s|nfs://filer/vol1/bench/vm.dat|$(cat url.vm)|g" \
		-e "s|nfs://10.0.0.1/vol1/test.dat|$(cat $file)|g" \
		-e "s|iscsi://filer/iqn.1992-08.com.netapp:sn.1/3|$(lab_iscsi_url 3)|g" \
		-e "s|iscsi://10.0.0.1/iqn.2001-04.com.example:disk/0|$(lab_iscsi_url 1)|g" \
		-e "s|/dev/sdc|$sdc|g; s|/dev/mapper/lun7|$lun7|g" \
		-e "s|TARGET \.\.\.|TARGET|; s|TARGET|null:|" \
		-e "s|^sh tests/|sh $srcdir/tests/|"
}

# quickly COMMAND: the same in little time.
quickly() {
	printf '%s\n' "$1" | sed \
		-e "s|--time [0-9]*[mh]|--time 20s|; s|--size [0-9]*[mg]|--size 16m|" \
		-e "s|--rounds 1'|--rounds 1 --runtime 200ms --ramp_time 0'|" \
		-e "/^samedisk run /s|\$| --runtime 200ms --ramp_time 0|" \
		-e "/^samedisk run /{/--size/!s|\$| --size 16m|}" \
		-e "/^samedisk run /{/--time/!s|\$| --rounds 1|}"
}

# plan NAME COMMAND: what is asked for fits the targets, whatever the sizes of the patterns. Where consent is missing, what is
# said to type is all that is.
plan() {
	local typed
	run sh -c "$2"
	typed=$(sed -n 's/.*type: \(--destroy [a-z]*\).*/\1/p' "$err" | sort -u | tr '\n' ' ')
	case $1 in
	*--destroy*) typed= ;;
	*--dry-run*) test_that "what to type for: $1" test -n "$typed" ;;
	esac
	expect "the plan of: $1" 0 'expected duration' sh -c "$2 $typed"
}

# ---- each ----

while read -r command; do
	reason=$(awk -F'|' -v c="$command" '$2 == c { print $1; exit }' left-out)
	if [ -n "$reason" ]; then
		echo "$command" >>seen
		skip "$command" "$reason"
		continue
	fi
	here "$command" >here
	case $command in
	*--dry-run*) plan "$command" "$(cat here)" ;;
	'samedisk run '*) plan "$command" "$(cat here) --dry-run" ;;
	esac
	case $command in *--dry-run*) continue ;; esac
	expect "$command" 0 '' sh -c "$(quickly "$(cat here)")"
done <commands
test_that 'there are command lines in the texts' test "$(wc -l <commands)" -ge 15
same 'what is left out is in the texts' "$(sort seen)" "$(cut -d'|' -f2 left-out | sort)"
umount "$LAB/data"
it_end
