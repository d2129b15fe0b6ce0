#!/bin/sh
# Prints what a measurement ran on.
cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
[ -n "$cpu" ] || cpu=$(uname -m)
echo "cpu: $cpu, $(nproc) cores; kernel: $(uname -r); $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH); load before: $(cut -d' ' -f1-3 /proc/loadavg)"
