package ring

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestDuration: what is younger is held, what is older is not for much longer, and
// what goes undelivered is counted.
func TestDuration(t *testing.T) {
	r, err := New(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	r.Duration = 30 * time.Second
	r.Delivered(100)
	rnd := rand.New(rand.NewPCG(1, 1))
	values, present := make([]int64, 64), []uint64{^uint64(0)}
	for seq := range uint64(6000) {
		for i := range values {
			values[i] = rnd.Int64()
		}
		now := int64(seq) * int64(100*time.Millisecond)
		r.Append(seq, now, 1, values, present)
		st := r.Stats()
		if held := time.Duration(st.LastTime - st.FirstTime); now > int64(time.Minute) && (held < 30*time.Second || held > 50*time.Second) {
			t.Fatalf("after %v: %v is held", time.Duration(now), held)
		}
	}
	st := r.Stats()
	if st.EvictedTicks < 5000 || st.EvictedUndelivered != st.EvictedTicks-100 || st.Bytes > st.Capacity/2 {
		t.Errorf("%+v", st)
	}
	rd := r.Reader()
	if !rd.Next() || rd.Tick().Seq != st.FirstSeq {
		t.Errorf("the first tick is %d, want %d", rd.Tick().Seq, st.FirstSeq)
	}
}
