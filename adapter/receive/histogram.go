package receive

import "github.com/prometheus/prometheus/model/histogram"

// rawHistogram is one decoded Histogram message. Its slices are new for each message,
// because the store keeps them.
type rawHistogram struct {
	t, st         int64
	isFloat       bool
	count         uint64
	countFloat    float64
	zeroIsFloat   bool
	zero          uint64
	zeroFloat     float64
	sum           float64
	schema        int32
	zeroThreshold float64
	hint          int32
	neg, pos      buckets
	custom        []float64
}

// buckets is one side of a histogram: deltas if it is an integer histogram, counts if
// it is a float histogram.
type buckets struct {
	spans  []histogram.Span
	deltas []int64
	counts []float64
}

var errBuckets = limitError{"a native histogram has more buckets than one may have"}

// decode reads a Histogram message. 1.0 has no start timestamp.
func (h *rawHistogram) decode(b []byte, p protocol) error {
	*h = rawHistogram{}
	for i := 0; i < len(b); {
		num, typ, next, err := tag(b, i)
		if err != nil {
			return err
		}
		switch {
		case num > 17 || num == 17 && p == proto1:
			i, err = skip(b, i)
		case typ == wireVarint:
			var v uint64
			if v, i, err = uvarint(b, next); err == nil {
				err = h.varint(num, v)
			}
		case typ == wireFixed64:
			var v float64
			if v, i, err = fixed64(b, next); err == nil {
				err = h.double(num, v)
			}
		case typ == wireBytes:
			var data []byte
			if data, i, err = chunk(b, next); err == nil {
				err = h.bytes(num, data)
			}
		default:
			err = errWireType
		}
		if err != nil {
			return err
		}
		if h.tooLarge() {
			return errBuckets
		}
	}
	return nil
}

func (h *rawHistogram) tooLarge() bool {
	return len(h.neg.spans) > maxBuckets || len(h.neg.deltas) > maxBuckets || len(h.neg.counts) > maxBuckets ||
		len(h.pos.spans) > maxBuckets || len(h.pos.deltas) > maxBuckets || len(h.pos.counts) > maxBuckets ||
		len(h.custom) > maxBuckets
}

func (h *rawHistogram) varint(num int32, v uint64) error {
	switch num {
	case 1:
		h.isFloat, h.count, h.countFloat = false, v, 0
	case 4:
		h.schema = zigzag32(v)
	case 6:
		h.zeroIsFloat, h.zero, h.zeroFloat = false, v, 0
	case 9:
		h.neg.deltas = append(h.neg.deltas, zigzag64(v))
	case 12:
		h.pos.deltas = append(h.pos.deltas, zigzag64(v))
	case 14:
		h.hint = int32(v)
	case 15:
		h.t = int64(v)
	case 17:
		h.st = int64(v)
	default:
		return errWireType
	}
	return nil
}

func (h *rawHistogram) double(num int32, v float64) error {
	switch num {
	case 2:
		h.isFloat, h.count, h.countFloat = true, 0, v
	case 3:
		h.sum = v
	case 5:
		h.zeroThreshold = v
	case 7:
		h.zeroIsFloat, h.zero, h.zeroFloat = true, 0, v
	case 10:
		h.neg.counts = append(h.neg.counts, v)
	case 13:
		h.pos.counts = append(h.pos.counts, v)
	case 16:
		h.custom = append(h.custom, v)
	default:
		return errWireType
	}
	return nil
}

func (h *rawHistogram) bytes(num int32, data []byte) (err error) {
	switch num {
	case 8:
		err = appendSpan(&h.neg.spans, data)
	case 11:
		err = appendSpan(&h.pos.spans, data)
	case 9:
		err = appendDeltas(&h.neg.deltas, data)
	case 12:
		err = appendDeltas(&h.pos.deltas, data)
	case 10:
		err = appendDoubles(&h.neg.counts, data)
	case 13:
		err = appendDoubles(&h.pos.counts, data)
	case 16:
		err = appendDoubles(&h.custom, data)
	default:
		err = errWireType
	}
	return err
}

func appendSpan(dst *[]histogram.Span, b []byte) error {
	var s histogram.Span
	for i := 0; i < len(b); {
		num, typ, next, err := tag(b, i)
		if err != nil {
			return err
		}
		if num > 2 {
			if i, err = skip(b, i); err != nil {
				return err
			}
			continue
		}
		if typ != wireVarint {
			return errWireType
		}
		v, next, err := uvarint(b, next)
		if err != nil {
			return err
		}
		if i = next; num == 1 {
			s.Offset = zigzag32(v)
		} else {
			s.Length = uint32(v)
		}
	}
	*dst = append(*dst, s)
	return nil
}

func appendDeltas(dst *[]int64, b []byte) error {
	n := 0 // an element ends with each byte below 0x80
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	if len(*dst)+n > maxBuckets {
		return errBuckets
	}
	if *dst == nil && n > 0 {
		*dst = make([]int64, 0, n)
	}
	for i := 0; i < len(b); {
		v, next, err := uvarint(b, i)
		if err != nil {
			return packed(err)
		}
		*dst = append(*dst, zigzag64(v))
		i = next
	}
	return nil
}

func appendDoubles(dst *[]float64, b []byte) error {
	if len(b)%8 != 0 {
		return errPacked
	}
	if len(*dst)+len(b)/8 > maxBuckets {
		return errBuckets
	}
	if *dst == nil && len(b) > 0 {
		*dst = make([]float64, 0, len(b)/8)
	}
	for i := 0; i < len(b); {
		v, next, err := fixed64(b, i)
		if err != nil {
			return err
		}
		*dst = append(*dst, v)
		i = next
	}
	return nil
}

// model returns the histogram as the store takes it: one of the two is nil. Schemas
// finer than the store's finest are reduced to it.
func (h *rawHistogram) model() (*histogram.Histogram, *histogram.FloatHistogram, error) {
	hint := histogram.CounterResetHint(histogram.UnknownCounterReset)
	if h.hint > 0 && h.hint <= int32(histogram.GaugeType) {
		hint = histogram.CounterResetHint(h.hint)
	}
	fine := histogram.IsExponentialSchemaReserved(h.schema) && h.schema > histogram.ExponentialSchemaMax
	if h.isFloat {
		fh := &histogram.FloatHistogram{
			CounterResetHint: hint, Schema: h.schema, ZeroThreshold: h.zeroThreshold,
			ZeroCount: h.zeroFloat, Count: h.countFloat, Sum: h.sum,
			PositiveSpans: h.pos.spans, PositiveBuckets: h.pos.counts,
			NegativeSpans: h.neg.spans, NegativeBuckets: h.neg.counts, CustomValues: h.custom,
		}
		if fine {
			if err := fh.ReduceResolution(histogram.ExponentialSchemaMax); err != nil {
				return nil, nil, err
			}
		}
		return nil, fh, fh.Validate()
	}
	ih := &histogram.Histogram{
		CounterResetHint: hint, Schema: h.schema, ZeroThreshold: h.zeroThreshold,
		ZeroCount: h.zero, Count: h.count, Sum: h.sum,
		PositiveSpans: h.pos.spans, PositiveBuckets: h.pos.deltas,
		NegativeSpans: h.neg.spans, NegativeBuckets: h.neg.deltas, CustomValues: h.custom,
	}
	if fine {
		if err := ih.ReduceResolution(histogram.ExponentialSchemaMax); err != nil {
			return nil, nil, err
		}
	}
	return ih, nil, ih.Validate()
}

// size is how many numbers the histogram's lists hold.
func (h *rawHistogram) size() int {
	return len(h.neg.spans) + len(h.neg.deltas) + len(h.neg.counts) +
		len(h.pos.spans) + len(h.pos.deltas) + len(h.pos.counts) + len(h.custom)
}
