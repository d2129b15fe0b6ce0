package collectors

import (
	"fmt"
	"path/filepath"
)

var loadMetrics = [...]Metric{
	{Name: "node_load1", Type: Gauge, Kind: Signed, Div: 100, Help: "1m load average."},
	{Name: "node_load5", Type: Gauge, Kind: Signed, Div: 100, Help: "5m load average."},
	{Name: "node_load15", Type: Gauge, Kind: Signed, Div: 100, Help: "15m load average."},
}

type loadavg struct {
	*file
	slots [len(loadMetrics)]int
	known bool
}

func newLoadavg(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "loadavg"), 256, true)
	if err != nil {
		return nil, err
	}
	return &loadavg{file: f}, nil
}

func (s *loadavg) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

// parse reads the three averages; the kernel prints them with two digits
// (loadavg_proc_show in fs/proc/loadavg.c), so the raw values are hundredths.
func (s *loadavg) parse(out *Out, text []byte) error {
	line, _, _ := cutLine(text)
	var v [len(loadMetrics)]int64
	at := 0
	for i := range v {
		var f found
		if v[i], at, f = decimal(line, at); f != good {
			return fmt.Errorf("read %s: average %d is no number", s.path, i+1)
		}
	}
	if !s.known {
		for i := range loadMetrics {
			s.slots[i] = out.Add(&loadMetrics[i])
		}
		s.known = true
	}
	for i := range v {
		out.Set(s.slots[i], v[i])
	}
	return nil
}
