package main

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ticktier/ticktier/adapter/query"
)

// metadata is what senders told of metrics and, where the adapter stores its own, what
// it knows of those, in the query API's shape.
func (a *adapter) metadata(own bool, reg prometheus.Gatherer) func(string) map[string][]query.Metadata {
	return func(metric string) map[string][]query.Metadata {
		out := map[string][]query.Metadata{}
		if own {
			families, _ := reg.Gather() // what could be gathered is known
			for _, f := range families {
				if metric == "" || metric == f.GetName() {
					out[f.GetName()] = []query.Metadata{{Type: strings.ToLower(f.GetType().String()), Help: f.GetHelp(), Unit: f.GetUnit()}}
				}
			}
		}
		for name, m := range a.receive.Metadata() {
			if metric == "" || metric == name {
				out[name] = []query.Metadata{{Type: string(m.Type), Help: m.Help, Unit: m.Unit}}
			}
		}
		return out
	}
}
