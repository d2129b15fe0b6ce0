package collectors

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A source that read other texts before says the same of a text as one that did not:
// what it remembers of lines changes nothing. Rows come and go, change places and
// names, move, and are broken, and all series are cleared in between.
func TestRememberedLines(t *testing.T) {
	parsers := map[string]func() (func(*Out, []byte) error, func(*rand.Rand, []int64) string){
		"vmstat": func() (func(*Out, []byte) error, func(*rand.Rand, []int64) string) {
			s := &vmstat{faults: newFaults(Env{}, "vmstat"), fields: pattern(vmstatFields), rows: newTable[fieldRow](maxFields), file: &file{}}
			return s.parse, lineText("pgpgin", "nr_free", "pgfault", "oom_kill", "pswpin")
		},
		"snmp6": func() (func(*Out, []byte) error, func(*rand.Rand, []int64) string) {
			s := &netstat{faults: newFaults(Env{}, "netstat"), fields: pattern(netstatFields), sixRows: newTable[fieldRow](maxFields)}
			return func(out *Out, b []byte) error { s.parseSix(out, b); return nil }, lineText("Ip6InReceives", "Ip6InOctets", "Icmp6InMsgs", "Udp6NoPorts")
		},
		"interrupts": func() (func(*Out, []byte) error, func(*rand.Rand, []int64) string) {
			s := &interrupts{file: &file{}}
			s.matrix = s.newMatrix(Env{})
			return s.matrix.parse, matrixText
		},
		"snmp": func() (func(*Out, []byte) error, func(*rand.Rand, []int64) string) {
			s := &netstat{faults: newFaults(Env{}, "netstat"), fields: pattern(netstatFields)}
			rows := newTable[netstatRow](maxProtocols)
			return func(out *Out, b []byte) error { s.parsePairs(out, rows, b); return nil }, pairsText
		},
	}
	for name, parser := range parsers {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			rnd := rand.New(rand.NewPCG(seed, 1))
			parse, text := parser()
			long := newSilent()
			values := make([]int64, 8)
			var last string
			for step := range 400 {
				if rnd.IntN(4) > 0 || last == "" {
					values[rnd.IntN(len(values))] += rnd.Int64N(3)
				}
				now := text(rnd, values)
				if rnd.IntN(3) == 0 && last != "" {
					now = last
				}
				last = now
				if rnd.IntN(20) == 0 {
					long.out.ClearAll()
				}
				badBefore := long.out.Stats.BadRows.Load()
				err := parse(long.out, []byte(now))
				fresh, _ := parser()
				short := newSilent()
				err2 := fresh(short.out, []byte(now))
				if (err == nil) != (err2 == nil) {
					t.Fatalf("seed %d step %d: %v and %v", seed, step, err, err2)
				}
				if err != nil {
					continue
				}
				a, b := long.present(), short.present()
				// A row of the matrix that moved once is shown for ever.
				maps.DeleteFunc(a, func(k string, v float64) bool { _, ok := b[k]; return !ok && v == 0 })
				if d := cmp.Diff(b, a); d != "" {
					t.Fatalf("seed %d step %d (-fresh +remembering):\n%s\n%s", seed, step, d, now)
				}
				if x, y := long.out.Stats.BadRows.Load()-badBefore, short.out.Stats.BadRows.Load(); x != y {
					t.Fatalf("seed %d step %d: %d bad rows, want %d\n%s", seed, step, x, y, now)
				}
			}
		})
	}
}

// silent is an Out without a source.
type silent struct {
	schema Schema
	row    Row
	out    *Out
}

func newSilent() *silent {
	s := &silent{}
	s.out = NewOut(&s.schema, &s.row, 0)
	return s
}

func (s *silent) present() map[string]float64 {
	got := map[string]float64{}
	for slot, x := range s.schema.Series() {
		if s.row.Has(slot) {
			got[seriesName(x)] = x.Value(s.row.Values[slot])
		}
	}
	return got
}

// names is some of them, mostly all, sometimes in another order.
func names(rnd *rand.Rand, all ...string) []string {
	out := append([]string(nil), all...)
	if rnd.IntN(10) == 0 {
		i := rnd.IntN(len(out))
		out = append(out[:i], out[i+1:]...)
	}
	if rnd.IntN(10) == 0 {
		rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	if rnd.IntN(20) == 0 {
		out = append(out, out[0])
	}
	return out
}

func lineText(all ...string) func(*rand.Rand, []int64) string {
	return func(rnd *rand.Rand, values []int64) string {
		var b strings.Builder
		for i, name := range names(rnd, all...) {
			if rnd.IntN(60) == 0 {
				fmt.Fprintf(&b, "%s x\n", name)
				continue
			}
			fmt.Fprintf(&b, "%s %d\n", name, values[i%len(values)])
		}
		return b.String()
	}
}

func matrixText(rnd *rand.Rand, values []int64) string {
	cpus := 2
	if rnd.IntN(20) == 0 {
		cpus = 1
	}
	var b strings.Builder
	for cpu := range cpus {
		fmt.Fprintf(&b, "   CPU%d", cpu)
	}
	b.WriteString("\n")
	for i, name := range names(rnd, "0", "1", "24", "NMI", "LOC") {
		fmt.Fprintf(&b, "%4s:", name)
		for cpu := range cpus {
			fmt.Fprintf(&b, " %10d", values[(i+cpu)%len(values)])
		}
		if rnd.IntN(60) == 0 {
			b.WriteString(" 12x")
		}
		fmt.Fprintf(&b, "  chip  dev%d\n", rnd.IntN(40)/39)
	}
	fmt.Fprintf(&b, " ERR: %10d\n", values[0])
	return b.String()
}

func pairsText(rnd *rand.Rand, values []int64) string {
	var b strings.Builder
	for _, name := range names(rnd, "Ip", "Tcp", "Udp") {
		columns := names(rnd, "InErrors", "OutOctets", "InSegs", "Forwarding", "InDatagrams")
		fmt.Fprintf(&b, "%s: %s\n%s:", name, strings.Join(columns, " "), name)
		for i := range columns {
			if rnd.IntN(100) == 0 {
				b.WriteString(" x")
			}
			fmt.Fprintf(&b, " %d", values[i])
		}
		b.WriteString("\n")
	}
	return b.String()
}
