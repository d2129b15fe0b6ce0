package follow

// Series is one series of a session.
type Series struct {
	ID     int
	Name   string
	Labels map[string]string
}

// Tick is one tick: its slot's number, its time in Unix ms and the values by series.
type Tick struct {
	Seq    uint64
	Time   int64
	Values map[int]float64
}

// Gap stands for ticks that are not there; times are Unix ms.
type Gap struct {
	Reason   string
	Ticks    uint64
	From, To int64
}

// Hello begins a session.
type Hello struct{ Session string }

// Object is one object of the API; one of its fields is set, or none of them for
// what this package does not know.
type Object struct {
	Hello  *Hello
	Series []Series
	Tick   *Tick
	Gap    *Gap
}

// parse reads an object. What it does not know it passes over.
func parse(line []byte) (*Object, error) {
	p := &parser{b: line}
	o := new(Object)
	err := p.object(func(key string) error {
		switch key {
		case "hello":
			o.Hello = new(Hello)
			return p.fields(map[string]any{"session": &o.Hello.Session})
		case "series":
			return p.list('[', ']', func() error {
				s := Series{Labels: map[string]string{}}
				err := p.fields(map[string]any{"id": &s.ID, "name": &s.Name, "labels": s.Labels})
				o.Series = append(o.Series, s)
				return err
			})
		case "tick":
			o.Tick = &Tick{Values: map[int]float64{}}
			return p.fields(map[string]any{"seq": &o.Tick.Seq, "t": &o.Tick.Time, "v": o.Tick.Values})
		case "gap":
			g := new(Gap)
			o.Gap = g
			return p.fields(map[string]any{"reason": &g.Reason, "ticks": &g.Ticks, "fromTime": &g.From, "toTime": &g.To})
		}
		return p.skip(0)
	})
	if err == nil && p.peek() != 0 {
		err = p.bad("the end")
	}
	return o, err
}

// fields reads an object into places, by key.
func (p *parser) fields(places map[string]any) error {
	return p.object(func(key string) (err error) {
		var n int64
		switch to := places[key].(type) {
		case *string:
			*to, err = p.text()
		case *int:
			n, err = p.integer()
			*to = int(n)
		case *int64:
			*to, err = p.integer()
		case *uint64:
			n, err = p.integer()
			*to = uint64(n)
		case map[string]string:
			err = p.object(func(name string) (err error) {
				to[name], err = p.text()
				return err
			})
		case map[int]float64:
			err = p.object(func(id string) error { return p.value(to, id) })
		default:
			err = p.skip(0)
		}
		return err
	})
}

// value reads the value of a series.
func (p *parser) value(to map[int]float64, id string) error {
	key := parser{b: []byte(id)}
	n, err := key.integer()
	if err != nil {
		return err
	}
	to[int(n)], err = p.number()
	return err
}
