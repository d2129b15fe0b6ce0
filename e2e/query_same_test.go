package e2e

import "testing"

func TestSameValues(t *testing.T) {
	answer := func(a, b float64) *reply {
		return &reply{Series: map[string]map[int64]float64{"a": {1: a, 2: 5}, "b": {1: b}}}
	}
	if !sameValues(answer(1, 2), answer(2, 1+1e-12)) {
		t.Error("the same values in other series differ")
	}
	for _, other := range []*reply{answer(1, 3), {Series: map[string]map[int64]float64{"a": {1: 1, 2: 5}}}, {}} {
		if sameValues(answer(1, 2), other) {
			t.Errorf("%+v is the same", other)
		}
	}
}
