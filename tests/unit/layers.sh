#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Who may know whom: each folder's includes against the one table of the allowed ones. TAP output.
cd "${srcdir:-$(dirname "$0")/../..}" || exit 99
[ -d src ] || cd "$(dirname "$0")/../.." || exit 99

# folder : project folders it may include from ("own" is always allowed). A "file:" line narrows one file of a folder.
table='
src/base    :
src/linux   : base
src/scsi    : base
src/option  : base
src/pattern : base option
src/result  : base option
backends    : base linux scsi option backends
src/target  : base option backends
src/safety  : base linux option backends target pattern
src/engine  : base option backends pattern target result
src/report  : base result
src/cli     : base option backends pattern target safety engine result report
'
n=0 failed=0
ok() { n=$((n + 1)); echo "ok $n - $1"; }
not_ok() { n=$((n + 1)); failed=1; echo "not ok $n - $1"; shift; printf '%s\n' "$@" | sed 's/^/# /'; }

check_folder() { # FOLDER ALLOWED
  bad=
  own=${1#src/}
  for f in $(find "$1" -name '*.[ch]' | sort); do
    for inc in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$f"); do
      case $inc in config.h) continue;; */*) ;; *) bad="$bad$f includes $inc: write the folder
"; continue;; esac
      top=${inc%%/*}
      [ "$top" = "$own" ] && continue
      case " $2 " in *" $top "*) continue;; esac
      bad="$bad$f includes $inc
"
    done
  done
  if [ -z "$bad" ]; then ok "$1 includes only: own $2"; else not_ok "$1 includes only: own $2" "$bad"; fi
}

echo "1..17"
printf '%s\n' "$table" | sed '/^$/d' > "${TMPDIR:-/tmp}/layers.$$"
while IFS=: read -r folder allowed; do
  folder=$(echo "$folder" | tr -d ' ')
  check_folder "$folder" "$(echo "$allowed" | xargs)"
done < "${TMPDIR:-/tmp}/layers.$$"
rm -f "${TMPDIR:-/tmp}/layers.$$"

# A pattern and its stream know no clock.
bad=$(grep -ln 'base/clock.h\|<time.h>' src/pattern/*.[ch])
if [ -z "$bad" ]; then ok "src/pattern knows no clock"; else not_ok "src/pattern knows no clock" "$bad"; fi

# The core knows no backend by name, and no build switch.
bad=$(grep -nE 'HAVE_LIB|libnfs|libiscsi|libaio|backend_(nfs|iscsi|block|file|null)' src/engine/*.[ch] src/pattern/*.[ch] src/safety/*.[ch] src/target/*.[ch])
if [ -z "$bad" ]; then ok "the core knows no backend by name"; else not_ok "the core knows no backend by name" "$bad"; fi

# One library per backend; its headers stay inside.
bad=$(grep -rlE '<nfsc/' src backends | grep -v '^backends/nfs/'; grep -rlE '<iscsi/' src backends | grep -v '^backends/iscsi/'
      grep -rlE '<lib(aio|uring).h>' src backends | grep -v '^backends/local/'; grep -rlE '<jansson.h>' src backends | grep -vE '^src/(result|report|cli)/'
      grep -rlE '<blkid' src backends | grep -v '^src/safety/')
if [ -z "$bad" ]; then ok "library headers stay inside their folder"; else not_ok "library headers stay inside their folder" "$bad"; fi

# No backend uses another (folders of one level; stripe is a filter over the contract).
bad=$(for d in nfs iscsi local; do for o in nfs iscsi local; do [ $d = $o ] || grep -ln "#include \"backends/$o/" backends/$d/*.[ch]; done; done)
if [ -z "$bad" ]; then ok "no backend uses another"; else not_ok "no backend uses another" "$bad"; fi

# Only the command line and the reports print or exit.
bad=$(grep -nE '\b(printf|puts|putchar|perror|exit|abort)[[:space:]]*\(|fprintf\((stderr|stdout)' -r src backends --include='*.c' | grep -vE '^src/(cli|report)/' | grep -v '__attribute__')
if [ -z "$bad" ]; then ok "only src/cli and src/report print or exit"; else not_ok "only src/cli and src/report print or exit" "$bad"; fi
exit $failed
