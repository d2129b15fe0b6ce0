package fleet

import (
	"fmt"
	"strings"
	"time"
)

// Claim is who a request says it is from, and Verdict what becomes of it. Their fields
// are those of adapter/receive's, so that main can convert them.
type (
	Claim struct {
		Device     string
		RemoteAddr string
		Sender     string
		Received   time.Time
	}
	Verdict struct {
		Device     string
		Refuse     string
		RetryAfter time.Duration
		Rename     string
	}
)

// Clones says what becomes of the second of two senders that push as one device.
type Clones string

// The ways to treat clones.
const (
	// RefuseClones answers 503: what it has stays with it until it gets a name of its own.
	RefuseClones Clones = "refuse"
	// RenameClones stores it as another device, its instance followed by ~ and its id.
	RenameClones Clones = "rename"
)

// holder is the sender that is taken for a device.
type holder struct {
	id       string
	seen     time.Time // its last push
	patience time.Duration
	final    bool // it said that it was stopping
}

// rival is another sender that claims to be the device.
type rival struct {
	id, address string
	since, seen time.Time
	proven      bool // the holder pushed after it was seen first: they are two
	told        bool // it was logged
}

const (
	// rivalMemory is how long a clone that is silent is remembered.
	rivalMemory = 15 * time.Minute
	// rivalPatience is how long the holder must be silent until a proven clone is taken
	// for the device: a link that is down for a while must not give the name away.
	rivalPatience = 5 * time.Minute
	// maxRivals bounds the clones of a device that are remembered.
	maxRivals = 8
)

// Admit judges who may write as a device. Two runs of an exporter never write to the
// same series by turns: a new one waits until the one before has been silent for two
// of its pushes, or said that it stops. If both go on, they are clones: the one that
// came later is refused, or renamed. A sender without an id is not judged.
func (f *Fleet) Admit(c Claim) Verdict {
	s := parseSender(c.Sender)
	device := c.Device
	if s.instance != "" {
		device = s.instance
	}
	if s.id == "" || !validInstance(device) {
		return Verdict{Device: device}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.gates[device]
	if g == nil {
		if len(f.gates) >= f.cfg.MaxDevices {
			return Verdict{Device: device} // Pushed counts it
		}
		g = &gate{}
		f.gates[strings.Clone(device)] = g
	}
	return g.admit(&c, s, device, f)
}

// gate is who may write as one device; Fleet.mu guards it.
type gate struct {
	holder holder
	rivals []rival
}

func (g *gate) admit(c *Claim, s sender, device string, f *Fleet) Verdict {
	now := c.Received
	g.forget(now)
	r := g.rival(s.id)
	if g.holder.id == "" || g.holder.id == s.id || g.holder.silent(now, r) {
		g.take(s, now)
		return Verdict{Device: device}
	}
	if r == nil {
		r = g.meet(c, s, now)
	}
	r.seen = now
	if !r.proven {
		wait := g.holder.seen.Add(g.holder.patience).Sub(now)
		return Verdict{Device: device, RetryAfter: max(wait, time.Second),
			Refuse: fmt.Sprintf("another run of the exporter (%s) pushed as %q lately; this one (%s) is taken when that one is silent", g.holder.id, device, s.id)}
	}
	if !r.told {
		r.told = true
		f.cfg.Logger.Warn("two exporters push as one device", "instance", device, "goes_on", g.holder.id, "clone", s.id,
			"clone_address", r.address, "clone_is", strings.TrimSuffix(string(f.cfg.Clones), "e")+"ed")
	}
	if f.cfg.Clones == RenameClones {
		other := rename(device, s.id)
		return Verdict{Device: other, Rename: other}
	}
	return Verdict{Device: device, RetryAfter: rivalPatience / 10,
		Refuse: fmt.Sprintf("two exporters push as %q: %s, which goes on, and %s, which is refused until one has another instance label", device, g.holder.id, s.id)}
}

// silent tells that another sender may be taken for the device.
func (h *holder) silent(now time.Time, r *rival) bool {
	wait := h.patience
	if r != nil && r.proven {
		wait = max(wait, rivalPatience)
	}
	return h.final || now.Sub(h.seen) > wait
}

// take notes a push of the device's sender. Rivals that came since the last are two.
func (g *gate) take(s sender, now time.Time) {
	if g.holder.id != s.id {
		for i := range g.rivals {
			if g.rivals[i].id == s.id {
				g.rivals = append(g.rivals[:i], g.rivals[i+1:]...)
				break
			}
		}
	} else {
		for i := range g.rivals {
			g.rivals[i].proven = true
		}
	}
	g.holder = holder{id: strings.Clone(s.id), seen: now, patience: s.patience(), final: s.last}
}

func (g *gate) rival(id string) *rival {
	for i := range g.rivals {
		if g.rivals[i].id == id {
			return &g.rivals[i]
		}
	}
	return nil
}

func (g *gate) meet(c *Claim, s sender, now time.Time) *rival {
	if len(g.rivals) >= maxRivals {
		g.rivals = g.rivals[1:]
	}
	g.rivals = append(g.rivals, rival{id: strings.Clone(s.id), address: address(c.RemoteAddr), since: now, seen: now})
	return &g.rivals[len(g.rivals)-1]
}

// forget drops rivals that have been silent for long.
func (g *gate) forget(now time.Time) {
	kept := g.rivals[:0]
	for _, r := range g.rivals {
		if now.Sub(r.seen) <= rivalMemory {
			kept = append(kept, r)
		}
	}
	g.rivals = kept
}

// rename is the instance of a clone.
func rename(device, id string) string {
	suffix := "~" + id[:min(len(id), 8)]
	return clean(device, maxInstance-len(suffix)) + suffix
}
