package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ticktier/ticktier/e2e/client"
)

// pushFor pushes for the duration and returns how many samples were acknowledged.
// Each sender has series of its own, as one router has, and sends ticks of 100 ms
// one after the other, faster than they would come about.
func pushFor(ctx context.Context, c *client.Client, o options, v client.Version) (int64, error) {
	until := time.Now().Add(o.duration)
	var sent atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for id := range o.senders {
		g.Go(func() error {
			s := newSender(o, id)
			for time.Now().Before(until) {
				resp, err := c.Push(ctx, v, s.next())
				if err != nil {
					return err
				}
				if resp.Status/100 != 2 {
					return fmt.Errorf("push: status %d: %.200s", resp.Status, resp.Body)
				}
				sent.Add(int64(o.series * o.samples))
			}
			return nil
		})
	}
	err := g.Wait()
	return sent.Load(), err
}

type sender struct {
	series []client.Series
	tick   int64
	at     int64
}

// newSender begins long enough ago that it does not come to write the future.
func newSender(o options, id int) *sender {
	s := &sender{at: time.Now().Add(-12 * time.Hour).UnixMilli()}
	for i := range o.series {
		s.series = append(s.series, client.Series{
			Labels: map[string]string{
				"__name__": "load_work_total", "job": "load",
				"instance": fmt.Sprint("router-", id), "row": fmt.Sprint(i),
			},
			Samples: make([]client.Sample, o.samples),
		})
	}
	return s
}

// next fills in the next samples. The slice is good until the next call.
func (s *sender) next() []client.Series {
	n := len(s.series[0].Samples)
	for i := range s.series {
		for k := range n {
			tick := s.tick + int64(k)
			s.series[i].Samples[k] = client.Sample{T: s.at + tick*100, V: float64(tick * int64(i%7))}
		}
	}
	s.tick += int64(n)
	return s.series
}
