package store

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/ticktier/ticktier/adapter/fold"
)

// memBuckets are buckets of one series in compact form: records one after the other,
// each with the numbers of a bucket as distances to those before them in the record. It
// is never written to a disk. What a copy holds stays: more is only appended.
type memBuckets struct {
	data        []byte
	hists       []*fold.Hist // of the records that have one, in their order
	first, last int64        // starts of the first and the last window
	n           int32
}

// What a record has.
const (
	memEnded  = 1 << iota // a staleness marker follows the last sample
	memEmpty              // no samples
	memResets             // resets and their correction
	memNoSum              // fold.PartSum is lacking
	memNoCounter
	memEnds // min and max are first and last
	memHist
)

// memRaw marks a float that is written with all its bits.
const memRaw = 7

// add appends a bucket, whose window is after all others'.
func (m *memBuckets) add(b *fold.Bucket, res int64) {
	flags := memFlags(b)
	if m.n == 0 {
		m.first, m.last = b.Start, b.Start
	}
	var buf [128]byte
	d := append(buf[:0], flags)
	d = binary.AppendUvarint(d, uint64((b.Start-m.last)/res))
	m.last = b.Start
	m.n++
	if flags&memEmpty == 0 {
		d = binary.AppendUvarint(d, b.Count)
		d = binary.AppendVarint(d, b.Start+res-1-b.LastT)
		if flags&memNoCounter == 0 {
			d = binary.AppendVarint(d, b.FirstT-b.Start)
		}
		if flags&memResets != 0 {
			d = binary.AppendUvarint(d, uint64(b.Resets))
		}
		if flags&memHist == 0 {
			d = appendMemFloats(d, b, flags)
		}
	}
	if b.Hist != nil {
		m.hists = append(m.hists, b.Hist)
	}
	if need := len(m.data) + len(d); need > cap(m.data) {
		m.data = append(make([]byte, 0, need+need/4), m.data...)
	}
	m.data = append(m.data, d...)
}

func memFlags(b *fold.Bucket) (flags byte) {
	for _, f := range [...]struct {
		on   bool
		flag byte
	}{
		{b.Ended, memEnded}, {b.Count == 0, memEmpty}, {b.Resets > 0 || math.Float64bits(b.Corr) != 0, memResets},
		{b.Lacks&fold.PartSum != 0, memNoSum}, {b.Lacks&fold.PartCounter != 0, memNoCounter},
		{equalBits(b.Min, b.First) && equalBits(b.Max, b.Last) && b.Lacks&fold.PartCounter == 0, memEnds}, {b.Hist != nil, memHist},
	} {
		if f.on {
			flags |= f.flag
		}
	}
	return flags
}

func equalBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

func appendMemFloats(d []byte, b *fold.Bucket, flags byte) []byte {
	d = appendMemFloat(d, b.Last, 0)
	if flags&memNoCounter == 0 {
		d = appendMemFloat(d, b.First, b.Last)
	}
	if flags&memEnds == 0 {
		d = appendMemFloat(d, b.Min, b.Last)
		d = appendMemFloat(d, b.Max, b.Last)
	}
	if flags&memNoSum == 0 {
		d = appendMemFloat(d, b.Sum, b.Last*float64(b.Count))
	}
	if flags&memResets != 0 {
		d = appendMemFloat(d, b.Corr, b.Last)
	}
	return d
}

// appendMemFloat appends a float: where it has few decimal places its distance to the
// base in units of the last of them, and all its bits where it has many.
func appendMemFloat(d []byte, v, base float64) []byte {
	for p, scale := range pow10 {
		s := v * scale
		if !(math.Abs(s) < maxScaled) {
			break
		}
		if s = math.Round(s); equalBits(float64(int64(s))/scale, v) {
			diff := int64(s) - memBase(base, scale)
			return binary.AppendUvarint(d, uint64(diff<<1^diff>>63)<<3|uint64(p))
		}
	}
	d = append(d, memRaw)
	return binary.LittleEndian.AppendUint64(d, math.Float64bits(v))
}

// memBase is a base in units of 1/scale, 0 where it cannot be one.
func memBase(base, scale float64) int64 {
	if s := base * scale; math.Abs(s) < maxScaled {
		return int64(math.Round(s))
	}
	return 0
}

// memReader reads records. They are this program's own and not checked.
type memReader struct{ b []byte }

func (r *memReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *memReader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *memReader) float(base float64) float64 {
	u := r.uvarint()
	p := u & 7
	if p == memRaw {
		v := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
		r.b = r.b[8:]
		return v
	}
	u >>= 3
	scale := pow10[p]
	return float64(int64(u>>1)^-int64(u&1)+memBase(base, scale)) / scale
}

// appendTo appends the buckets whose windows start in [from, to) to dst.
func (m memBuckets) appendTo(dst []fold.Bucket, from, to, res int64) []fold.Bucket {
	r, start, hists := memReader{m.data}, m.first, m.hists
	for len(r.b) > 0 {
		flags := r.b[0]
		r.b = r.b[1:]
		start += int64(r.uvarint()) * res
		b := fold.Bucket{Start: start, Ended: flags&memEnded != 0}
		if flags&memNoSum != 0 {
			b.Lacks |= fold.PartSum
		}
		if flags&memNoCounter != 0 {
			b.Lacks |= fold.PartCounter
		}
		if flags&memEmpty == 0 {
			r.bucket(&b, flags, res)
		}
		if flags&memHist != 0 {
			b.Hist, hists = hists[0], hists[1:]
		}
		if start >= to {
			break
		}
		if start >= from {
			dst = append(dst, b)
		}
	}
	return dst
}

func (r *memReader) bucket(b *fold.Bucket, flags byte, res int64) {
	b.Count = r.uvarint()
	b.LastT = b.Start + res - 1 - r.varint()
	if flags&memNoCounter == 0 {
		b.FirstT = b.Start + r.varint()
	}
	if flags&memResets != 0 {
		b.Resets = uint32(r.uvarint())
	}
	if flags&memHist != 0 {
		return
	}
	b.Last = r.float(0)
	if flags&memNoCounter == 0 {
		b.First = r.float(b.Last)
	}
	if b.Min, b.Max = b.First, b.Last; flags&memEnds == 0 {
		b.Min = r.float(b.Last)
		b.Max = r.float(b.Last)
	}
	if flags&memNoSum == 0 {
		b.Sum = r.float(b.Last * float64(b.Count))
	}
	if flags&memResets != 0 {
		b.Corr = r.float(b.Last)
	}
}

// has reports whether a window that starts in [from, to) is there.
func (m memBuckets) has(from, to, res int64) bool {
	if m.n == 0 || m.first >= to || m.last < from {
		return false
	}
	return m.first >= from || m.last < to || len(m.appendTo(nil, from, to, res)) > 0
}

// put replaces the buckets in [from, to); of two of one window the fuller stays.
func (m *memBuckets) put(from, to int64, bs []fold.Bucket, res int64) {
	if m.n == 0 || from > m.last {
		for i := range bs {
			m.add(&bs[i], res)
		}
		return
	}
	old := m.appendTo(make([]fold.Bucket, 0, m.n), math.MinInt64, math.MaxInt64, res)
	all := slices.Concat(between(old, math.MinInt64, from), fuller(between(old, from, to), bs), between(old, to, math.MaxInt64))
	*m = memBuckets{}
	for i := range all {
		m.add(&all[i], res)
	}
}
