package collectors

import (
	"encoding/binary"
	"math/bits"
)

// perfSet is what a group has on one CPU, in the order of perfGroups. Its slots and
// sums stay when the CPU goes.
type perfSet struct {
	counts [maxPerfEvents]perfCount
	times  [2]perfCount // enabled, running
}

type perfCount struct {
	slot int32 // slot + 1
	sum  uint64
}

// perfOpen is events that are counted and read together.
type perfOpen struct {
	group  int   // of perfGroups
	events []int // of the group
	fds    []int // the leader's first
	// What the kernel said at the last read.
	enabled, running uint64
	values           [maxPerfEvents]uint64
}

// parse adds up what a read gave: the number of events, the times for which they were
// to be counted and were, and a count for each.
func (o *perfOpen) parse(c *perfCPU, b []byte) bool {
	if len(b) < 8*(perfHead+len(o.events)) || binary.NativeEndian.Uint64(b) != uint64(len(o.events)) {
		return false
	}
	enabled, running := binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
	toCount, counted := moved(enabled, o.enabled), moved(running, o.running)
	o.enabled, o.running = enabled, running
	set := &c.sets[o.group]
	for k, j := range o.events {
		v := binary.NativeEndian.Uint64(b[8*(perfHead+k):])
		set.counts[j].sum += scaled(moved(v, o.values[k]), toCount, counted)
		o.values[k] = v
	}
	if o.events[0] == 0 || len(o.events) > 1 {
		set.times[0].sum += toCount
		set.times[1].sum += counted
	}
	return true
}

// moved is by how much a count grew.
func moved(now, before uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

// scaled is n × enabled ÷ running, an estimate of what would have been counted all
// the time.
func scaled(n, enabled, running uint64) uint64 {
	if running == 0 || running >= enabled {
		return n
	}
	hi, lo := bits.Mul64(n, enabled)
	if hi >= running {
		return n // absurd
	}
	q, _ := bits.Div64(hi, lo, running)
	return q
}

// set reports the group, if it was ever counted: a group that does not fit into the
// machine's counters never is, and its zeros are no counts.
func (o *perfOpen) set(out *Out, c *perfCPU) {
	if o.running == 0 {
		o.clear(out, c)
		return
	}
	set := &c.sets[o.group]
	for _, j := range o.events {
		set.counts[j].set(out, &perfGroups[o.group].events[j].metric, c.label, "")
	}
	name := perfGroups[o.group].name
	set.times[0].set(out, &perfEnabled, c.label, name)
	set.times[1].set(out, &perfRunning, c.label, name)
}

func (p *perfCount) set(out *Out, m *Metric, cpu, group string) {
	if p.slot == 0 {
		p.slot = int32(out.Add(m, Label{"cpu", cpu}, Label{"group", group})) + 1
	}
	out.Set(int(p.slot-1), int64(p.sum))
}

func (p *perfCount) clear(out *Out) {
	if p.slot > 0 {
		out.Clear(int(p.slot - 1))
	}
}

func (o *perfOpen) clear(out *Out, c *perfCPU) {
	for _, j := range o.events {
		c.sets[o.group].counts[j].clear(out)
	}
}

// clear ends the series of a CPU that is gone.
func (c *perfCPU) clear(out *Out) {
	for i := range c.sets {
		for j := range c.sets[i].counts {
			c.sets[i].counts[j].clear(out)
		}
		c.sets[i].times[0].clear(out)
		c.sets[i].times[1].clear(out)
	}
}
