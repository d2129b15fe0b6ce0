package collectors

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var (
	osInfo = Metric{Name: "node_os_info", Type: Gauge,
		Help: "A metric with a constant '1' value labeled by build_id, id, id_like, image_id, image_version, " +
			"name, pretty_name, variant, variant_id, version, version_codename, version_id."}
	osVersion = Metric{Name: "node_os_version", Type: Gauge, Kind: Float,
		Help: "Metric containing the major.minor part of the OS version."}
	osSupportEnd = Metric{Name: "node_os_support_end_timestamp_seconds", Type: Gauge, Kind: Signed, Unit: "seconds",
		Help: "Metric containing the end-of-life date timestamp of the OS."}
)

// osLabels are the labels of node_os_info; in the file they are upper case.
var osLabels = []string{"build_id", "id", "id_like", "image_id", "image_version", "name", "pretty_name",
	"variant", "variant_id", "version", "version_codename", "version_id"}

// osRelease reads os-release(5) and reports it anew when the file changes.
type osRelease struct {
	files []*file
	last  []byte
	info  infoSet

	versions  *table[osVersionRow]
	version   *osVersionRow
	value     float64
	end       int32 // slot + 1
	endAt     int64
	supported bool
}

type osVersionRow struct{ slot int32 }

func newOSRelease(env Env) (Source, error) {
	s := &osRelease{versions: newTable[osVersionRow](maxInfos)}
	var err error
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		f := laterFile(filepath.Join(env.Rootfs, name), 1<<10, true)
		if _, e := f.read(); e != nil {
			err = e
		} else {
			err = nil
		}
		s.files = append(s.files, f)
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *osRelease) Read(out *Out) error {
	text, err := s.files[len(s.files)-1].readInto(out)
	if err != nil {
		s.last = s.last[:0]
		return err
	}
	if s.info.active == 0 || !bytes.Equal(text, s.last) {
		s.last = append(s.last[:0], text...)
		s.learn(out, parseOSRelease(text))
	}
	s.info.keep(out)
	if s.version != nil {
		out.Set(int(s.version.slot), int64(math.Float64bits(s.value)))
	}
	if s.supported {
		out.Set(int(s.end-1), s.endAt)
	}
	return nil
}

func (s *osRelease) learn(out *Out, os map[string]string) {
	var labels []Label
	for _, l := range osLabels {
		labels = append(labels, Label{l, os[strings.ToUpper(l)]})
	}
	s.info.set(out, &osInfo, labels)
	s.versions.begin()
	s.version = nil
	if v, ok := majorMinor(os["VERSION_ID"]); ok {
		row, state := s.versions.find([]byte(os["ID"] + "\x00" + os["ID_LIKE"] + "\x00" + os["NAME"]))
		if state == rowNew {
			row.slot = int32(out.Add(&osVersion, Label{"id", os["ID"]}, Label{"id_like", os["ID_LIKE"]}, Label{"name", os["NAME"]}))
		}
		s.version, s.value = row, v
	}
	s.versions.end(func(r *osVersionRow) { out.Clear(int(r.slot)) })
	t, err := time.Parse(time.DateOnly, os["SUPPORT_END"])
	s.supported = err == nil
	switch {
	case s.supported:
		if s.end == 0 {
			s.end = int32(out.Add(&osSupportEnd)) + 1
		}
		s.endAt = t.Unix()
	case s.end > 0:
		out.Clear(int(s.end - 1))
	}
}

// parseOSRelease reads lines like NAME="value", in which a backslash escapes the next
// character. What is no such line is left out.
func parseOSRelease(text []byte) map[string]string {
	os := map[string]string{}
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		line = trim(line)
		key, value, ok := bytes.Cut(line, []byte{'='})
		if !ok || bytes.HasPrefix(line, []byte{'#'}) {
			continue
		}
		os[string(key)] = label(unquote(value))
	}
	return os
}

func unquote(b []byte) []byte {
	if len(b) >= 2 && (b[0] == '"' || b[0] == '\'') && b[len(b)-1] == b[0] {
		single := b[0] == '\''
		b = b[1 : len(b)-1]
		if single {
			return b
		}
	}
	var plain []byte
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) {
			i++
		}
		plain = append(plain, b[i])
	}
	return plain
}

// majorMinor is the beginning of a version that is a number.
func majorMinor(version string) (float64, bool) {
	end := strings.IndexFunc(version, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(version)
	}
	parts := strings.SplitN(version[:end], ".", 3)
	text := parts[0]
	if len(parts) > 1 && parts[0] != "" {
		text = fmt.Sprintf("%s.%s", parts[0], parts[1])
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v > 0
}

func (s *osRelease) Close() error {
	for _, f := range s.files {
		f.close()
	}
	return nil
}
