package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

// TestThreeDaysKilled: the adapter is killed with SIGKILL at random moments during
// the push, started again, and what was not acknowledged is sent again.
func TestThreeDaysKilled(t *testing.T) {
	t.Parallel()
	start, end := threeDays()
	seed := testSeed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	series := madeUp(seed, start, end)
	dir := t.TempDir()
	const piece = 20 * minuteMs

	adapter := startAdapter(t, dir, tierFlags...)
	kills, due := 0, make(map[int64]bool)
	for _, i := range rng.Perm(int((end - start) / piece))[:8] {
		due[start+int64(i)*piece] = true
	}
	for from := start; from < end; {
		body := between(series, from, from+piece)
		acknowledged := false
		if due[from] {
			due[from] = rng.IntN(4) == 0 // it may hit the same push again
			acknowledged = pushAndKill(t, adapter, body, killDelay(rng))
			kills++
			if rng.IntN(3) == 0 {
				startAndKill(t, dir, time.Duration(rng.Int64N(int64(300*time.Millisecond))))
				kills++
			}
			adapter = startAdapter(t, dir, tierFlags...)
		} else {
			push(t, adapter.Client, client.V1, body)
			acknowledged = true
		}
		if acknowledged {
			from += piece
		}
	}
	t.Logf("%d kills", kills)
	waitFolded(t, adapter)
	for _, tier := range []string{"raw", "5m", "1h"} {
		checkTier(t, adapter, tier, series, start, end)
	}
}

// killDelay is mostly a moment during the push, and now and then one during the
// folds and the compactions that follow it.
func killDelay(rng *rand.Rand) time.Duration {
	if rng.IntN(3) == 0 {
		return time.Duration(rng.Int64N(int64(2 * time.Second)))
	}
	return time.Duration(rng.Int64N(int64(15 * time.Millisecond)))
}

// startAndKill starts an adapter and kills it after a delay, whether or not it has
// read back what it kept.
func startAndKill(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	p, err := program.Start(program.Config{
		Name: "adapter",
		Path: exe(t, "adapter"),
		Args: append([]string{"run", "--listen=127.0.0.1:0", "--data-dir=" + dir}, tierFlags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-p.Exited():
		t.Errorf("the adapter ended by itself: %v\n%s", p.ExitErr(), tail(p.Log(), 20))
	case <-timer.C:
		p.Kill()
	}
}

// pushAndKill pushes and kills the adapter after a delay, and says whether the push
// was acknowledged.
func pushAndKill(t *testing.T, adapter *app, body []client.Series, after time.Duration) bool {
	t.Helper()
	answered := make(chan bool)
	go func() {
		resp, err := adapter.Push(t.Context(), client.V1, body)
		answered <- err == nil && resp.Status/100 == 2
	}()
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case acknowledged := <-answered:
		<-timer.C
		adapter.kill()
		return acknowledged
	case <-timer.C:
		adapter.kill()
		return <-answered
	}
}
