package receive

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// budget is the memory that the bodies of all requests may take together: one share
// for what is being read, one for what is being decoded. Reading never waits, so a
// slow sender cannot make others wait while it holds what they need; decoding waits,
// because who decodes will be done soon. Safe for concurrent use.
type budget struct {
	reading  *semaphore.Weighted
	decoding *semaphore.Weighted
	patience time.Duration
}

func newBudget(reading, decoding int64, patience time.Duration) *budget {
	return &budget{
		reading:  semaphore.NewWeighted(reading),
		decoding: semaphore.NewWeighted(decoding),
		patience: patience,
	}
}

// decode waits for n bytes and returns false where they did not come free in time.
func (b *budget) decode(ctx context.Context, n int64) bool {
	if b.decoding.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	return b.decoding.Acquire(ctx, n) == nil
}
