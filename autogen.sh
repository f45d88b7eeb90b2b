#!/bin/sh
# Makes ./configure. Needs autoconf, automake and pkg-config.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --install --warnings=all,no-obsolete "$@"
