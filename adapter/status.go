package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/ticktier/ticktier/adapter/config"
)

// promVersion is the version of Prometheus whose API this is. Grafana decides by
// it what it may ask for; ticktier's own version would tell it nothing.
func promVersion() string {
	const module = "github.com/prometheus/prometheus"
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, d := range b.Deps {
			if d.Path != module {
				continue
			}
			// The module v0.316.0 is Prometheus 3.16.0.
			major, rest, ok := strings.Cut(strings.TrimPrefix(d.Version, "v0."), ".")
			if ok && len(major) == 3 {
				return major[:1] + "." + strings.TrimPrefix(major[1:], "0") + "." + rest
			}
		}
	}
	return ""
}

// buildInfo answers /api/v1/status/buildinfo.
func buildInfo() v1.PrometheusVersion {
	return v1.PrometheusVersion{Version: promVersion(), Revision: "ticktier-adapter " + version, GoVersion: runtime.Version()}
}

// runtimeInfo answers /api/v1/status/runtimeinfo.
func runtimeInfo(cfg *config.Config, start time.Time) func() (v1.RuntimeInfo, error) {
	return func() (v1.RuntimeInfo, error) {
		host, err := os.Hostname()
		if err != nil {
			return v1.RuntimeInfo{}, err
		}
		return v1.RuntimeInfo{
			StartTime: start, Hostname: host, ServerTime: time.Now().UTC(), ReloadConfigSuccess: true, LastConfigTime: start,
			GoroutineCount: runtime.NumGoroutine(), GOMAXPROCS: runtime.GOMAXPROCS(0), GOMEMLIMIT: debug.SetMemoryLimit(-1),
			GOGC: os.Getenv("GOGC"), GODEBUG: os.Getenv("GODEBUG"),
			StorageRetention: "raw " + cfg.RetentionRaw.String() + ", 5m " + cfg.Retention5m.String() + ", 1h " + cfg.Retention1h.String(),
		}, nil
	}
}
