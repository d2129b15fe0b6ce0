package e2e

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exporterBudget is what the stripped exporter may take on linux/arm64, what most
// routers are.
const exporterBudget = 8 << 20

// unwanted are the modules that would make the exporter large, or its builds slow.
var unwanted = []string{
	"github.com/prometheus/prometheus", "github.com/prometheus/client_golang", "github.com/prometheus/common",
	"github.com/prometheus/client_model", "google.golang.org/protobuf", "google.golang.org/grpc",
	"github.com/alecthomas/kong",
}

// TestExporterSize builds the exporter as it is released for routers.
func TestExporterSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "ticktier-exporter")
	cmd := exec.Command("make", "build-exporter", "BIN="+dir, "VERSION=dev")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make build-exporter: %v\n%s", err, msg)
	}
	st, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the exporter takes %d bytes of %d", st.Size(), exporterBudget)
	if st.Size() > exporterBudget {
		t.Errorf("the exporter takes %d bytes, more than its budget of %d: docs/decisions/0008 tells what made it large before",
			st.Size(), exporterBudget)
	}
	info, err := buildinfo.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range info.Deps {
		path := dep.Path
		for _, u := range unwanted {
			if path == u || strings.HasPrefix(path, u+"/") {
				t.Errorf("the exporter links %s", path)
			}
		}
	}
	if len(info.Deps) == 0 {
		t.Error("the exporter says that it has no dependencies")
	}
}
