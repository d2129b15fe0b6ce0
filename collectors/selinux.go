package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
)

var (
	selinuxEnabled = Metric{Name: "node_selinux_enabled", Type: Gauge, Kind: Signed,
		Help: "SELinux is enabled, 1 is true, 0 is false"}
	selinuxConfig = Metric{Name: "node_selinux_config_mode", Type: Gauge, Kind: Signed,
		Help: "Configured SELinux enforcement mode"}
	selinuxCurrent = Metric{Name: "node_selinux_current_mode", Type: Gauge, Kind: Signed,
		Help: "Current SELinux enforcement mode"}
)

// selinux tells whether SELinux is on, what it is configured to do and what it does:
// 1 is enforcing, 0 permissive, −1 disabled.
type selinux struct {
	config, enforce attr
	slots           [3]int // enabled, configured, current
	known           bool
	buf             [attrBytes]byte
}

func newSELinux(env Env) (Source, error) {
	return &selinux{config: newAttr(filepath.Join(env.Rootfs, "etc/selinux/config")),
		enforce: newAttr(filepath.Join(env.Sysfs, "fs/selinux/enforce"))}, nil
}

func (s *selinux) Read(out *Out) error {
	if !s.known {
		s.slots = [3]int{out.Add(&selinuxEnabled), out.Add(&selinuxConfig), out.Add(&selinuxCurrent)}
		s.known = true
	}
	text, errno := s.enforce.read(s.buf[:])
	out.Stats.Bytes.Add(uint64(len(text)))
	mode, ok := parseValue(text)
	if errno != 0 || !ok {
		out.Set(s.slots[0], 0)
		out.Clear(s.slots[1])
		out.Clear(s.slots[2])
		return nil
	}
	out.Set(s.slots[0], 1)
	out.Set(s.slots[2], mode)
	if text, errno = s.config.read(s.buf[:]); errno != 0 {
		return fmt.Errorf("read how SELinux is configured: %w", errno)
	}
	out.Set(s.slots[1], selinuxMode(text))
	return nil
}

// selinuxMode finds SELINUX=MODE; none means disabled, as the tools have it.
func selinuxMode(text []byte) int64 {
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		if mode, ok := bytes.CutPrefix(trim(line), []byte("SELINUX=")); ok {
			switch string(trim(mode)) {
			case "enforcing":
				return 1
			case "permissive":
				return 0
			}
		}
	}
	return -1
}

func (s *selinux) Close() error { return nil }
