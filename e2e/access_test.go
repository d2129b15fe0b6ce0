package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tokens runs `ticktier-adapter tokens`.
func tokens(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(exe(t, "adapter"), append([]string{"tokens"}, args...)...).Output()
	if err != nil {
		t.Fatalf("tokens %v: %v %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// askAs sends a request with credentials: a token, or a user and a password with a NUL
// between.
func askAs(ctx context.Context, adapter *app, method, path, credentials string) (status int, answer string, header http.Header, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+adapter.addr+path, nil)
	if err != nil {
		return 0, "", nil, err
	}
	if user, password, ok := strings.Cut(credentials, "\x00"); ok {
		req.SetBasicAuth(user, password)
	} else if credentials != "" {
		req.Header.Set("Authorization", "Bearer "+credentials)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header, err
}

// ann is a user with the password "secret for tests".
const annHash = "$2a$04$.B7CK5TPus2QWS/jVrGQf.Y61bA/h2l3YeFcsANfWS.FoTc71fL8a"

// TestAccess runs an adapter with tokens for devices, users and tokens for readers, and
// an exporter that pushes with its token under another's name.
func TestAccess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	devices, readers := filepath.Join(dir, "devices.yml"), filepath.Join(dir, "readers.yml")
	token := tokens(t, "new", "--file="+devices, "--instance=known", "--label=site=lab", "--id=known-1")
	expired := tokens(t, "new", "--file="+devices, "--instance=known", "--from=2020-01-01T00:00:00Z", "--for=1h", "--id=known-0")
	reader := tokens(t, "new", "--file="+readers, "--right=read", "--id=reader")
	admin := tokens(t, "new", "--file="+readers, "--right=admin", "--id=admin")
	web := writeFile(t, dir, "web.yml", "basic_auth_users:\n  ann: "+annHash+"\n")
	adapter := startAdapter(t, t.TempDir(), "--devices.tokens-file="+devices, "--web.tokens-file="+readers, "--web.config.file="+web)

	tokenFile := writeFile(t, dir, "token", token+"\n")
	startExporter(t, "--rate=10", "--remote-write.url=http://"+adapter.addr+"/api/v1/write", "--remote-write.interval=500ms",
		"--remote-write.bearer-token-file="+tokenFile, "--external-label=instance=victim", "--external-label=site=bank")

	const list = "/api/v1/devices"
	eventually(t, time.Minute, "the exporter is listed as its token says", func(ctx context.Context) error {
		status, answer, _, err := askAs(ctx, adapter, "GET", list, reader)
		if err != nil || status != 200 || !strings.Contains(answer, `"instance":"known"`) || strings.Contains(answer, "victim") {
			return fmt.Errorf("status %d, %v: %s", status, err, answer)
		}
		return nil
	})
	query := func(selector string) string {
		status, answer, _, err := askAs(t.Context(), adapter, "GET", "/api/v1/query?query=count("+selector+")", reader)
		if err != nil || status != 200 {
			t.Fatalf("%s: status %d, %v: %s", selector, status, err, answer)
		}
		return answer
	}
	for _, selector := range []string{"{instance=\"victim\"}", "{site=\"bank\"}", "{instance=\"known\",site!=\"lab\",job!=\"ticktier-adapter\",__name__!~\"ticktier_device_.*\"}"} {
		if got := query(strings.NewReplacer(`"`, "%22", "{", "%7B", "}", "%7D").Replace(selector)); !strings.Contains(got, `"result":[]`) {
			t.Errorf("%s is stored: %s", selector, got)
		}
	}
	checkWho(t, adapter, token, expired, reader, admin)

	// Rotation: both tokens hold, then the old one is revoked, without a restart.
	next := tokens(t, "new", "--file="+devices, "--replaces=known-1", "--overlap=1h", "--id=known-2")
	waitWrite := func(credentials string, want int) {
		t.Helper()
		eventually(t, time.Minute, fmt.Sprintf("a push is answered %d", want), func(ctx context.Context) error {
			status, answer, _, err := askAs(ctx, adapter, "POST", "/api/v1/write", credentials)
			if err != nil || status != want {
				return fmt.Errorf("status %d, %v: %s", status, err, answer)
			}
			return nil
		})
	}
	waitWrite(next, http.StatusUnsupportedMediaType) // it may come in; there is nothing in it
	waitWrite(token, http.StatusUnsupportedMediaType)
	tokens(t, "revoke", "--file="+devices, "known-1")
	waitWrite(token, http.StatusUnauthorized)
	waitWrite(next, http.StatusUnsupportedMediaType)
	good, err := os.ReadFile(devices)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "devices.yml", "tokens: [")
	eventually(t, time.Minute, "the bad file is told", func(ctx context.Context) error {
		_, answer, _, err := askAs(ctx, adapter, "GET", "/metrics", reader)
		if err != nil || !strings.Contains(answer, `ticktier_adapter_access_file_good{file="devices.tokens-file"} 0`) {
			return fmt.Errorf("not told: %v", err)
		}
		return nil
	})
	waitWrite(next, http.StatusUnsupportedMediaType)
	if status, _, _, err := askAs(t.Context(), adapter, "POST", "/-/reload", admin); err != nil || status != http.StatusInternalServerError {
		t.Errorf("a reload of a bad file: status %d, %v", status, err)
	}
	writeFile(t, dir, "devices.yml", string(good))

	// The exporter takes the new token from its file and goes on.
	writeFile(t, dir, "token", next)
	eventually(t, time.Minute, "the exporter pushes with its new token", func(ctx context.Context) error {
		_, answer, _, err := askAs(ctx, adapter, "GET", list+"/known", "ann\x00secret for tests")
		if err != nil || !strings.Contains(answer, `"up":true`) {
			return fmt.Errorf("%v: %s", err, answer)
		}
		return nil
	})
	for _, secret := range []string{token, expired, reader, admin, next, annHash} {
		_, metrics, _, _ := askAs(t.Context(), adapter, "GET", "/metrics", reader)
		_, flags, _, _ := askAs(t.Context(), adapter, "GET", "/api/v1/status/flags", reader)
		if bytes.Contains(good, []byte(secret)) || strings.Contains(adapter.Log()+metrics+flags, secret) {
			t.Error("a secret is shown")
		}
	}
}

// checkWho asks for things with all kinds of credentials.
func checkWho(t *testing.T, adapter *app, device, expired, reader, admin string) {
	t.Helper()
	for _, tc := range []struct {
		who, credentials                string
		push, page, retire, health, cut int
	}{
		{"nobody", "", 401, 401, 401, 200, 401},
		{"a guess", "tta_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 401, 401, 401, 200, 401},
		{"the device", device, 415, 401, 401, 200, 401},
		{"an expired token", expired, 401, 401, 401, 200, 401},
		{"a reader", reader, 401, 200, 403, 200, 403},
		{"an admin", admin, 415, 200, 404, 200, 200},
		{"a user", "ann\x00secret for tests", 401, 200, 403, 200, 403},
		{"a wrong password", "ann\x00secret", 401, 401, 401, 200, 401},
	} {
		for _, x := range []struct {
			method, path string
			want         int
		}{
			{"POST", "/api/v1/write", tc.push}, {"GET", "/", tc.page}, {"GET", "/metrics", tc.page}, {"GET", "/api/v1/labels", tc.page},
			{"DELETE", "/api/v1/devices/nobody-of-that-name", tc.retire}, {"GET", "/-/ready", tc.health},
			{"POST", "/api/v1/admin/tsdb/snapshot", tc.cut}, {"POST", "/-/reload", tc.cut},
		} {
			status, answer, header, err := askAs(t.Context(), adapter, x.method, x.path, tc.credentials)
			if err != nil || status != x.want || (status == 401) != (header.Get("WWW-Authenticate") != "") {
				t.Errorf("%s: %s %s: status %d, want %d: %v %s", tc.who, x.method, x.path, status, x.want, err, answer)
			}
		}
	}
}
