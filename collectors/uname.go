package collectors

import (
	"fmt"

	"golang.org/x/sys/unix"
)

var unameInfo = Metric{Name: "node_uname_info", Type: Gauge,
	Help: "Labeled system information as provided by the uname system call."}

// uname asks the kernel by a system call: it has no file, so it speaks of this
// machine whatever the roots are.
type uname struct {
	last unix.Utsname
	info infoSet
}

func newUname(Env) (Source, error) { return &uname{}, nil }

func (s *uname) Read(out *Out) error {
	var now unix.Utsname
	if err := unix.Uname(&now); err != nil {
		return fmt.Errorf("call uname: %w", err)
	}
	s.set(out, &now)
	return nil
}

func (s *uname) set(out *Out, now *unix.Utsname) {
	if s.info.active > 0 && *now == s.last {
		s.info.keep(out)
		return
	}
	s.last = *now
	s.info.set(out, &unameInfo, []Label{
		{"sysname", label(cString(now.Sysname[:]))},
		{"release", label(cString(now.Release[:]))},
		{"version", label(cString(now.Version[:]))},
		{"machine", label(cString(now.Machine[:]))},
		{"nodename", label(cString(now.Nodename[:]))},
		{"domainname", label(cString(now.Domainname[:]))},
	})
}

func (s *uname) Close() error { return nil }

// cString cuts b at its first zero byte.
func cString(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}
