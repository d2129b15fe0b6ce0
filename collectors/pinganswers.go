package collectors

import (
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// pingTarget is a target. Only the reading goroutine touches it, but for address.
type pingTarget struct {
	name string // as it was given
	host string
	port uint16 // 0 is ICMP
	// index is its place among the targets, which requests carry.
	index uint16
	// address is where it is, nil while nobody knows.
	address atomic.Pointer[netip.Addr]

	at       netip.Addr // that to is made of
	to       unix.Sockaddr
	toPort   unix.Sockaddr
	next     int64 // monotonic time of the next request
	seq      uint16
	window   [pingWindow]pingRequest
	connect  tcpConnect
	requests uint64
	replies  uint64
	lost     uint64
	total    int64 // ns
	last     int64 // ns; below 0 is none

	slots [5]int32 // slots + 1
	infos map[string]int32
	info  int32
}

// pingRequest is a request that waits for its answer.
type pingRequest struct {
	mono, wall int64
	seq        uint16
	open       bool
}

// lose counts a request that has no answer.
func (t *pingTarget) lose() {
	t.lost++
	t.last = -1
}

// answer counts one; took is below 0 where nobody knows how long it took.
func (t *pingTarget) answer(took int64) {
	t.replies++
	if t.last = took; took >= 0 {
		t.total += took
	}
}

// expire counts what was not answered in time.
func (t *pingTarget) expire(mono int64) {
	for i := range t.window {
		if r := &t.window[i]; r.open && mono-r.mono > int64(pingPatience) {
			r.open = false
			t.lose()
		}
	}
}

func (t *pingTarget) set(out *Out, method string) {
	if t.slots[0] == 0 {
		for i, m := range []*Metric{&pingRequests, &pingReplies, &pingLost, &pingTime, &pingLast} {
			t.slots[i] = int32(out.Add(m, Label{"target", label([]byte(t.name))})) + 1
		}
		t.infos = map[string]int32{}
	}
	for i, v := range [...]int64{int64(t.requests), int64(t.replies), int64(t.lost), t.total} {
		out.Set(int(t.slots[i]-1), v)
	}
	if t.last < 0 {
		clearSlots(out, t.slots[4])
	} else {
		out.Set(int(t.slots[4]-1), t.last)
	}
	t.setInfo(out, method)
}

// setInfo tells the address, of which a target may have another with time.
func (t *pingTarget) setInfo(out *Out, method string) {
	if !t.at.IsValid() {
		return
	}
	if t.connect.told == t.at {
		if t.info > 0 {
			out.Set(int(t.info-1), 1)
		}
		return
	}
	t.connect.told = t.at
	clearSlots(out, t.info)
	address := t.at.String()
	slot, ok := t.infos[address]
	if t.info = slot; !ok {
		if len(t.infos) >= maxPingInfos {
			out.Stats.Overflow.Add(1)
			return
		}
		t.info = int32(out.Add(&pingInfo, Label{"target", label([]byte(t.name))}, Label{"address", address}, Label{"method", method})) + 1
		t.infos[address] = t.info
	}
	out.Set(int(t.info-1), 1)
}
