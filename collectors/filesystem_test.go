package collectors

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fakeMounts answers statfs; paths that hang wait until they are let go.
type fakeMounts struct {
	hang  map[string]chan struct{}
	calls atomic.Int64
}

func (f *fakeMounts) statfs(p []byte, st *unix.Statfs_t) error {
	path := strings.TrimSuffix(string(p), "\x00")
	f.calls.Add(1)
	if c := f.hang[path]; c != nil {
		<-c
	}
	if strings.Contains(path, "denied") {
		return unix.EACCES
	}
	st.Bsize, st.Blocks, st.Bfree, st.Bavail, st.Files, st.Ffree = 4096, 100, 50, 40, 10, 5
	return nil
}

func openMounts(t *testing.T, tr *tree, f *fakeMounts) *probe {
	p := tr.open("filesystem")
	s := p.src.(*filesystem)
	s.statfs, s.root = f.statfs, "/"
	return p
}

const rootMount = "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"

func fsLabels(device, deviceError, fstype, mountpoint string) string {
	s := fmt.Sprintf("{device=%q", device)
	if deviceError != "" {
		s += fmt.Sprintf(",device_error=%q", deviceError)
	}
	return s + fmt.Sprintf(",fstype=%q,mountpoint=%q}", fstype, mountpoint)
}

func TestFilesystem(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/1/mountinfo", rootMount+
		"21 20 0:5 / /proc rw - proc proc rw\n"+
		"22 20 0:6 / /mnt/a\\040b ro - nfs4 server:/x\\134y rw\n"+
		"23 20 0:7 / /ro rw master:1 propagate_from:2 - ext4 /dev/sdb1 emergency_ro\n"+
		"24 20 0:8 / /denied rw - tmpfs tmpfs rw\n"+
		"25 20 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"+ // over the first
		"26 20 0:9 / /var/lib/docker/overlay2/x rw - ext4 /dev/sda1 rw\n"+
		"27 20 0-10 / /bad rw - ext4 /dev/sdc1 rw\n28 20 0:11 / /nodash rw\n29\n")
	p := openMounts(t, tr, &fakeMounts{})
	got := p.read()
	root, nfs := fsLabels("/dev/sda1", "", "ext4", "/"), fsLabels(`server:/x\y`, "", "nfs4", "/mnt/a b")
	ro, denied := fsLabels("/dev/sdb1", "", "ext4", "/ro"), fsLabels("tmpfs", "permission denied", "tmpfs", "/denied")
	want(t, got, "size", map[string]float64{"node_filesystem_size_bytes" + root: 409600,
		"node_filesystem_size_bytes" + nfs: 409600, "node_filesystem_size_bytes" + ro: 409600})
	want(t, got, "avail", map[string]float64{"node_filesystem_avail_bytes" + root: 163840,
		"node_filesystem_avail_bytes" + nfs: 163840, "node_filesystem_avail_bytes" + ro: 163840})
	want(t, got, "readonly", map[string]float64{"node_filesystem_readonly" + root: 0, "node_filesystem_readonly" + nfs: 1,
		"node_filesystem_readonly" + ro: 1, "node_filesystem_readonly" + denied: 0})
	want(t, got, "node_filesystem_device_error", map[string]float64{"node_filesystem_device_error" + root: 0,
		"node_filesystem_device_error" + nfs: 0, "node_filesystem_device_error" + ro: 0, "node_filesystem_device_error" + denied: 1})
	p.wantStats(3, 0, 0)

	// Remounted with other options it is the same mount; unmounted it is gone.
	slots := p.schema.Len()
	tr.write("proc/1/mountinfo", strings.Replace(rootMount, "rw,relatime", "ro,noatime", 1))
	want(t, p.read(), "readonly", map[string]float64{"node_filesystem_readonly" + root: 1})
	if p.schema.Len() != slots {
		t.Errorf("got %d slots, want %d", p.schema.Len(), slots)
	}
}

// A mount that never answers costs only its own series, one goroutine, and the time
// of one read; when it answers again it is as before.
func TestFilesystemHangs(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/1/mountinfo", rootMount+"22 20 0:6 / /nfs rw - nfs4 server:/x rw\n")
	release := make(chan struct{})
	f := &fakeMounts{hang: map[string]chan struct{}{"/nfs": release}}
	p := openMounts(t, tr, f)
	root, nfs := fsLabels("/dev/sda1", "", "ext4", "/"), fsLabels("server:/x", "", "nfs4", "/nfs")
	stuck := fsLabels("server:/x", mountStuck, "nfs4", "/nfs")
	got := p.read()
	want(t, got, "device_error", map[string]float64{"node_filesystem_device_error" + root: 0,
		"node_filesystem_device_error" + stuck: 1, "node_filesystem_readonly" + stuck: 0})
	goroutines := runtime.NumGoroutine()
	begin := time.Now()
	for range 20 {
		want(t, p.read(), "size", map[string]float64{"node_filesystem_size_bytes" + root: 409600})
	}
	if d := time.Since(begin); d > mountPatience {
		t.Errorf("20 reads beside a stuck mount took %v", d)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("got %d goroutines, want %d", n, goroutines)
	}
	// Unmounted and mounted again while it hangs, it has no second goroutine.
	tr.write("proc/1/mountinfo", rootMount)
	want(t, p.read(), "size", map[string]float64{"node_filesystem_size_bytes" + root: 409600})
	tr.write("proc/1/mountinfo", rootMount+"22 20 0:6 / /nfs rw - nfs4 server:/x rw\n")
	p.read()
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("got %d goroutines after a remount, want %d", n, goroutines)
	}
	close(release)
	for range 1000 {
		if got = p.read(); got["node_filesystem_size_bytes"+nfs] == 409600 {
			break
		}
		time.Sleep(time.Millisecond) // lets the goroutine answer
	}
	want(t, got, "node_filesystem_device_error", map[string]float64{"node_filesystem_device_error" + root: 0, "node_filesystem_device_error" + nfs: 0})
	if log := tr.log.String(); strings.Count(log, "mountpoint=/nfs") != 2 || strings.Count(log, "level=WARN") != 1 {
		t.Errorf("the log does not name the mount once as it fails and once as it answers:\n%s", log)
	}
}

func TestFilesystemOfThisMachine(t *testing.T) {
	src, err := newFilesystem(thisMachine())
	if err != nil {
		t.Skip(err)
	}
	p := newProbe(t, src)
	names := []string{}
	for name := range p.read() {
		names = append(names, name)
	}
	if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, `mountpoint="/"`) }) {
		t.Errorf("the root is not there: %q", names)
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add([]byte(rootMount))
	f.Add([]byte("22 20 0:6 / /mnt/a\\040b ro - nfs4 server:/x rw"))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, ok := parseMount(line)
		if !ok {
			return
		}
		var r mountRow
		r.init(m, "/")
		if len(m.appendKey(nil)) == 0 || r.path == "" {
			t.Error("a mount without a name")
		}
	})
}

func FuzzOSRelease(f *testing.F) {
	f.Add([]byte("A=\"b\\\"c\"\nB='x'\nC\n#D=1\n=\n\"=\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) { parseOSRelease(text) })
}

func FuzzSensor(f *testing.F) {
	f.Add("temp12_max_alarm")
	f.Add("beep_enable")
	f.Fuzz(func(t *testing.T, name string) {
		if kind, _, element, ok := splitSensor(name); ok && len(kind)+len(element) > len(name) {
			t.Errorf("got %q, %q", kind, element)
		}
	})
}
