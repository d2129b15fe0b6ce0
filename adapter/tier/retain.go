package tier

import (
	"time"

	"github.com/ticktier/ticktier/adapter/store"
)

// hoursNeed is how far back five-minute buckets stay whatever room there is: the hours
// of a day that is not over are merged from them.
const hoursNeed = 48 * time.Hour

// retain drops what is past its retention, then what there is no room for. It counts
// back from the newest sample or from the clock, whichever is earlier: a clock that
// jumps ahead costs nothing.
func (d *Driver) retain() error {
	now := min(d.Raw.MaxTime(), d.Now().UnixMilli())
	for _, t := range []struct {
		b *store.Buckets
		r store.Retention
	}{
		{d.Fine, store.Retention{Age: d.RetentionFine.Milliseconds(), Before: d.Coarse.Durable()}},
		{d.Coarse, store.Retention{Age: d.RetentionCoarse.Milliseconds(), Before: d.Coarse.Durable(), Keeps: d.Keeps}},
	} {
		n, _, err := t.b.Retain(now, t.r)
		if n > 0 {
			d.Logger.Info("blocks past their retention dropped", "tier", t.b.Name(), "blocks", n)
		}
		if err != nil {
			return err
		}
	}
	d.shrink(now)
	return nil
}

// shrink makes room where all tiers together take more than they may: the oldest raw
// samples go first, for their buckets are kept, then five-minute buckets, for their
// hours are, then hours.
func (d *Driver) shrink(now int64) {
	if d.MaxBytes <= 0 {
		return
	}
	over := d.Raw.Size() + d.Fine.Size() + d.Coarse.Size() - d.MaxBytes
	over -= d.Raw.DropOver(over, now-d.RawNeeds.Milliseconds())
	over -= d.Fine.DropOver(over, min(now-hoursNeed.Milliseconds(), d.Coarse.Durable()))
	over -= d.Coarse.DropOver(over, now-hoursNeed.Milliseconds())
	if tight := over > 0; tight != d.tight {
		d.tight = tight
		if tight {
			d.Logger.Warn("what has to be kept takes more than --retention.size", "bytes_over", over)
		}
	}
}
