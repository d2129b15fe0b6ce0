package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestMain runs the tests and then demands that no process of theirs is left.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := children(os.Getpid()); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "processes left running by the tests: %v\n", left)
		code = max(code, 1)
	}
	for _, dir := range madeDirs {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// root is the module's folder.
func root(t testing.TB) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(wd)
}

// madeDirs are folders that outlive a test. Only the functions below, which run
// once, add to it.
var (
	madeMu   sync.Mutex
	madeDirs []string
)

func makeDir() (string, error) {
	dir, err := os.MkdirTemp("", "ticktier-e2e-")
	madeMu.Lock()
	defer madeMu.Unlock()
	madeDirs = append(madeDirs, dir)
	return dir, err
}

// programs returns the folder with both programs: the one that `make e2e` names,
// or a new one that they are built into on first use.
var programs = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("TICKTIER_E2E_BIN"); dir != "" {
		return dir, nil
	}
	dir, err := makeDir()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("make", "build", "BIN="+dir)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build: %w\n%s", err, out)
	}
	return dir, nil
})

// exe returns the path of ticktier-<name>.
func exe(t testing.TB, name string) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ticktier-"+name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no %s: %v; `make build` makes it, `make e2e` runs these tests with it", name, err)
	}
	return path
}

// makeRunDir is where `make run` builds in all tests, so that it links once.
var makeRunDir = sync.OnceValues(makeDir)

func makeRunBin(t testing.TB) string {
	t.Helper()
	dir, err := makeRunDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// peers returns the folder with the real peers: the one that `make e2e` names, or
// the one that `make peers` fills, which takes minutes the first time.
var peers = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("TICKTIER_E2E_PEERS"); dir != "" {
		return dir, nil
	}
	cmd := exec.Command("sh", "peers/build.sh")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build the peers (`make peers` does the same): %w\n%s", err, errs.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
})

// peerExe returns the path of a peer.
func peerExe(t testing.TB, name string) string {
	t.Helper()
	dir, err := peers()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}
