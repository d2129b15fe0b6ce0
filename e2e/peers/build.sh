#!/bin/sh
# Builds the real programs that the end-to-end tests run beside ticktier
# (Prometheus, promtool, VictoriaMetrics, vmagent, vmalert, node_exporter, Thanos), at the versions
# that go.mod in this folder and in thanos/ pin, and prints the folder that holds
# them. Thanos has a module of its own because it pins an older Prometheus.
#
# The folder lies outside the checkout and is named by everything that decides
# what is in it, so a second run finds it and a changed version does not use it.
set -eu

cd "$(dirname "$0")"
unset GOWORK 2>/dev/null || true
export GOWORK=off CGO_ENABLED=0

cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/ticktier/peers"
key=$( { cat go.mod go.sum thanos/go.mod thanos/go.sum build.sh; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -c1-16)
dir="$cache/$key"

if [ -e "$dir/complete" ]; then
	touch "$dir"
	echo "$dir"
	exit 0
fi

mkdir -p "$cache"
# Builds of versions that nobody used for a month are dropped.
find "$cache" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} + 2>/dev/null || true

# Built beside its final place and renamed, so that a build that is interrupted,
# or one that runs twice at once, never leaves half a folder under the name.
tmp=$(mktemp -d "$cache/.build.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

version() { go list -m -f '{{.Version}}' "$1"; }

# build NAME PACKAGE LDFLAGS [TAGS]
build() {
	echo "peers: building $1" >&2
	go build -trimpath -tags "${4:-}" -ldflags "-s -w $3" -o "$tmp/$1" "$2"
}

prom=$(version github.com/prometheus/prometheus)
vm=$(version github.com/VictoriaMetrics/VictoriaMetrics)
node=$(version github.com/prometheus/node_exporter)
named="-X github.com/prometheus/common/version.Version"

build prometheus github.com/prometheus/prometheus/cmd/prometheus "$named=${prom#v}" remove_all_sd
build promtool github.com/prometheus/prometheus/cmd/promtool "$named=${prom#v}" remove_all_sd
build victoria-metrics github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics \
	"-X github.com/VictoriaMetrics/VictoriaMetrics/lib/buildinfo.Version=victoria-metrics-$vm"
build vmagent github.com/VictoriaMetrics/VictoriaMetrics/app/vmagent \
	"-X github.com/VictoriaMetrics/VictoriaMetrics/lib/buildinfo.Version=vmagent-$vm"
build vmalert github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert \
	"-X github.com/VictoriaMetrics/VictoriaMetrics/lib/buildinfo.Version=vmalert-$vm"
build node_exporter github.com/prometheus/node_exporter "$named=${node#v}"

cd thanos
thanos=$(version github.com/thanos-io/thanos)
build thanos github.com/thanos-io/thanos/cmd/thanos "$named=${thanos#v}" netgo,slicelabels
cd ..

: >"$tmp/complete"
chmod 755 "$tmp"
if ! mv -T "$tmp" "$dir" 2>/dev/null; then
	# Another build finished first; its result is the same.
	[ -e "$dir/complete" ] || { echo "peers: cannot move the build to $dir" >&2; exit 1; }
fi
echo "$dir"
