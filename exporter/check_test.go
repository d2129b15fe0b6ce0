package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckConfig: what run would refuse, --check-config refuses, and names the flag.
func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("nothing in PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	const url = "--remote-write.url=https://h/w"
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"certificates to trust": {[]string{url, "--remote-write.tls-ca-file=" + file}, 2, "--remote-write.tls-ca-file: " + file},
		"of one receiver":       {[]string{url + "#tls-ca-file=" + file}, 2, "--remote-write.tls-ca-file: " + file},
		"certificate to show":   {[]string{url, "--remote-write.tls-cert-file=" + file, "--remote-write.tls-key-file=" + file}, 2, "--remote-write.tls-cert-file"},
		"port":                  {[]string{"--listen=:99999"}, 2, "--listen: "},
		"address of another":    {[]string{"--listen=192.0.2.1:0"}, 2, "--listen: "},
		"port in use":           {[]string{"--listen=" + ln.Addr().String()}, 0, "while the exporter runs"},
		"spool":                 {[]string{url, "--spool.dir=" + file}, 2, "--spool.dir: "},
		"spool below a file":    {[]string{url, "--spool.dir=" + file + "/spool"}, 2, "--spool.dir: "},
		"spool in procfs":       {[]string{url, "--spool.dir=/proc/spool"}, 2, "--spool.dir: nothing can be written in /proc"},
		"spool to be made":      {[]string{url, "--spool.dir=" + dir + "/a/b"}, 0, "good"},
		"empty URL":             {[]string{"--remote-write.url="}, 2, "--remote-write.url"},
		"empty target":          {[]string{"--ping.target="}, 2, "--ping.target"},
		"empty selector":        {[]string{url, "--remote-write.match[]="}, 2, "--remote-write.match[]"},
		"empty for one":         {[]string{url + "#match[]="}, 2, "https://h/w: match[] is empty"},
		"empty scrape":          {[]string{url, "--scrape.url="}, 2, "--scrape.url"},
		"empty spool":           {[]string{"--spool.dir="}, 2, "--spool.dir"},
		"no procfs":             {[]string{"--path.procfs=" + dir}, 0, "--path.procfs"},
		"a unit":                {[]string{"--collector.systemd.unit-include=x", "--no-collector.netdev.address-info"}, 0, "flag=--collector.systemd.unit-include"},
		"telemetry":             {[]string{"--web.telemetry-path=/m"}, 0, "flag=--web.telemetry-path"},
		"passwords":             {[]string{"--web.config.file=web.yml"}, 2, "without TLS and passwords"},
		"no scheme":             {[]string{"--remote-write.url=192.0.2.1:9/w"}, 2, "write http:// before it"},
	} {
		t.Run(name, func(t *testing.T) {
			var out output
			args := append([]string{"--check-config", "--listen=127.0.0.1:0"}, c.args...)
			if code := realMain(t.Context(), args, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("%q: exit code is %d, want %d and %q in:\n%s", c.args, code, c.code, c.want, &out)
			}
		})
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
	if left, _ := filepath.Glob(dir + "/.*"); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestUnknownVariables(t *testing.T) {
	for _, name := range []string{"RATTE", "URL", "FOR", "FORMAT", "COLLECTOR_STAT", "COLLECTOR_NETDEV_DEVICE_INCLUDE", "REMOTE_WRITE_MATCH"} {
		got := unknownVariables([]string{envPrefix + name + "=1", "HOME=/"})
		if known := len(got) == 0; known == (name == "RATTE") {
			t.Errorf("%s: %q", name, got)
		}
	}
	t.Setenv("TICKTIER_EXPORTER_RATTE", "1")
	var out output
	if code := realMain(t.Context(), []string{"--check-config", "--listen=127.0.0.1:0"}, &out, &out); code != 0 || !strings.Contains(out.String(), "TICKTIER_EXPORTER_RATTE") {
		t.Errorf("%d: %s", code, &out)
	}
}

// TestVerbEnvironment: a verb's flags have variables, too.
func TestVerbEnvironment(t *testing.T) {
	t.Setenv("TICKTIER_EXPORTER_URL", "http://127.0.0.1:1/here")
	t.Setenv("TICKTIER_EXPORTER_OUT", filepath.Join(t.TempDir(), "out"))
	for _, verb := range []string{"top", "record"} {
		var out output
		if code := realMain(t.Context(), []string{verb}, &out, &out); code != 1 || !strings.Contains(out.String(), "127.0.0.1:1/here") {
			t.Errorf("%s: %d: %s", verb, code, &out)
		}
	}
}

// TestVerbFaults: what a verb refuses, it names.
func TestVerbFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--for: 0s":              {"record", "--for=0s"},
		"--for: -1s":             {"record", "--for=-1s"},
		"write http:// before":   {"top", "--url=localhost:9747"},
		"neither in .svg nor in": {"plot", "--out=x.jpg", file},
	} {
		var out output
		if code := realMain(t.Context(), args, &out, &out); code == 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %d: %s", args, code, &out)
		}
	}
}
