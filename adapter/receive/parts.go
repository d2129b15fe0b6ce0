package receive

// family is one 1.0 MetricMetadata message.
type family struct {
	typ              int32
	name, help, unit []byte
}

func (f *family) decode(b []byte) error {
	*f = family{}
	for i := 0; i < len(b); {
		num, typ, next, err := tag(b, i)
		if err != nil {
			return err
		}
		if num == 3 || num > 5 {
			if i, err = skip(b, i); err != nil {
				return err
			}
			continue
		}
		if num == 1 {
			if typ != wireVarint {
				return errWireType
			}
			var v uint64
			if v, i, err = uvarint(b, next); err != nil {
				return err
			}
			f.typ = int32(v)
			continue
		}
		if typ != wireBytes {
			return errWireType
		}
		var data []byte
		if data, i, err = chunk(b, next); err != nil {
			return err
		}
		switch num {
		case 2:
			f.name = data
		case 4:
			f.help = data
		case 5:
			f.unit = data
		}
	}
	return nil
}

// rawExemplar is one decoded Exemplar message; the labels are as in series.
type rawExemplar struct {
	refs  []uint32
	pairs []pair
	v     float64
	t     int64
}

func (e *rawExemplar) decode(b []byte, p protocol) error {
	*e = rawExemplar{refs: e.refs[:0], pairs: e.pairs[:0]}
	for i := 0; i < len(b); {
		num, typ, next, err := tag(b, i)
		if err != nil {
			return err
		}
		var v uint64
		switch {
		case num > 3:
			i, err = skip(b, i)
		case num == 1 && typ == wireBytes:
			var data []byte
			if data, i, err = chunk(b, next); err == nil {
				err = e.labels(data, p)
			}
		case num == 1 && typ == wireVarint && p == proto2:
			v, i, err = uvarint(b, next)
			e.refs = append(e.refs, uint32(v))
		case num == 2 && typ == wireFixed64:
			e.v, i, err = fixed64(b, next)
		case num == 3 && typ == wireVarint:
			v, i, err = uvarint(b, next)
			e.t = int64(v)
		default:
			err = errWireType
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *rawExemplar) labels(data []byte, p protocol) (err error) {
	if p == proto2 {
		e.refs, err = appendRefs(e.refs, data)
		return err
	}
	l, err := decodeLabel(data)
	if err == nil && len(e.pairs) <= maxLabels {
		e.pairs = append(e.pairs, l)
	}
	return err
}
