package collectors

import (
	"fmt"
	"testing"
)

// thisMachine is what the exporter reads by default.
func thisMachine() Env { return Env{Procfs: "/proc", Sysfs: "/sys", Rootfs: "/"} }

// Reading allocates nothing once every row was seen.
func TestReadAllocatesNothing(t *testing.T) {
	envs := map[string]Env{"this machine": thisMachine()}
	for _, device := range devices(t) {
		envs[device] = deviceEnv(device)
	}
	for name, env := range envs {
		for _, spec := range All() {
			t.Run(fmt.Sprintf("%s/%s", name, spec.Name), func(t *testing.T) {
				src, err := spec.New(env)
				if err != nil {
					t.Skip(err)
				}
				p := newProbe(t, src)
				read := func() {
					if err := p.src.Read(p.out); err != nil {
						t.Fatal(err)
					}
				}
				if err := p.src.Read(p.out); err != nil {
					t.Skip(err)
				}
				read()
				if n := testing.AllocsPerRun(50, read); n != 0 {
					t.Errorf("got %v allocations a read, want 0", n)
				}
			})
		}
	}
}

// A source whose read failed has all its series again with the next.
func TestReadAfterFailure(t *testing.T) {
	envs := map[string]Env{"this machine": thisMachine()}
	for _, device := range devices(t) {
		envs[device] = deviceEnv(device)
	}
	for name, env := range envs {
		for _, spec := range All() {
			t.Run(fmt.Sprintf("%s/%s", name, spec.Name), func(t *testing.T) {
				src, err := spec.New(env)
				if err != nil {
					t.Skip(err)
				}
				p := newProbe(t, src)
				if err := p.src.Read(p.out); err != nil {
					t.Skip(err)
				}
				before := p.read()
				p.out.ClearAll()
				after := p.read()
				for series := range before {
					// Processes and their states come and go by themselves.
					if _, ok := after[series]; !ok && spec.Name != "top_processes" && spec.Name != "processes" {
						t.Errorf("%s does not come back", series)
					}
				}
			})
		}
	}
}

// Bad rows are counted at every read; that must not allocate either.
func TestBadRowAllocatesNothing(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/stat", cpuLine("0", 1, 2, 3, 4)+"cpu1 x\ncpu2 1 2 3 x\n")
	p := tr.open("stat")
	p.read()
	n := testing.AllocsPerRun(50, func() {
		if err := p.src.Read(p.out); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("got %v allocations a read, want 0", n)
	}
	if p.out.Stats.BadRows.Load() < 100 {
		t.Error("the bad rows were not counted")
	}
}

func BenchmarkRead(b *testing.B) {
	for _, spec := range All() {
		b.Run("source="+spec.Name, func(b *testing.B) {
			src, err := spec.New(thisMachine())
			if err != nil {
				b.Skip(err)
			}
			defer src.Close()
			var schema Schema
			var row Row
			out := NewOut(&schema, &row, 0)
			b.ReportAllocs()
			for b.Loop() {
				if err := src.Read(out); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(out.Stats.Bytes.Load()) / int64(b.N))
		})
	}
}
