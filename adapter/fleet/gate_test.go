package fleet

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseSender(t *testing.T) {
	for header, want := range map[string]sender{
		`s1; time=1760000000600; interval=5000; lost=7; last=1; instance="r\"1; x=\u00e9"`: {id: "s1", instance: `r"1; x=é`, time: 1760000000600, interval: 5 * time.Second, lost: 7, last: true},
		`s1`:                            {id: "s1"},
		``:                              {},
		`; time=5`:                      {},
		`s 1; time=5`:                   {},
		strings.Repeat("x", 25):         {},
		`s1; time=-5; interval=x; lost`: {id: "s1"},
		`s1; instance="`:                {id: "s1"},
		`s1; instance=""`:               {id: "s1"},
		`s1; instance="\xff"`:           {id: "s1"},
		`s1; interval=9223372036854775807; later=1`:        {id: "s1", interval: maxInterval},
		`s1; instance="` + strings.Repeat("a", 300) + `"`:  {id: "s1"},
		`s1; instance="` + strings.Repeat("a", 9000) + `"`: {},
	} {
		if diff := cmp.Diff(want, parseSender(header), cmp.AllowUnexported(sender{})); diff != "" {
			t.Errorf("%.60s (-want +got):\n%s", header, diff)
		}
	}
}

func FuzzParseSender(f *testing.F) {
	f.Add(`s1; time=1; interval=2; lost=3; last=1; instance="r1"`)
	f.Fuzz(func(t *testing.T, header string) {
		s := parseSender(header)
		if len(s.id) > maxSenderID || len(s.instance) > maxInstance || s.interval < 0 || s.interval > maxInterval || s.time < 0 {
			t.Errorf("%q gives %+v", header, s)
		}
	})
}

// ask is a push of a run of an exporter every five seconds; it returns what became
// of it: "ok", "wait", "clone", or the name it is stored under.
func ask(f *Fleet, c *clock, id string, more ...string) string {
	v := f.Admit(Claim{Device: "r1", RemoteAddr: "192.0.2.1:1", Received: c.now(),
		Sender: fmt.Sprintf("%s; interval=5000%s; instance=\"r1\"", id, strings.Join(more, ""))})
	switch {
	case v.Refuse == "" && v.Rename == "":
		return "ok"
	case v.Refuse == "":
		return v.Rename
	case v.RetryAfter <= 0 || !strings.Contains(v.Refuse, id):
		return "unclear: " + v.Refuse
	case strings.Contains(v.Refuse, "two exporters"):
		return "clone"
	}
	return "wait"
}

func TestRestartedSenderWaits(t *testing.T) {
	f, c := testFleet(t)
	expect := func(want, id string, more ...string) {
		t.Helper()
		if got := ask(f, c, id, more...); got != want {
			t.Errorf("after %s, %s: %s, want %s", c.now().Sub(testStart), id, got, want)
		}
	}
	expect("ok", "a")
	c.add(5 * time.Second)
	expect("ok", "a")
	c.add(2 * time.Second)
	expect("wait", "b") // a was killed, or b is a clone
	c.add(10 * time.Second)
	expect("ok", "b")
	c.add(5 * time.Second)
	expect("ok", "b", "; last=1") // b stops
	c.add(time.Millisecond)
	expect("ok", "c")
	c.add(time.Hour)
	expect("ok", "d")
	if n := len(f.clones("r1")); n != 0 {
		t.Errorf("%d clones after restarts", n)
	}
}

func TestClonesAreRefused(t *testing.T) {
	var log strings.Builder
	f, c := testFleet(t, func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	f.Pushed(from("r1", c, 0))
	var got []string
	for range 5 {
		got = append(got, ask(f, c, "a"))
		c.add(2500 * time.Millisecond)
		got = append(got, ask(f, c, "b"))
		c.add(2500 * time.Millisecond)
	}
	want := []string{"ok", "wait", "ok", "clone", "ok", "clone", "ok", "clone", "ok", "clone"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "instance=r1 goes_on=a clone=b clone_address=192.0.2.1 clone_is=refused") {
		t.Errorf("a clone is logged %d times:\n%s", n, &log)
	}
	shown := f.listed(f.Devices()[0], c.now())
	if len(shown.Clones) != 1 || shown.Clones[0].Sender != "b" || shown.Clones[0].Address != "192.0.2.1" {
		t.Errorf("clones shown: %+v", shown.Clones)
	}
	// A short silence of the first does not give its name to the clone, a long one does.
	c.add(time.Minute)
	if got := ask(f, c, "b"); got != "clone" {
		t.Errorf("the clone after a minute of silence: %s", got)
	}
	c.add(5 * time.Minute)
	if got := ask(f, c, "b"); got != "ok" {
		t.Errorf("the clone after six minutes of silence: %s", got)
	}
	// The clone that is gone is forgotten.
	c.add(16 * time.Minute)
	if got := ask(f, c, "b"); got != "ok" || len(f.clones("r1")) != 0 {
		t.Errorf("later: %s, %d clones", got, len(f.clones("r1")))
	}
}

func TestClonesAreRenamed(t *testing.T) {
	f, c := testFleet(t, func(cfg *Config) { cfg.Clones = RenameClones })
	var got []string
	for range 2 {
		got = append(got, ask(f, c, "a"), ask(f, c, "0123456789abcdef"))
		c.add(5 * time.Second)
	}
	if diff := cmp.Diff([]string{"ok", "wait", "ok", "r1~01234567"}, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if long := rename(strings.Repeat("é", 128), "0123456789"); len(long) > maxInstance || !validInstance(long) {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

func TestSendersWithoutIDAreNotJudged(t *testing.T) {
	f, c := testFleet(t)
	ask(f, c, "a")
	if v := f.Admit(Claim{Device: "r1", Received: c.now()}); v.Refuse != "" || v.Device != "r1" {
		t.Errorf("%+v", v)
	}
}

func TestHolderSurvivesRestart(t *testing.T) {
	f, c := testFleet(t)
	p := from("r1", c, 0)
	p.Sender = `a; interval=5000`
	f.Pushed(p)
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	g, err := New(f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.add(time.Second)
	if got := ask(g, c, "b"); got != "wait" {
		t.Errorf("another sender after the adapter's restart: %s", got)
	}
}

func TestSenderStates(t *testing.T) {
	f, c := testFleet(t)
	push := func(header string) {
		p := from("r1", c, 0)
		p.Sender = header
		f.Pushed(p)
		c.add(5 * time.Second)
	}
	push(fmt.Sprintf("a; time=%d; interval=5000; lost=0", c.now().UnixMilli()-1500))
	push("a; interval=5000; lost=10")
	push("a; interval=5000; lost=10")
	push("b; interval=1000; lost=4") // a new run counts from 0
	push("")                         // another client says nothing
	d := f.Devices()[0]
	if d.LostTicks != 14 || d.Sender != "b" || d.Restarts != 1 || d.IntervalSeconds != 1 || !d.ClockKnown || d.ClockSkewSeconds != -1.5 {
		t.Errorf("%+v", d)
	}
}

func TestLag(t *testing.T) {
	f, c := testFleet(t)
	if f.Lag() != 0 {
		t.Errorf("without devices: %s", f.Lag())
	}
	f.Pushed(from("gone", c, time.Hour))
	c.add(2 * time.Minute)
	for i := range 20 {
		p := from(fmt.Sprint("r", i), c, time.Duration(i)*time.Second)
		p.Sender = "a; interval=5000"
		f.Pushed(p)
	}
	if got := f.Lag(); got != 22*time.Second {
		t.Errorf("lag %s, want 17 s and an interval", got)
	}
	if f.Down() != (Span{}) {
		t.Errorf("down %v", f.Down())
	}
}

// One late device of a few decides nothing, and old samples that come after newer ones
// make no lag.
func TestLagOfFew(t *testing.T) {
	f, c := testFleet(t)
	f.Pushed(from("late", c, time.Hour))
	f.Pushed(from("r1", c, 2*time.Second))
	if got := f.Lag(); got != 2*time.Second {
		t.Errorf("lag of two %s", got)
	}
	for i := 2; i < 9; i++ {
		f.Pushed(from(fmt.Sprint("r", i), c, 3*time.Second))
	}
	if got := f.Lag(); got != 3*time.Second {
		t.Errorf("lag of nine %s", got)
	}
	c.add(time.Second)
	f.Pushed(from("r1", c, time.Hour))
	for _, d := range f.Devices() {
		if d.Instance == "r1" && d.LagSeconds != 3 {
			t.Errorf("after an old sample the lag is %v", d.LagSeconds)
		}
	}
}

func TestAvailability(t *testing.T) {
	f, c := testFleet(t)
	push := func() { f.Pushed(from("r1", c, 0)) }
	for range 12 * 60 { // half a day up
		push()
		c.add(time.Minute)
	}
	c.add(6 * time.Hour)
	push() // back after six hours and a minute
	for range 6 * 60 {
		c.add(time.Minute)
		push()
	}
	d, ok := f.Device("r1")
	if !ok || len(d.Outages) != 1 || d.OutagesTotal != 1 || d.Outages[0].To.Sub(d.Outages[0].From) != 6*time.Hour+time.Minute {
		t.Fatalf("outages %+v", d.Outages)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.001 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	a := f.listed(d, c.now()).Availability
	near("the day", a.Day, 0.75)
	near("the quarter, as far as it is known", a.Quarter, 0.75)

	// The present silence counts from the last push; a short one does not.
	c.add(time.Minute)
	near("after a minute", f.listed(d, c.now()).Availability.Day, 0.75)
	c.add(6*time.Hour - time.Minute)
	near("the day, at the end of which it is silent", f.listed(d, c.now()).Availability.Day, 0.5)

	// What the adapter missed itself counts neither way.
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	c.add(12 * time.Hour)
	g, err := New(f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	near("the quarter after half a day without the adapter", g.listed(d, c.now()).Availability.Quarter, 0.6)
	g.Pushed(from("r1", c, 0))
	d, _ = g.Device("r1")
	near("the same when it is back", g.listed(d, c.now()).Availability.Quarter, 0.6)
	c.add(30 * time.Second)
	h, err := New(g.cfg) // the adapter is away for half a day, the device is not
	if err != nil {
		t.Fatal(err)
	}
	if len(h.absences) != 1 {
		t.Errorf("absences %+v", h.absences)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	f, c := testFleet(t)
	for range 2 * maxOutages {
		f.Pushed(from("r1", c, 0))
		c.add(2 * time.Minute)
	}
	d, _ := f.Device("r1")
	if len(d.Outages) != maxOutages || d.OutagesTotal != 2*maxOutages-1 || d.Since.Equal(d.FirstPush) {
		t.Errorf("%d outages of %d, since %s", len(d.Outages), d.OutagesTotal, d.Since)
	}
}

func TestRetire(t *testing.T) {
	f, c := testFleet(t)
	f.Pushed(from("site/r 1", c, 0))
	do := func(method, path string) (int, answer) {
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
		var a answer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Errorf("%s %s: %s", method, path, w.Body)
		}
		return w.Code, a
	}
	if code, a := do(http.MethodGet, "/api/v1/devices/site%2Fr%201"); code != 200 || a.Data.(map[string]any)["instance"] != "site/r 1" {
		t.Errorf("status %d, %+v", code, a)
	}
	c.add(time.Hour)
	if !f.Silent("site/r 1") || f.Silent("unknown") {
		t.Error("a device that is silent is not said to be, or one that is unknown is")
	}
	if code, a := do(http.MethodDelete, "/api/v1/devices/site%2Fr%201"); code != 200 || a.Status != "success" {
		t.Errorf("status %d, %+v", code, a)
	}
	if code, a := do(http.MethodDelete, "/api/v1/devices/site%2Fr%201"); code != 404 || !strings.Contains(a.Error, "site/r 1") {
		t.Errorf("retired twice: status %d, %+v", code, a)
	}
	if f.Silent("site/r 1") || len(f.Names()) != 0 {
		t.Error("a retired device is known")
	}
	f.Pushed(from("site/r 1", c, 0))
	if d := f.Devices()[0]; !d.FirstPush.Equal(c.now()) {
		t.Errorf("a retired device that comes back is known since %s", d.FirstPush)
	}
}

func TestList(t *testing.T) {
	f, c := testFleet(t)
	for i := range 5 {
		f.Pushed(from(fmt.Sprint("r", i), c, 0))
		c.add(30 * time.Second)
	}
	for query, want := range map[string]string{
		"":                        "5 r0,r1,r2,r3,r4 ",
		"limit=2":                 "5 r0,r1 r1",
		"limit=2&after=r1":        "5 r2,r3 r3",
		"limit=2&after=r3":        "5 r4 ",
		"state=up":                "2 r3,r4 ",
		"state=silent&limit=1":    "3 r0 r0",
		"state=cloned":            "0  ",
		"search=R3":               "1 r3 ",
		"search=192.0.2&state=up": "2 r3,r4 ",
		"limit=-1":                "limit",
		"limit=x":                 "limit",
		"state=gone":              "state",
	} {
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/devices?"+query, nil))
		var l list
		a := answer{Data: &l}
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if w.Code != 200 {
			if w.Code != 400 || !strings.HasPrefix(a.Error, want) {
				t.Errorf("%s: status %d, %s", query, w.Code, a.Error)
			}
			continue
		}
		names := []string{}
		for _, d := range l.Devices {
			names = append(names, d.Instance)
		}
		if got := fmt.Sprint(l.Total, " ", strings.Join(names, ","), " ", l.Next); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
