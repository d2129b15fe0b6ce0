package collectors

import (
	"bytes"
	"errors"
)

var udpQueues = Metric{Name: "node_udp_queues", Type: Gauge,
	Help: "Number of allocated memory in the kernel for UDP datagrams in bytes."}

// udpFile is net/udp or net/udp6: a line for each socket, with its queues in column
// 4 as TX:RX, hexadecimal (udp4_format_sock in net/ipv4/udp.c).
type udpFile struct {
	*file
	ip     string
	tx, rx int32 // slot + 1
}

type udp struct {
	files  [2]udpFile
	faults faults
}

func newUDPQueues(env Env) (Source, error) {
	if err := hostNet(env); err != nil {
		return nil, err
	}
	s := &udp{faults: newFaults(env, "udp_queues"), files: [2]udpFile{
		{file: laterRows(procNet(env, "udp"), 4<<10, rowRecord), ip: "v4"},
		{file: laterRows(procNet(env, "udp6"), 4<<10, rowRecord), ip: "v6"}}}
	s.files[0].max, s.files[1].max = maxWalkBytes, maxWalkBytes
	err := s.files[0].open()
	if err2 := s.files[1].open(); err != nil && err2 != nil {
		return nil, err
	}
	return s, nil
}

func (s *udp) Read(out *Out) error {
	var failed error
	n := 0
	for i := range s.files {
		f := &s.files[i]
		text, err := f.readInto(out)
		if err == nil {
			s.parse(out, f, text)
			continue
		}
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		failed = err
		n++
		if f.tx > 0 {
			out.Clear(int(f.tx - 1))
			out.Clear(int(f.rx - 1))
		}
	}
	if n == len(s.files) {
		return failed
	}
	return nil
}

func (s *udp) parse(out *Out, f *udpFile, text []byte) {
	const column = 4
	var tx, rx uint64
	_, text, _ = cutLine(text) // the names
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		start, end := field(line, 0)
		for range column {
			start, end = field(line, end)
		}
		a, b, ok := bytes.Cut(line[start:end], []byte{':'})
		t, _, f1 := hex(a, 0)
		r, _, f2 := hex(b, 0)
		if !ok || f1 != good || f2 != good {
			if len(line) > 0 {
				s.faults.badRow(out, line)
			}
			continue
		}
		tx += t
		rx += r
	}
	if f.tx == 0 {
		f.tx = int32(out.Add(&udpQueues, Label{"ip", f.ip}, Label{"queue", "tx"})) + 1
		f.rx = int32(out.Add(&udpQueues, Label{"ip", f.ip}, Label{"queue", "rx"})) + 1
	}
	out.Set(int(f.tx-1), int64(tx))
	out.Set(int(f.rx-1), int64(rx))
}

func (s *udp) Close() error {
	for _, f := range s.files {
		f.close()
	}
	return nil
}
