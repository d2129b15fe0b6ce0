package collectors

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// openBelow is how many descriptors this process has open on files under dir.
func openBelow(t *testing.T, part string) int {
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range fds {
		if name, err := os.Readlink(fd); err == nil {
			if ok, _ := filepath.Match("/sys/devices/*/net/"+part, name); ok {
				n++
			}
			if ok, _ := filepath.Match("/sys/devices/virtual/net/"+part, name); ok {
				n++
			}
		}
	}
	return n
}

// A source that is read often keeps its attributes open, and says the same; one that
// is not keeps none.
func TestNetclassKeeps(t *testing.T) {
	if _, err := os.Stat("/sys/class/net/lo/mtu"); err != nil {
		t.Skip(err)
	}
	env := thisMachine()
	read := func(every time.Duration) (map[string]float64, Source) {
		env.Every = every
		src, err := newNetclass(env)
		if err != nil {
			t.Skip(err)
		}
		p := newProbe(t, src)
		p.read()
		return p.read(), src
	}
	seldom, _ := read(5 * time.Second)
	if n := openBelow(t, "lo/*"); n != 0 {
		t.Errorf("%d attributes of lo are kept open between reads 5 s apart", n)
	}
	often, src := read(10 * time.Millisecond)
	n := openBelow(t, "lo/*")
	if n < 10 {
		t.Errorf("%d attributes of lo are kept open between reads 10 ms apart", n)
	}
	if diff := cmp.Diff(seldom, often); diff != "" {
		t.Errorf("series differ (-opened +kept):\n%s", diff)
	}
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	if n := openBelow(t, "lo/*"); n != 0 {
		t.Errorf("%d attributes are open after Close", n)
	}
}

// The number of descriptors is bounded, and what cannot be kept is read all the same.
func TestKeeperBound(t *testing.T) {
	dir := t.TempDir()
	var attrs [3]attr
	for i := range attrs {
		path := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(path, []byte("7\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		attrs[i] = newAttr(path)
	}
	k := keeper{left: 2}
	buf := make([]byte, 16)
	for range 2 {
		for i := range attrs {
			if text, errno := k.read(&attrs[i], buf); string(text) != "7" || errno != 0 {
				t.Errorf("attribute %d: %q, %v", i, text, errno)
			}
		}
	}
	if attrs[0].kept == 0 || attrs[1].kept == 0 || attrs[2].kept != 0 || k.left != 0 {
		t.Errorf("kept %d %d %d, room for %d", attrs[0].kept, attrs[1].kept, attrs[2].kept, k.left)
	}
	for i := range attrs {
		k.drop(&attrs[i])
		k.drop(&attrs[i])
	}
	if k.left != 2 {
		t.Errorf("room for %d after all were dropped", k.left)
	}
	gone := newAttr(filepath.Join(dir, "no"))
	if _, errno := k.read(&gone, buf); errno != unix.ENOENT || k.left != 2 {
		t.Errorf("missing: %v, room for %d", errno, k.left)
	}
}

// Reading what is kept allocates nothing.
func TestKeeperAllocatesNothing(t *testing.T) {
	env := thisMachine()
	env.Every = time.Millisecond
	src, err := newNetclass(env)
	if err != nil {
		t.Skip(err)
	}
	p := newProbe(t, src)
	p.read()
	p.read()
	if n := testing.AllocsPerRun(20, func() {
		if err := p.src.Read(p.out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations a read", n)
	}
}
