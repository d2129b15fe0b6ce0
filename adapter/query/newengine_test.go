package query

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// Another engine answers while the API's only place is taken.
func TestNewEngine(t *testing.T) {
	entered := make(chan struct{}, 10)
	h := history{}
	steady(h, base, base+hour, minute, 1, "a")
	raw := newRawStore(t, h)
	a, err := New(Config{Raw: blockedRaw{raw, entered}, MaxConcurrency: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	blocked := make(chan error, 1)
	go func() {
		q, err := a.Engine().NewInstantQuery(ctx, a.Queryable(), nil, "x", time.UnixMilli(base+hour))
		if err == nil {
			err = q.Exec(ctx).Err
			q.Close()
		}
		blocked <- err
	}()
	<-entered
	within, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	q, err := a.NewEngine(1).NewInstantQuery(within, a.Queryable(), nil, "1 + 1", time.UnixMilli(base+hour))
	if err != nil {
		t.Fatal(err)
	}
	if res := q.Exec(within); res.Err != nil {
		t.Errorf("the other engine: %v", res.Err)
	}
	q.Close()
	cancel()
	if err := <-blocked; err == nil {
		t.Error("the blocked query succeeds")
	}
}
