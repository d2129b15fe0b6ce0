package collectors

import "slices"

// maxInfos bounds the label sets that one info metric may go through.
const maxInfos = 64

// infoSet is a series whose value is 1 and whose meaning is in its labels: when they
// change, the old series ends and another begins, and a set that comes back is the
// same series again.
type infoSet struct {
	known  []infoLabels
	active int // index in known + 1; 0 is none
}

type infoLabels struct {
	labels []Label
	slot   int
}

// set makes the series with these labels the present one.
func (s *infoSet) set(out *Out, m *Metric, labels []Label) {
	s.clear(out)
	for i, k := range s.known {
		if slices.Equal(k.labels, labels) {
			s.active = i + 1
			out.Set(k.slot, 1)
			return
		}
	}
	if len(s.known) == maxInfos {
		out.Stats.Overflow.Add(1)
		return
	}
	slot := out.Add(m, slices.Clone(labels)...)
	s.known = append(s.known, infoLabels{labels: labels, slot: slot})
	s.active = len(s.known)
	out.Set(slot, 1)
}

// keep marks the present series present again, after the source failed.
func (s *infoSet) keep(out *Out) {
	if s.active > 0 {
		out.Set(s.known[s.active-1].slot, 1)
	}
}

func (s *infoSet) clear(out *Out) {
	if s.active > 0 {
		out.Clear(s.known[s.active-1].slot)
	}
	s.active = 0
}
