#!/bin/sh
# Prints the path of a real Alertmanager for the tests of rules. Where there is none
# and this is root on Debian or a system like it, the package is installed: the Go
# module lacks the built page that its own build wants. The service that the package
# would start is not.
set -eu

find_alertmanager() {
	if [ -n "${TICKTIER_E2E_ALERTMANAGER:-}" ]; then
		echo "$TICKTIER_E2E_ALERTMANAGER"
		return 0
	fi
	for name in prometheus-alertmanager alertmanager; do
		command -v "$name" && return 0
	done
	return 1
}

find_alertmanager && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "alertmanager: none found. Install it (Debian: apt-get install prometheus-alertmanager), or name one in TICKTIER_E2E_ALERTMANAGER" >&2
	exit 1
fi

echo "alertmanager: installing Debian's package" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A machine that starts services when they are installed must not start this one: it
# would hold its ports.
if command -v systemctl >/dev/null && [ -d /run/systemd/system ]; then
	systemctl mask prometheus-alertmanager.service >/dev/null 2>&1 || true
fi
if ! { apt-get -q update && apt-get -q -y install --no-install-recommends prometheus-alertmanager; } >"$log" 2>&1 </dev/null; then
	tail -n 20 "$log" >&2
	echo "alertmanager: the package could not be installed" >&2
	exit 1
fi
find_alertmanager
