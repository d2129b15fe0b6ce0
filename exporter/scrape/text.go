package scrape

import (
	"bytes"
	"io"

	"github.com/ticktier/ticktier/collectors"
	"github.com/ticktier/ticktier/collectors/promtext"
)

// text reads an answer in one of the text forms.
func (r *reading) text(p *promtext.Parser, body []byte, f promtext.Format) error {
	p.Reset(body, f)
	for {
		e, err := p.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if e != promtext.Sample {
			r.about(p, e)
			continue
		}
		if p.Exemplar {
			r.exemplars++
		}
		if err := r.textSample(p, f); err != nil {
			return err
		}
	}
}

// about takes what a line says of a family.
func (r *reading) about(p *promtext.Parser, e promtext.Entry) {
	if !bytes.Equal(r.fam.name, p.Name) {
		r.fam = family{name: p.Name, typ: r.fam.typ, from: len(r.points)}
	}
	switch e {
	case promtext.TypeLine:
		r.fam.typ = collectors.Type(p.Type) // they are numbered alike
	case promtext.HelpLine:
		r.fam.help = p.Text
	case promtext.UnitLine:
		r.fam.unit = p.Text
	}
}

// startable are the types whose series may tell when they started.
func startable(t collectors.Type) bool {
	return t == collectors.Counter || t == collectors.Histogram || t == collectors.Summary
}

func (r *reading) textSample(p *promtext.Parser, f promtext.Format) error {
	isTimed := p.Timed && !r.ignore
	e := r.known(p.Series, r.fam.typ)
	if e != nil && !e.created && (e.s.shape&timed != 0) != isTimed {
		e = nil
	}
	if e == nil {
		var err error
		if e, err = r.addText(p, f); err != nil {
			return err
		}
	}
	if e.created {
		e.seen = r.round
		r.begun(e.base, p.Value)
		return nil
	}
	return r.take(e, point{value: p.Value, time: p.Time, timed: isTimed})
}

// addText makes the series of a sample known.
func (r *reading) addText(p *promtext.Parser, f promtext.Format) (*entry, error) {
	name, labels, err := p.Labels(nil)
	if err != nil {
		return nil, err
	}
	r.scratch = r.scratch[:0]
	for _, l := range labels {
		r.scratch = append(r.scratch, collectors.Label(l))
	}
	typ := r.fam.typ
	if f == promtext.OpenMetrics && startable(typ) && bytes.HasSuffix([]byte(name), []byte("_created")) {
		e := &entry{typ: typ, created: true, base: r.t.hash.baseOf(typ, r.scratch)}
		r.entries[string(p.Series)] = e
		return e, nil
	}
	var sh shape
	if f == promtext.OpenMetrics && startable(typ) {
		sh |= started
	}
	if p.Timed && !r.ignore {
		sh |= timed
	}
	help, unit := "", ""
	if promtext.Of(name, string(r.fam.name), p.Type) {
		if r.fam.help != nil {
			text := p.Text
			p.Text = r.fam.help
			help = p.Help()
			p.Text = text
		}
		unit = string(r.fam.unit)
	} else {
		// A family that nothing is said of.
		r.fam.typ = collectors.Untyped
		defer func() { r.fam.typ = typ }()
	}
	e, err := r.add(p.Series, name, help, unit, r.scratch, sh)
	if err == nil {
		e.typ = typ
	}
	return e, err
}
