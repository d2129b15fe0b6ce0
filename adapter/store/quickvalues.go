package store

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// quickValues appends the value of each bucket of a chunk, one sample at the end of its
// window, without making buckets on the way: a chart of a year reads nothing else. It
// reports whether it could; where it could not and there is no error, it has appended
// nothing. The windows are those that start in [from, to).
func (d *decoder) quickValues(out *samples, c blockChunk, sm *sampler, from, to int64) (done bool, err error) {
	if sm.agg != Value || sm.fill > 0 && sm.fill < sm.res {
		return false, nil
	}
	chunk, _, err := c.cr.ChunkOrIterable(c.meta)
	if err != nil {
		return false, err
	}
	ac, ok := chunk.(*aggrChunk)
	if !ok {
		return false, errAggr
	}
	n := len(out.ts)
	if done, err = d.appendValues(out, ac, sm, from, to); err != nil || !done {
		out.ts, out.vs = out.ts[:n], out.vs[:n]
	}
	return done, err
}

// appendValues does it for a chunk; of other versions than the one it knows it reads
// nothing.
func (d *decoder) appendValues(out *samples, c *aggrChunk, sm *sampler, from, to int64) (done bool, err error) {
	var sub [subs][]byte
	rest := c.b
	for i := range sub {
		if sub[i], rest, err = cutSub(rest); err != nil {
			return false, err
		}
	}
	if len(rest) < 2 || rest[0] != extVersion || rest[1]&^extFlagsMask != 0 {
		return false, nil
	}
	flags := rest[1]
	last := sm.counter || flags&extNoSum != 0
	if last {
		err = d.countColumn(sub[subCount])
	} else {
		err = d.averages(sub[subCount], sub[subSum])
	}
	if err != nil {
		return false, err
	}
	d.ended = d.ended[:0]
	rest, err = eachSpecial(len(d.ends), rest[2:], func(at int, s special) {
		if s.flags&flagEnded != 0 {
			d.ended = append(d.ended, at)
		}
	})
	if err != nil {
		return false, err
	}
	if last {
		if d.values, err = d.lastValues(d.values[:0], len(d.ends), rest, sub[subCounter], flags); err != nil {
			return false, err
		}
	}
	d.emit(out, sm.res, from, to)
	return true, nil
}

// emit appends the values that were read, and where a series ended, a staleness marker.
func (d *decoder) emit(out *samples, res, from, to int64) {
	k := 0
	for i, end := range d.ends {
		for k < len(d.ended) && d.ended[k] < i {
			k++
		}
		if start := end - res + 1; start < from || start >= to {
			continue
		}
		out.add(end, d.values[i])
		if k < len(d.ended) && d.ended[k] == i {
			out.add(end+1, math.Float64frombits(value.StaleNaN))
		}
	}
}

// countColumn reads the ends of the windows, and that each has samples.
func (d *decoder) countColumn(sub []byte) error {
	it, err := d.xor(sub)
	if err != nil {
		return err
	}
	d.ends = d.ends[:0]
	for it.Next() == chunkenc.ValFloat {
		t, v := it.At()
		if !(v >= 1 && v < 1<<53) {
			return fmt.Errorf("%w: a bucket of %v samples", errAggr, v)
		}
		d.ends = append(d.ends, t)
	}
	return it.Err()
}

// averages reads the ends of the windows, and sums over counts.
func (d *decoder) averages(count, sum []byte) error {
	if len(sum) < 3 || chunkenc.Encoding(sum[0]) != chunkenc.EncXOR {
		return fmt.Errorf("%w: a sub-chunk is missing or not of floats", errAggr)
	}
	counts, err := d.xor(count)
	if err != nil {
		return err
	}
	d.chunk2.Reset(sum[1:])
	d.it2 = d.chunk2.Iterator(d.it2)
	d.ends, d.values = d.ends[:0], d.values[:0]
	for counts.Next() == chunkenc.ValFloat {
		t, n := counts.At()
		if !(n >= 1 && n < 1<<53) {
			return fmt.Errorf("%w: a bucket of %v samples", errAggr, n)
		}
		if d.it2.Next() != chunkenc.ValFloat {
			if err := d.it2.Err(); err != nil {
				return err
			}
			return fmt.Errorf("%w: %d sums of more buckets", errAggr, len(d.ends))
		}
		_, s := d.it2.At()
		d.ends, d.values = append(d.ends, t), append(d.values, s/n)
	}
	return counts.Err()
}
