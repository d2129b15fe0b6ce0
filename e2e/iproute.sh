#!/bin/sh
# Sees to it that `ip` and `tc` are there for the tests that need hosts of their
# own. Where they are not and this is root on Debian or a system like it, the
# package is installed.
set -eu

command -v ip >/dev/null && command -v tc >/dev/null && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "iproute2: not found. Install it (Debian: apt-get install iproute2)" >&2
	exit 1
fi

echo "iproute2: installing Debian's package" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get -q update && apt-get -q -y install --no-install-recommends iproute2; } >"$log" 2>&1 </dev/null; then
	tail -n 20 "$log" >&2
	echo "iproute2: the package could not be installed" >&2
	exit 1
fi
