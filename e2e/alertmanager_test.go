package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/program"
)

// alertmanagerExe returns the path of a real Alertmanager, installing Debian's package
// as `make alertmanager` does.
var alertmanagerExe = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("sh", "alertmanager.sh")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
})

// notice is one notification that Alertmanager sends on.
type notice struct {
	Status string
	Alerts []struct {
		Status       string
		Labels       map[string]string
		Annotations  map[string]string
		StartsAt     time.Time
		GeneratorURL string
	}
}

// inbox is where Alertmanager's notifications arrive.
type inbox struct {
	mu   sync.Mutex
	list []notice
}

func (b *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var n notice
	if err := json.NewDecoder(r.Body).Decode(&n); err == nil {
		b.mu.Lock()
		b.list = append(b.list, n)
		b.mu.Unlock()
	}
}

func (b *inbox) notices() []notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.list)
}

// startAlertmanager starts a real Alertmanager that hands everything on to the inbox.
func startAlertmanager(t testing.TB) (*app, *inbox) {
	t.Helper()
	path, err := alertmanagerExe()
	if err != nil {
		t.Fatalf("no Alertmanager (`make alertmanager` installs it): %v", err)
	}
	box := &inbox{}
	hook := httptest.NewServer(box)
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	file := writeFile(t, dir, "alertmanager.yml", `
route: {receiver: test, group_by: [alertname], group_wait: 100ms, group_interval: 200ms, repeat_interval: 1h}
receivers: [{name: test, webhook_configs: [{url: '`+hook.URL+`', send_resolved: true}]}]
`)
	a := start(t, program.Config{
		Name: "alertmanager",
		Path: path,
		Args: []string{
			"--config.file=" + file, "--storage.path=" + dir + "/data",
			"--web.listen-address=127.0.0.1:0", "--cluster.listen-address=",
		},
		Listening: regexp.MustCompile(`msg="Listening on" address=([0-9.:]+)`),
	}, "/-/ready")
	a.peer = true
	return a, box
}
