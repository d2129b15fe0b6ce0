package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
)

// diskExclude matches the devices that are left out: node_exporter's own default.
const diskExclude = `^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`

const (
	// sectorBytes is the unit of sectors in diskstats, whatever the device's own is.
	sectorBytes = 512
	maxDisks    = 1024
)

// diskMetrics are the columns behind the name (diskstats_show in block/genhd.c):
// 11 up to Linux 4.17, 15 with discards since 4.18, 17 with flushes since 5.5.
var diskMetrics = [...]Metric{
	diskMetric("reads_completed_total", "The total number of reads completed successfully.", 0, 0),
	diskMetric("reads_merged_total", "The total number of reads merged.", 0, 0),
	diskMetric("read_bytes_total", "The total number of bytes read successfully.", sectorBytes, 0),
	diskMetric("read_time_seconds_total", "The total number of seconds spent by all reads.", 0, 1000),
	diskMetric("writes_completed_total", "The total number of writes completed successfully.", 0, 0),
	diskMetric("writes_merged_total", "The number of writes merged.", 0, 0),
	diskMetric("written_bytes_total", "The total number of bytes written successfully.", sectorBytes, 0),
	diskMetric("write_time_seconds_total", "This is the total number of seconds spent by all writes.", 0, 1000),
	{Name: "node_disk_io_now", Type: Gauge, Help: "The number of I/Os currently in progress."},
	diskMetric("io_time_seconds_total", "Total seconds spent doing I/Os.", 0, 1000),
	diskMetric("io_time_weighted_seconds_total", "The weighted # of seconds spent doing I/Os.", 0, 1000),
	diskMetric("discards_completed_total", "The total number of discards completed successfully.", 0, 0),
	diskMetric("discards_merged_total", "The total number of discards merged.", 0, 0),
	diskMetric("discarded_sectors_total", "The total number of sectors discarded successfully.", 0, 0),
	diskMetric("discard_time_seconds_total", "This is the total number of seconds spent by all discards.", 0, 1000),
	diskMetric("flush_requests_total", "The total number of flush requests completed successfully", 0, 0),
	diskMetric("flush_requests_time_seconds_total", "This is the total number of seconds spent by all flush requests.", 0, 1000),
}

// diskMinColumns is what a device has at least; partitions of kernels before
// 2.6.25 have four columns of another meaning.
const diskMinColumns = 11

var diskInfo = Metric{Name: "node_disk_info", Type: Gauge,
	Help: "Info of /sys/block/<block_device>."}

func diskMetric(name, help string, mul, div float64) Metric {
	m := Metric{Name: "node_disk_" + name, Type: Counter, Help: help, Mul: mul, Div: div}
	switch {
	case mul == sectorBytes:
		m.Unit = "bytes"
	case div == 1000:
		m.Unit = "seconds"
	}
	return m
}

type diskRow struct {
	name    string
	ignored bool
	slots   [len(diskMetrics)]int32
	known   int // columns that have a slot
	columns int // columns of the last read
	number  [2]uint64
	info    infoSet
	udev    diskUdev
}

type diskstats struct {
	*file
	faults faults
	filter filter
	rows   *table[diskRow]
	block  string // the directory /sys/block
	udev   string // the directory of udev's records
}

func newDiskstats(env Env) (Source, error) {
	f, err := openRows(filepath.Join(env.Procfs, "diskstats"), 8<<10, rowRecord)
	if err != nil {
		return nil, err
	}
	return &diskstats{file: f, faults: newFaults(env, "diskstats"),
		filter: env.filter("diskstats.device", diskExclude), rows: newTable[diskRow](maxDisks),
		block: filepath.Join(env.Sysfs, "block"),
		udev:  filepath.Join(env.Rootfs, "run/udev/data")}, nil
}

func (s *diskstats) Read(out *Out) error {
	text, err := s.file.read()
	if err != nil {
		return err
	}
	out.Stats.Bytes.Add(uint64(len(text)))
	s.parse(out, text) // a machine without disks has an empty file
	return nil
}

func (s *diskstats) parse(out *Out, text []byte) {
	s.rows.begin()
	for len(text) > 0 {
		var line []byte
		var whole bool
		line, text, whole = cutLine(text)
		if len(trim(line)) > 0 {
			s.row(out, line, whole)
		}
	}
	s.rows.end(func(r *diskRow) {
		r.clear(out, 0)
		r.info.clear(out)
		r.udev.clear(out)
	})
}

func (s *diskstats) row(out *Out, line []byte, whole bool) {
	var num [2]uint64
	var v [len(diskMetrics)]uint64
	n, at, _ := numbers(line, 0, num[:])
	start, end := field(line, at)
	if n < len(num) || start == end {
		s.faults.badRow(out, line)
		return
	}
	r, state := s.rows.find(line[start:end])
	if r == nil {
		s.faults.refused(out, state, line)
		return
	}
	if state == rowNew {
		r.name = label(line[start:end])
		r.ignored = s.filter.ignores(r.name)
	}
	if r.ignored {
		return
	}
	n, _, f := numbers(line, end, v[:])
	if f == bad || n < diskMinColumns || !whole && n < r.columns {
		if n != 4 || f == bad {
			s.faults.badRow(out, line)
		}
		r.clear(out, 0)
		r.info.clear(out)
		r.udev.clear(out)
		return
	}
	r.set(out, v[:n])
	if state != rowSame || r.number != num {
		r.number = num
		props := readUdev(filepath.Join(s.udev, fmt.Sprintf("b%d:%d", num[0], num[1])))
		r.info.set(out, &diskInfo, s.infoLabels(r.name, num, props))
		r.udev.learn(out, r.name, props)
		return
	}
	r.info.keep(out)
	r.udev.keep(out)
}

func (r *diskRow) set(out *Out, v []uint64) {
	for r.known < len(v) {
		r.slots[r.known] = int32(out.Add(&diskMetrics[r.known], Label{"device", r.name}))
		r.known++
	}
	for i := range v {
		out.Set(int(r.slots[i]), int64(v[i]))
	}
	if len(v) < r.columns {
		r.clear(out, len(v))
	}
	r.columns = len(v)
}

func (r *diskRow) clear(out *Out, n int) {
	for _, slot := range r.slots[min(n, r.known):r.known] {
		out.Clear(int(slot))
	}
	r.columns = n
}

// infoLabels are the labels of node_disk_info. What only udev knows is left out
// where udev does not run, as on routers.
func (s *diskstats) infoLabels(name string, num [2]uint64, u map[string]string) []Label {
	major, minor := strconv.FormatUint(num[0], 10), strconv.FormatUint(num[1], 10)
	// A device without a queue does not rotate: node_exporter says 0 as well.
	rotational := "0"
	// A slash in a name is an exclamation mark in sysfs.
	dir := string(bytes.ReplaceAll([]byte(name), []byte{'/'}, []byte{'!'}))
	if b, err := ReadFile(filepath.Join(s.block, dir, "queue/rotational")); err == nil && string(trim(b)) == "1" {
		rotational = "1"
	}
	return []Label{
		{"device", name}, {"major", major}, {"minor", minor}, {"rotational", rotational},
		{"path", u["ID_PATH"]}, {"wwn", u["ID_WWN"]}, {"model", u["ID_MODEL"]},
		{"serial", firstOf(u["SCSI_IDENT_SERIAL"], u["ID_SERIAL_SHORT"], u["ID_SERIAL"])},
		{"revision", u["ID_REVISION"]},
	}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// seriesless tells that the row has no series to keep a place for.
func (r *diskRow) seriesless() bool { return r.ignored }
