package fold

// Folder folds the samples of one series, given in time order. It is reused from
// series to series and then allocates nothing.
type Folder struct {
	res int64
	out []Bucket
	// open is the bucket being filled, valid while filling; its Sum is kept apart
	// with its compensation until the bucket is closed.
	open    Bucket
	sum     sum
	hist    histFolder
	filling bool
}

// NewFolder makes a Folder for windows of res milliseconds.
func NewFolder(res int64) *Folder { return &Folder{res: res} }

// Reset forgets everything. The slice that Buckets returned is reused from here on.
func (f *Folder) Reset() {
	f.out, f.filling = f.out[:0], false
}

// enter opens the window that t lies in.
func (f *Folder) enter(t int64) {
	if f.filling && t < f.open.Start+f.res {
		return
	}
	f.close()
	f.open = Bucket{Start: Window(t, f.res)}
	f.sum = sum{}
	f.filling = true
}

// Add takes the next sample: t in Unix milliseconds, not before the last one. A
// staleness marker ends the series in its window until the next sample.
func (f *Folder) Add(t int64, v float64) {
	f.enter(t)
	b := &f.open
	switch {
	case IsStale(v):
		b.Ended = true
	case b.Hist != nil:
		b.Hist.Mixed = true
		f.count(t, t, 1)
	case b.Count == 0:
		b.first(t, v)
		f.sum.add(v)
	default:
		b.follow(v)
		b.spread(v, v)
		b.Count++
		b.Last, b.LastT, b.Ended = v, t, false
		f.sum.add(v)
	}
}

// AddBucket takes the next bucket of a finer tier, in time order: an hour is
// merged from its twelve. The answer is that of folding the raw samples.
func (f *Folder) AddBucket(n Bucket) {
	f.enter(n.Start)
	b := &f.open
	switch {
	case n.Count == 0:
		b.Ended = n.Ended || b.Ended
	case n.Hist != nil || b.Hist != nil:
		f.mergeHist(&n)
	case b.Count == 0:
		start := b.Start
		*b = n
		b.Start = start
		f.sum.add(n.Sum)
	default:
		b.follow(n.First)
		b.Corr += n.Corr
		b.Resets += n.Resets
		b.spread(n.Min, n.Max)
		b.Count += n.Count
		b.Last, b.LastT, b.Ended = n.Last, n.LastT, n.Ended
		f.sum.add(n.Sum)
		b.Lacks |= n.Lacks
	}
}

// Buckets closes the open bucket and returns all since Reset, in time order. The
// slice belongs to the Folder and is valid until Reset.
func (f *Folder) Buckets() []Bucket {
	f.close()
	return f.out
}

// close appends the open bucket.
func (f *Folder) close() {
	if !f.filling {
		return
	}
	f.filling = false
	switch {
	case f.open.Hist != nil:
		f.closeHist()
	case f.open.Count > 0:
		f.open.Sum = f.sum.value()
		f.open.Drop(f.open.Lacks)
	}
	f.out = append(f.out, f.open)
}

// Settle drops the buckets without samples, in place: each marks the end of the
// bucket in the window just before it, and says nothing where there is none.
func Settle(bs []Bucket, res int64) []Bucket {
	out := bs[:0]
	for _, b := range bs {
		if b.Count > 0 {
			out = append(out, b)
			continue
		}
		if n := len(out); n > 0 && out[n-1].Start == b.Start-res {
			out[n-1].Ended = true
		}
	}
	return out
}
