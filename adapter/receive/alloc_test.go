package receive

import (
	"context"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

// TestNoAllocations: once the series are known, a request allocates nothing between
// its compressed body and the store.
func TestNoAllocations(t *testing.T) {
	for name, tc := range map[string]struct {
		body   []byte
		proto  protocol
		labels []labels.Label
	}{
		"2.0":                   {encode(t, push(50, 20, at(0), 10)), proto2, nil},
		"1.0":                   {encode(t, push1(50, 20, at(0), 10)), proto1, nil},
		"1.0, unsorted labels":  {encode(t, reversed(push1(50, 20, at(0), 10))), proto1, nil},
		"forced labels":         {encode(t, push(50, 20, at(0), 10)), proto2, []labels.Label{{Name: "instance", Value: "r1"}, {Name: "site", Value: "lab"}}},
		"forced labels in 1.0":  {encode(t, push1(50, 20, at(0), 10)), proto1, []labels.Label{{Name: "instance", Value: "r1"}}},
		"2.0, one sample each":  {encode(t, push(50, 1, at(0), 10)), proto2, nil},
		"2.0, unsorted samples": {encode(t, push(50, 20, at(0), -10)), proto2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h, run := pipeline(t, tc.body, tc.proto, tc.labels...)
			run()
			if n := testing.AllocsPerRun(50, run); n > 0 {
				t.Errorf("%v allocations for a request", n)
			}
			if got := h.cfg.Store.(*nullStore).samples; got == 0 {
				t.Error("no sample was appended")
			}
		})
	}
}

// pipeline returns a function that takes body all the way to a store that keeps nothing.
func pipeline(t testing.TB, body []byte, p protocol, forced ...labels.Label) (*Handler, func()) {
	h := New(Config{Store: new(nullStore), Quota: Quota{DeviceSeries: 1000, DeviceSamples: 1e9, Samples: 1e9}})
	w := h.pool.New().(*work)
	r := newRequest()
	return h, func() {
		w.compressed = body
		held, fail := w.unpack(h, r, testNow)
		w.entry.Labels = forced
		res := result{proto: p}
		if fail == nil {
			fail = h.store(context.Background(), w, Claim{}, testNow, &res)
		}
		h.budget.decoding.Release(held)
		w.end()
		if fail != nil {
			t.Fatal(fail.text)
		}
	}
}
