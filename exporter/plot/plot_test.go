package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"
	"testing"
)

// recording is a minute at 100 Hz with one burst, one late tick and a gap.
func recording() string {
	var b strings.Builder
	b.WriteString(`{"hello":{"session":"<s&>","version":1}}` + "\n")
	b.WriteString(`{"series":[{"id":0,"name":"node_cpu_seconds_total","labels":{"cpu":"0","mode":"idle"}},` +
		`{"id":1,"name":"node_cpu_seconds_total","labels":{"cpu":"0","mode":"user"}},` +
		`{"id":2,"name":"node_network_receive_packets_total","labels":{"device":"eth<0>"}},` +
		`{"id":3,"name":"node_softnet_dropped_total","labels":{"cpu":"0"}}]}` + "\n")
	idle, user, rx := 0, 0, 0
	for i := range 6000 {
		t := 1_700_000_000_000 + 10*int64(i)
		if i == 3000 {
			user, rx = user+1, rx+1000
		} else {
			idle++
		}
		if i == 2000 {
			t += 7
		}
		if i == 4000 {
			fmt.Fprintf(&b, `{"gap":{"reason":"missed","ticks":1,"fromTime":%d,"toTime":%d}}`+"\n", t-10, t+10)
			continue
		}
		fmt.Fprintf(&b, `{"tick":{"seq":%d,"t":%d,"v":{"0":%.2f,"1":%.2f,"2":%d,"3":0}}}`+"\n", i, t, float64(idle)/100, float64(user)/100, rx)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	rec, err := read(strings.NewReader(recording()))
	if err != nil {
		t.Fatal(err)
	}
	if rec.ticks != 5999 || rec.missed != 1 || len(rec.gaps) != 1 {
		t.Errorf("%d ticks, %d missed", rec.ticks, rec.missed)
	}
	if l := rec.panels[cpu]["user"]; l.max < 99.9 {
		t.Errorf("the burst is shown as %v %%", l.max)
	}
	if ls := rec.lines(packets); len(ls) != 1 || ls[0].name != "in eth<0>" || ls[0].max != 100_000 {
		t.Errorf("%+v", ls)
	}
	if ls := rec.lines(drops); len(ls) != 0 {
		t.Errorf("%d lines of drops", len(ls))
	}
	if ls := rec.lines(lateness); len(ls) != 1 || ls[0].max < 6.9 || ls[0].max > 7.1 {
		t.Errorf("late by %v ms", ls[0].max)
	}
}

// TestDraw: the picture is XML, small, and shows the burst at its full height.
func TestDraw(t *testing.T) {
	var b strings.Builder
	if err := Draw(&b, strings.NewReader(recording()), SVG); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %.300s", err, b.String())
		}
	}
	for _, want := range []string{"5999 ticks, 1 missing", "&lt;s&amp;&gt;", "in eth&lt;0&gt;", "busiest tick", "#f8d7da", ">none<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	if top := fmt.Sprintf("V%d.0", head+height+gap+20); !strings.Contains(b.String(), top) {
		t.Errorf("the burst does not reach the top, %s", top)
	}
	if b.Len() > 200_000 {
		t.Errorf("the picture takes %d bytes", b.Len())
	}
	for _, bad := range []string{"", "{x}\n", `{"tick":{"seq":1,"t":1,"v":{}}}` + "\n"} {
		if err := Draw(io.Discard, strings.NewReader(bad), SVG); err == nil {
			t.Errorf("%q was drawn", bad)
		}
	}
}

func TestCeiling(t *testing.T) {
	for v, want := range map[float64]float64{0.3: 0.4, 1: 1, 1.01: 2, 37: 40, 51: 80, 81: 100, 1e6: 1e6} {
		if got := ceiling(v); got < want*0.999 || got > want*1.001 {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
}

// TestPNG: the standard library reads the picture, and it has what the other form has:
// the burst at its full height, the gap, writing.
func TestPNG(t *testing.T) {
	var b bytes.Buffer
	if err := Draw(&b, strings.NewReader(recording()), PNG); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 300_000 {
		t.Errorf("the picture takes %d bytes", b.Len())
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds(); got.Dx() != zoom*width || got.Dy() != zoom*(head+panelCount*(height+gap)+foot) {
		t.Errorf("it is %v", got)
	}
	top := head + packets*(height+gap)
	count := func(colour string, x0, y0, x1, y1 int) (n int) {
		want := newRaster(1, 1)
		want.colour(colour)
		r, g, bl, _ := want.palette[0].RGBA()
		for y := y0 * zoom; y < y1*zoom; y++ {
			for x := x0 * zoom; x < x1*zoom; x++ {
				if pr, pg, pb, _ := img.At(x, y).RGBA(); pr == r && pg == g && pb == bl {
					n++
				}
			}
		}
		return n
	}
	mid := left + plotWidth/2
	if n := count(colours[0], mid-3, top+20, mid+4, top+height); n < zoom*(height-25) {
		t.Errorf("the burst has %d pixels", n)
	}
	if n := count(colours[0], left+50, top+20, mid-10, top+height-5); n != 0 {
		t.Errorf("%d pixels stand where nothing was", n)
	}
	at := left + plotWidth*2/3
	if n := count(missing, at-4, top+20, at+4, top+height); n < height {
		t.Errorf("the gap has %d pixels", n)
	}
	if n := count(ink, left, 5, left+400, 30); n < 300 {
		t.Errorf("the title has %d pixels", n)
	}
}

// TestTasks: where the kernel counts exactly, that is drawn, too.
func TestTasks(t *testing.T) {
	in := strings.ReplaceAll(recording(), `"labels":{"cpu":"0"}}]`, `"labels":{"cpu":"0"}},{"id":4,"name":"node_schedstat_running_seconds_total","labels":{"cpu":"0"}}]`)
	var b strings.Builder
	n := 0
	for line := range strings.Lines(in) {
		if strings.HasPrefix(line, `{"tick"`) {
			line = strings.TrimSuffix(line, "}}}\n") + fmt.Sprintf(`,"4":%.4f}}}`+"\n", float64(n)*0.0025)
			n++
		}
		b.WriteString(line)
	}
	rec, err := read(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if l := rec.panels[cpu][tasks]; l == nil || l.v[100] < 24.9 || l.v[100] > 25.1 {
		t.Errorf("%+v", l)
	}
	var out strings.Builder
	if err := Draw(&out, strings.NewReader(b.String()), SVG); err != nil || !strings.Contains(out.String(), "tasks, exact") {
		t.Errorf("%v", err)
	}
}

// TestTimeStep: no more than eight marks, at round times, for any span.
func TestTimeStep(t *testing.T) {
	for span := int64(50); span < 30*86_400_000; span = span*5/4 + 1 {
		step, format := timeStep(span)
		if span/step > 8 || format == "" || span > 1000 && span < 600_000_000 && span/step < 2 {
			t.Errorf("%d ms: a mark each %d", span, step)
		}
	}
	for name, want := range map[string]Format{"a.png": PNG, "a.PNG": PNG, "a.svg": SVG, "": SVG, "-": SVG, "png": SVG} {
		if got := FormatOf(name); got != want {
			t.Errorf("%q: %d", name, got)
		}
	}
}

// TestDrawCut: a record whose writer was killed is drawn but for its last line. A line
// that is wrong in the middle is an error.
func TestDrawCut(t *testing.T) {
	whole := strings.TrimRight(recording(), "\n")
	last := strings.LastIndex(whole, "\n")
	var b strings.Builder
	if err := Draw(&b, strings.NewReader(whole[:last+(len(whole)-last)/2]), SVG); err != nil || !strings.Contains(b.String(), "cut off") {
		t.Errorf("%v", err)
	}
	if err := Draw(&b, strings.NewReader(whole[:last-3]+whole[last:]), SVG); err == nil {
		t.Error("a line in the middle is not whole, and nothing was said")
	}
}
