#!/bin/sh
# Prints the stripped size of both programs on each platform that they are made
# for. The exporter has a budget on linux/arm64, the platform of most routers.
set -eu

ldflags=${1:--s -w}
exporter_tags=${2:-nethttpomithttp2,nopprof}
exporter_gcflags=${3:-}
budget=$((8 * 1024 * 1024))
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export CGO_ENABLED=0 GOOS=linux

over=0
size() { # PACKAGE GOARCH
	tags= gcflags=
	if [ "$1" = exporter ]; then
		tags=$exporter_tags gcflags=$exporter_gcflags
	fi
	# shellcheck disable=SC2086 # they are several arguments
	GOARCH=$2 go build -trimpath $gcflags -tags "$tags" -ldflags "$ldflags" -o "$tmp/out" "./$1"
	bytes=$(wc -c <"$tmp/out")
	printf '%-9s linux/%-7s %10d bytes  %6s MiB\n' "$1" "$2" "$bytes" "$(awk "BEGIN {printf \"%.2f\", $bytes/1048576}")"
	if [ "$1/$2" = exporter/arm64 ] && [ "$bytes" -gt "$budget" ]; then
		over=1
	fi
}
for arch in arm64 arm mipsle amd64; do size exporter "$arch"; done
for arch in amd64 arm64; do size adapter "$arch"; done
if [ "$over" = 1 ]; then
	echo "size: the exporter on linux/arm64 is over its budget of $budget bytes" >&2
	exit 1
fi
