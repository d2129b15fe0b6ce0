package burst

import "github.com/ticktier/ticktier/collectors"

// followedMetrics are the metrics of which each series becomes one value a tick.
var followedMetrics = map[string]struct {
	family int
	how    how
	label  string
}{
	"node_network_receive_bytes_total":     {receiveBytes, rate, "device"},
	"node_network_transmit_bytes_total":    {transmitBytes, rate, "device"},
	"node_network_receive_packets_total":   {receivePackets, rate, "device"},
	"node_network_transmit_packets_total":  {transmitPackets, rate, "device"},
	"node_schedstat_running_seconds_total": {tasks, rate, "cpu"},
	"node_softnet_processed_total":         {processed, delta, "cpu"},
	"node_softnet_backlog_len":             {backlog, level, "cpu"},
}

// learn looks at the series that are new, up to n.
func (r *Recorder) learn(n int) {
	all := r.schema.Series()
	for ; r.known < min(n, len(all)); r.known++ {
		s, slot := &all[r.known], int32(r.known)
		if s.Name == "node_cpu_seconds_total" {
			r.learnCPU(s, slot)
		} else if f, ok := followedMetrics[s.Name]; ok {
			r.learnGauge(s, slot, gauge{family: f.family, how: f.how, label: labelOf(s, f.label)})
		}
	}
}

func labelOf(s *collectors.Series, name string) collectors.Label {
	for _, l := range s.Labels {
		if l.Name == name {
			return l
		}
	}
	return collectors.Label{}
}

// learnGauge follows a series, or follows it on in a new slot: it came back.
func (r *Recorder) learnGauge(s *collectors.Series, slot int32, g gauge) {
	id := ident{g.family, g.label.Value}
	if i, ok := r.byKey[id]; ok {
		r.gauges[i].slot, r.gauges[i].seen = slot, false
		return
	}
	g.metric, g.source, g.slot, g.h = s.Metric, s.Source, slot, r.histogram(g.family)
	if r.followed < maxSeries {
		r.followed++
		r.byKey[id] = len(r.gauges)
		r.gauges = append(r.gauges, g)
		return
	}
	i := r.vacant()
	if i < 0 {
		r.left[id] = true
		return
	}
	delete(r.left, id)
	delete(r.byKey, ident{r.gauges[i].family, r.gauges[i].label.Value})
	r.byKey[id] = i
	r.gauges[i] = g
}

// vacant is the place of a gauge whose row was gone in the tick before; −1 is none.
func (r *Recorder) vacant() int {
	for i := range r.gauges {
		slot := r.gauges[i].slot
		if int(slot>>6) < len(r.present) && !r.has(slot) {
			return i
		}
	}
	return -1
}

func (r *Recorder) learnCPU(s *collectors.Series, slot int32) {
	label, name := labelOf(s, "cpu"), labelOf(s, "mode").Value
	id := ident{busy, label.Value}
	i, ok := r.byKey[id]
	if !ok {
		if r.followed+2 > maxSeries {
			r.left[id] = true
			return
		}
		r.followed += 2
		i = len(r.cpus)
		r.byKey[id] = i
		r.cpus = append(r.cpus, cpu{label: label, source: s.Source, busy: r.histogram(busy), soft: r.histogram(softirq)})
	}
	m := mode{slot: slot, idle: name == "idle" || name == "iowait", soft: name == "softirq"}
	modeID := ident{-1 - i, name}
	if j, ok := r.byKey[modeID]; ok {
		r.cpus[i].modes[j] = m
		return
	}
	r.byKey[modeID] = len(r.cpus[i].modes)
	r.cpus[i].modes = append(r.cpus[i].modes, m)
}
