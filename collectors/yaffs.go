package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// yaffsFields are the figures of /proc/yaffs that tell of room and wear
// (yaffs_dump_dev_part0 and part1 in fs/yaffs2/yaffs_vfs.c, out of the kernel's
// tree).
var yaffsFields = map[string]Metric{
	"start_block":          yaffsMetric("first_block", "First block of the device.", Gauge),
	"end_block":            yaffsMetric("last_block", "Last block of the device.", Gauge),
	"data_bytes_per_chunk": yaffsMetric("chunk_bytes", "Bytes of data in a chunk.", Gauge),
	"n_bad_blocks":         yaffsMetric("bad_blocks", "Number of bad blocks.", Gauge),
	"n_erased_blocks":      yaffsMetric("erased_blocks", "Number of blocks that are erased.", Gauge),
	"n_free_chunks":        yaffsMetric("free_chunks", "Number of chunks that are free.", Gauge),
	"n_obj":                yaffsMetric("objects", "Number of objects: files, directories and links.", Gauge),
	"n_tnodes":             yaffsMetric("tnodes", "Number of nodes in the trees of files.", Gauge),
	"n_page_writes":        yaffsMetric("page_writes_total", "Number of pages written.", Counter),
	"n_page_reads":         yaffsMetric("page_reads_total", "Number of pages read.", Counter),
	"n_erasures":           yaffsMetric("erasures_total", "Number of blocks erased.", Counter),
	"n_gc_copies":          yaffsMetric("gc_copies_total", "Number of chunks copied by garbage collection.", Counter),
	"all_gcs":              yaffsMetric("gcs_total", "Number of garbage collections.", Counter),
	"n_gc_blocks":          yaffsMetric("gc_blocks_total", "Number of blocks collected.", Counter),
	"n_retried_writes":     yaffsMetric("retried_writes_total", "Number of writes that were tried again.", Counter),
	"n_retired_blocks":     yaffsMetric("retired_blocks_total", "Number of blocks taken out of use.", Counter),
	"n_ecc_fixed":          yaffsMetric("ecc_fixed_total", "Number of errors that were corrected.", Counter),
	"n_ecc_unfixed":        yaffsMetric("ecc_unfixed_total", "Number of errors that could not be corrected.", Counter),
	"n_tags_ecc_fixed":     yaffsMetric("tags_ecc_fixed_total", "Number of errors in tags that were corrected.", Counter),
	"n_tags_ecc_unfixed": yaffsMetric("tags_ecc_unfixed_total",
		"Number of errors in tags that could not be corrected.", Counter),
	"cache_hits":    yaffsMetric("cache_hits_total", "Number of reads answered from the cache.", Counter),
	"refresh_count": yaffsMetric("refreshes_total", "Number of blocks that were refreshed.", Counter),
}

func yaffsMetric(name, help string, t Type) Metric {
	return Metric{Name: "node_yaffs_" + name, Type: t, Help: help}
}

const (
	maxYaffsDevices = 64
	maxYaffsFields  = 128
)

type yaffsRow struct {
	device string
	fields *table[fieldRow]
}

type yaffs struct {
	*file
	faults faults
	rows   *table[yaffsRow]
}

func newYaffs(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "yaffs"), 8<<10, false)
	if err != nil {
		return nil, err
	}
	return &yaffs{file: f, faults: newFaults(env, "yaffs"), rows: newTable[yaffsRow](maxYaffsDevices)}, nil
}

func (s *yaffs) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.parse(out, text)
}

func (s *yaffs) parse(out *Out, text []byte) error {
	if !bytes.Contains(text, []byte("YAFFS")) {
		return fmt.Errorf("read %s: %w", s.path, errNoTable)
	}
	s.rows.begin()
	var r *yaffsRow
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if bytes.HasPrefix(line, []byte("Device ")) {
			s.endDevice(out, r)
			r = s.device(out, line)
		} else if r != nil {
			s.figure(out, r, line)
		}
	}
	s.endDevice(out, r)
	s.rows.end(func(r *yaffsRow) {
		r.fields.begin()
		s.endDevice(out, r)
	})
	return nil
}

// device begins a device: Device 0 "NAME".
func (s *yaffs) device(out *Out, line []byte) *yaffsRow {
	_, name, ok := bytes.Cut(line, []byte{'"'})
	name, _, closed := bytes.Cut(name, []byte{'"'})
	if !ok || !closed {
		s.faults.badRow(out, line)
		return nil
	}
	r, state := s.rows.find(name)
	if r == nil {
		s.faults.refused(out, state, line)
		return nil
	}
	if state == rowNew {
		r.device, r.fields = label(name), newTable[fieldRow](maxYaffsFields)
	}
	r.fields.begin()
	return r
}

// figure handles a line like n_obj................ 4612, with or without dots or
// blanks before the number. Lines of another form are tables and texts.
func (s *yaffs) figure(out *Out, r *yaffsRow, line []byte) {
	end := 0
	for end < len(line) && (line[end] == '_' || line[end]-'a' < 26 || line[end]-'0' < 10 && end > 0) {
		end++
	}
	at := end
	for at < len(line) && (line[at] == '.' || blank(line[at])) {
		at++
	}
	v, _, f := number(line, at)
	if end == 0 || f != good {
		return
	}
	row, state := r.fields.find(line[:end])
	if row == nil {
		s.faults.refused(out, state, line)
		return
	}
	if state == rowNew {
		if m, ok := yaffsFields[string(line[:end])]; ok {
			row.slot = int32(out.Add(&m, Label{"device", r.device})) + 1
		}
	}
	if row.slot > 0 {
		out.Set(int(row.slot-1), int64(v))
	}
}

func (s *yaffs) endDevice(out *Out, r *yaffsRow) {
	if r != nil {
		r.fields.end(func(f *fieldRow) { f.clear(out) })
	}
}
