package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/browser"
)

// chromium returns the browser's path. There is no silent way around it: without a
// browser the test fails, unless the environment asks for it to be left out.
func chromium(t *testing.T) string {
	t.Helper()
	if os.Getenv("TICKTIER_E2E_BROWSER") == "off" {
		t.Skip("TICKTIER_E2E_BROWSER=off")
	}
	if path := os.Getenv("TICKTIER_E2E_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no browser: `make chromium` installs Debian's package chromium; TICKTIER_E2E_CHROMIUM names another one; TICKTIER_E2E_BROWSER=off leaves the test out")
	return ""
}

// pageWithin is how long a state of the page may take to come, on a machine that is
// busy with other tests.
const pageWithin = 2 * time.Minute

// tab is an open page of a browser of its own. Every step fails the test if what it
// waits for never comes; at the end nothing may be in the console, and nothing may
// have been asked of another server.
type tab struct {
	*testing.T
	*browser.Page
	// mayFail is set once the adapter was away: the browser says so in the console.
	mayFail bool
}

var (
	desktop = browser.Size{Width: 1440, Height: 900}
	phone   = browser.Size{Width: 390, Height: 844, Phone: true}
)

// openTab opens the page of an adapter at a view.
func openTab(t *testing.T, adapter *app, hash string, size browser.Size) *tab {
	t.Helper()
	b, err := browser.Start(chromium(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	ctx, cancel := context.WithTimeout(t.Context(), pageWithin)
	defer cancel()
	p, err := b.Open(ctx, adapter.URL("/")+hash, size)
	if err != nil {
		t.Fatal(err)
	}
	tab := &tab{T: t, Page: p}
	t.Cleanup(func() {
		for _, line := range p.Console() {
			if !tab.mayFail || !strings.Contains(line, "Failed to load resource") {
				t.Errorf("the console says: %s", line)
			}
		}
		if other := p.Elsewhere(adapter.URL("/")); len(other) > 0 {
			t.Errorf("asked of other servers: %v", other)
		}
	})
	return tab
}

// do is one step, with its own time.
func (p *tab) do(what string, f func(context.Context) error) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), pageWithin)
	defer cancel()
	if err := f(ctx); err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// until waits for an expression to be true.
func (p *tab) until(script string) {
	p.Helper()
	p.do("wait", func(ctx context.Context) error { return p.Wait(ctx, script) })
}

// run runs a script.
func (p *tab) run(script string) {
	p.Helper()
	p.do("run", func(ctx context.Context) error { return p.Eval(ctx, script, nil) })
}

// ask is the text that an expression evaluates to.
func (p *tab) ask(script string) (s string) {
	p.Helper()
	p.do("ask", func(ctx context.Context) error { return p.Eval(ctx, "String("+script+")", &s) })
	return s
}

// keys presses keys, one after the other.
func (p *tab) keys(keys ...string) {
	p.Helper()
	for _, k := range keys {
		p.do("press "+k, func(ctx context.Context) error { return p.Key(ctx, k) })
	}
}

// goTo goes to a view.
func (p *tab) goTo(hash string) {
	p.Helper()
	p.do("go to "+hash, func(ctx context.Context) error { return p.Go(ctx, hash) })
}

// shot keeps a picture where TICKTIER_E2E_SHOTS says, and demands that nothing on the
// page is plainly wrong and that it is not wider than its window.
func (p *tab) shot(name string) {
	p.Helper()
	file := ""
	if dir := os.Getenv("TICKTIER_E2E_SHOTS"); dir != "" {
		file = filepath.Join(dir, name+".png")
	}
	p.do("take a picture", func(ctx context.Context) error { return p.Shot(ctx, file) })
	shown := p.ask("document.body.innerText")
	for _, bad := range []string{"NaN", "undefined", "[object Object]", "Infinity", "Invalid Date"} {
		if strings.Contains(shown, bad) {
			p.Errorf("%s: the page shows %q:\n%.3000s", name, bad, shown)
		}
	}
	if wide := p.ask("document.documentElement.scrollWidth - innerWidth"); wide != "0" && !strings.HasPrefix(wide, "-") {
		p.Errorf("%s: the page is %s pixels wider than its window", name, wide)
	}
}

// seedFleet fills a new directory with a made-up fleet whose samples go on for a
// while, and starts an adapter on it.
func seedFleet(t *testing.T, devices, days, fineDays int, args ...string) (adapter *app, dir string) {
	t.Helper()
	dir = t.TempDir()
	end := time.Now().Add(3 * time.Hour).UTC().Format(time.RFC3339)
	out, err := exec.CommandContext(t.Context(), exe(t, "adapter"), "seed", "--data-dir="+dir, fmt.Sprint("--devices=", devices), fmt.Sprint("--days=", days),
		"--raw-hours=5", fmt.Sprint("--5m-days=", fineDays), "--end="+end).CombinedOutput()
	if err != nil {
		t.Fatalf("seed: %v\n%s", err, out)
	}
	return startAdapterAt(t, "127.0.0.1:0", dir, append([]string{"--retention.1h=0"}, args...)...), dir
}

// startPushing starts an exporter of this machine that pushes to an adapter ten times a
// second, and waits until a quarter of a minute is stored.
func startPushing(t *testing.T, adapter *app, instance string) *app {
	t.Helper()
	exporter := startExporter(t, "--rate=10", "--remote-write.interval=1s",
		"--remote-write.url="+adapter.URL("/api/v1/write"), "--external-label=instance="+instance)
	eventually(t, pageWithin, "15 s of samples", func(ctx context.Context) error {
		r, err := adapter.Query(ctx, fmt.Sprintf(`count_over_time(node_cpu_seconds_total{cpu="0",mode="idle",instance=%q}[2m])`, instance), nowMs())
		if err != nil {
			return err
		}
		n, err := r.Value()
		if err == nil && n < 150 {
			err = fmt.Errorf("%v samples", n)
		}
		return err
	})
	return exporter
}

// TestEmptyPageInBrowser: before anything was pushed the page says what to do.
func TestEmptyPageInBrowser(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	p := openTab(t, adapter, "", desktop)
	p.until(`document.querySelector("#empty")?.checkVisibility()`)
	if want := "--remote-write.url=" + adapter.URL("/api/v1/write"); !strings.Contains(p.ask("document.body.innerText"), want) {
		t.Errorf("the page does not name %s", want)
	}
	p.shot("empty")
}

// TestFleetInBrowser: made-up devices and this machine are listed, what is wrong
// first; the list is searched, sorted and scrolled; an adapter that is away is told.
func TestFleetInBrowser(t *testing.T) {
	t.Parallel()
	chromium(t)
	adapter, dir := seedFleet(t, 200, 2, 1, "--devices.down-after=5s")
	exporter := startPushing(t, adapter, "router-of-the-test")
	p := openTab(t, adapter, "#/fleet?search=router-of-the-test", desktop)
	row := `document.querySelector("#devices tr[data-instance=router-of-the-test]")`
	p.until(row + `?.querySelector(".c-cpu").textContent.endsWith("%")`)
	p.until(row + `.querySelector(".state").textContent === "up"`)
	p.until(row + `.querySelector("canvas").getAttribute("aria-label").startsWith("CPU over the last hour: now")`)

	// All of them, of which only those in sight are in the document.
	p.run(`(() => { const s = document.querySelector("#search"); s.value = ""; s.dispatchEvent(new Event("input")); })()`)
	p.until(`document.querySelector("#summary").textContent.startsWith("201 devices")`)
	p.until(`document.querySelector("#devices").getAttribute("aria-rowcount") === "202"`)
	if n := p.ask(`document.querySelectorAll("#devices tr[data-instance]").length`); len(n) > 2 {
		t.Errorf("%s rows are in the document", n)
	}
	p.until(`document.querySelectorAll("#devices canvas[aria-label^='CPU over']").length > 10`)
	p.until(`[...document.querySelectorAll("#devices tbody .c-cpu")].filter((c) => c.textContent.endsWith("%")).length > 5`)
	p.shot("fleet")

	// Sorted by name, backwards, and to the end.
	p.run(`document.querySelector("#devices th.c-instance button").click()`)
	p.until(`document.querySelector("#devices tr[data-instance]").dataset.instance === "router-00000"`)
	p.run(`document.querySelector("#devices th.c-instance button").click()`)
	p.until(`document.querySelector("#devices tr[data-instance]").dataset.instance !== "router-00000"`)
	p.run(`scrollTo(0, document.documentElement.scrollHeight)`)
	p.until(`[...document.querySelectorAll("#devices tr[data-instance]")].at(-1).dataset.instance === "router-00000"`)
	p.shot("fleet-end")
	if hash := p.ask("location.hash"); !strings.Contains(hash, "sort=instance") {
		t.Errorf("the address does not hold the order: %s", hash)
	}

	// One that falls silent comes first, and says so.
	exporter.kill()
	p.goTo("#/fleet")
	p.until(`document.querySelector("#devices tr[data-instance]")?.dataset.instance === "router-of-the-test"`)
	p.until(row + `.querySelector(".state").textContent === "silent"`)
	p.shot("fleet-silent")

	// The adapter goes away under the open page and comes back.
	p.mayFail = true
	adapter.stop(t)
	p.until(`document.querySelector("#trouble").checkVisibility() && document.body.classList.contains("stale")`)
	p.shot("fleet-away")
	back := startAdapterAt(t, adapter.addr, dir)
	p.until(`document.querySelector("#trouble").hidden`)
	back.stop(t)
}

// TestFleetOnPhone: on a small dark window nothing is cut off.
func TestFleetOnPhone(t *testing.T) {
	t.Parallel()
	chromium(t)
	adapter, _ := seedFleet(t, 30, 2, 1)
	size := phone
	size.Dark = true
	p := openTab(t, adapter, "", size)
	p.until(`document.querySelectorAll("#devices canvas[aria-label^='CPU over']").length > 5`)
	p.shot("fleet-phone")
}

// TestDeviceInBrowser: a device is looked at from a year to an hour;
// the tier that is read is said, and what has no data is named.
func TestDeviceInBrowser(t *testing.T) {
	t.Parallel()
	chromium(t)
	adapter, _ := seedFleet(t, 1, 400, 10)

	p := openTab(t, adapter, "#/device?instance=router-00000&span=31536000", desktop)
	tier := func(want string) {
		t.Helper()
		p.until(`document.querySelector("#chart-cpu .tier")?.textContent === "` + want + `"`)
		p.until(`document.querySelector("#chart-cpu .plot").getAttribute("aria-label").includes("busy: last")`)
	}
	tier("1h")
	if left := p.ask(`document.querySelector("#left-out").textContent`); !strings.Contains(left, "Pressure") || strings.Contains(left, "CPU by mode") {
		t.Errorf("left out: %q", left)
	}
	p.shot("device-year")
	preset := func(name string) { t.Helper(); p.preset(name) }
	preset("1 d")
	tier("5m")
	preset("1 h")
	tier("raw")
	p.shot("device-hour")

}

// preset chooses a span of the time axis.
func (p *tab) preset(name string) {
	p.Helper()
	p.run(`[...document.querySelectorAll(".presets button")].find((b) => b.textContent === "` + name + `").click()`)
}

// TestMachineInBrowser: this machine, which pushes ten times a second, down to one
// second, with keys and the mouse; its alert is marked and listed; a query is asked.
func TestMachineInBrowser(t *testing.T) {
	t.Parallel()
	chromium(t)
	rules := writeFile(t, t.TempDir(), "rules.yml", `groups:
- name: of-the-test
  interval: 1s
  rules:
  - alert: AlwaysThere
    expr: node_load1{instance="router-of-the-test"} >= 0
    labels: {severity: warning}
    annotations: {summary: "{{ $labels.instance }} is there", runbook_url: "https://runbooks.example/AlwaysThere"}
`)
	adapter := startAdapter(t, t.TempDir(), "--rules="+rules)
	startPushing(t, adapter, "router-of-the-test")
	// The machine that pushes ten times a second, down to one second.
	p := openTab(t, adapter, "#/device?instance=router-of-the-test&span=60", desktop)
	p.until(`document.querySelector("#chart-cpu .tier")?.textContent === "raw"`)
	p.until(`document.querySelector(".marks").textContent.includes("AlwaysThere")`)
	p.shot("device-minute")
	p.preset("1 s")
	p.until(`document.querySelector("#chart-cpu .tier")?.title.includes("100 ms a point")`)
	p.shot("device-second")

	// With the keyboard: out, back, and again up to now.
	before := p.ask(`location.hash`)
	p.keys("-", "-", "ArrowLeft")
	p.until(`location.hash.includes("from=")`)
	p.keys("Home")
	p.until(`location.hash.includes("span=4")`)
	if before == p.ask(`location.hash`) {
		t.Error("the keys did nothing")
	}

	// With the mouse: a stretch of a chart.
	p.preset("10 min")
	p.until(`location.hash.includes("span=600") && document.querySelector("#chart-cpu .u-over")`)
	var box struct{ X, Y, Width, Height float64 }
	p.do("find the chart", func(ctx context.Context) error {
		return p.Eval(ctx, `document.querySelector("#chart-cpu .u-over").getBoundingClientRect().toJSON()`, &box)
	})
	p.do("drag", func(ctx context.Context) error {
		y := box.Y + box.Height/2
		return p.Drag(ctx, box.X+box.Width*0.9, y, box.X+box.Width*0.97, y)
	})
	p.until(`/from=\d+&to=\d+/.test(location.hash)`)

	// The same on a phone.
	small := openTab(t, adapter, "#/device?instance=router-of-the-test&span=600", phone)
	small.until(`document.querySelector("#chart-cpu .tier")?.textContent === "raw"`)
	small.shot("device-phone")

	// Its ticks as they arrive, ten a second.
	p.goTo("#/live?instance=router-of-the-test")
	p.until(`/^([5-9]\.|10)[0-9.]* ticks a second/.test(document.querySelector("#summary").textContent)`)
	p.until(`document.querySelector("#live-cores .plot")?.getAttribute("aria-label").includes("core 0: last")`)
	was := p.ask(`document.querySelector("#live-cores .plot").getAttribute("aria-label")`)
	p.until(`document.querySelector("#live-cores .plot").getAttribute("aria-label") !== ` + strconv.Quote(was))
	p.shot("live")

	// Alerts, and a query.
	p.goTo("#/alerts")
	p.until(`document.querySelector("#alerts tbody")?.textContent.includes("AlwaysThere")`)
	p.until(`document.querySelector("#alerts a[href='https://runbooks.example/AlwaysThere']")`)
	p.until(`document.querySelector("#firing").textContent === "1"`)
	p.shot("alerts")
	p.goTo("#/query")
	p.until(`document.activeElement?.id === "promql"`)
	p.do("type", func(ctx context.Context) error { return p.Type(ctx, `sum by (cpu) (rate(node_cpu_seconds_total[1m]))`) })
	p.keys("Enter")
	p.until(`document.querySelector("#answer")?.textContent.includes('cpu="0"')`)
	p.until(`document.querySelector(".chart .tier")?.textContent.includes("raw")`)
	p.shot("query")
	p.mayFail = true // the browser logs an answer of 400
	p.run(`(() => { const q = document.querySelector("#promql"); q.value = "sum("; document.querySelector("#run").click(); })()`)
	p.until(`document.querySelector("#problem").textContent.includes("parse error")`)
}

// TestKeyboardOnly: a device is found and opened without a mouse, and what has the
// focus is seen.
func TestKeyboardOnly(t *testing.T) {
	t.Parallel()
	chromium(t)
	adapter, _ := seedFleet(t, 5, 2, 1)
	p := openTab(t, adapter, "", desktop)
	p.until(`document.querySelectorAll("#devices tr[data-instance]").length === 5`)
	tabTo := func(what string) {
		t.Helper()
		for range 60 {
			if p.ask(`Boolean(document.activeElement?.matches('`+what+`'))`) == "true" {
				return
			}
			p.keys("Tab")
		}
		t.Fatalf("Tab never comes to %s", what)
	}
	p.keys("Tab")
	if got := p.ask(`document.activeElement.className`); got != "skip" {
		t.Errorf("the first Tab comes to %q", got)
	}
	tabTo("#search")
	p.do("type", func(ctx context.Context) error { return p.Type(ctx, "router-00003") })
	p.until(`document.querySelectorAll("#devices tr[data-instance]").length === 1`)
	tabTo(`#devices tbody a`)
	if p.ask(`getComputedStyle(document.activeElement).outlineStyle`) == "none" {
		t.Error("what has the focus is not seen")
	}
	p.keys("Enter")
	p.until(`location.hash.includes("instance=router-00003") && document.querySelector("#chart-cpu canvas")`)
}
