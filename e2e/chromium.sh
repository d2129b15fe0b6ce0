#!/bin/sh
# Prints the path of a Chromium for the browser test. Where there is none and this
# is root on Debian or a system like it, the package is installed.
set -eu

find_browser() {
	if [ -n "${TICKTIER_E2E_CHROMIUM:-}" ]; then
		echo "$TICKTIER_E2E_CHROMIUM"
		return 0
	fi
	for name in chromium chromium-browser google-chrome google-chrome-stable; do
		command -v "$name" && return 0
	done
	return 1
}

find_browser && exit 0
if [ "${TICKTIER_E2E_BROWSER:-}" = off ]; then
	echo "chromium: none found; the browser test is left out, as TICKTIER_E2E_BROWSER=off asks" >&2
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "chromium: none found. Install it (Debian: apt-get install chromium), or name one in TICKTIER_E2E_CHROMIUM, or leave the browser test out with TICKTIER_E2E_BROWSER=off" >&2
	exit 1
fi

echo "chromium: installing Debian's package" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get -q update && apt-get -q -y install --no-install-recommends chromium; } >"$log" 2>&1 </dev/null; then
	tail -n 20 "$log" >&2
	echo "chromium: the package could not be installed" >&2
	exit 1
fi
find_browser
