package collectors

import (
	"bytes"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

var (
	timeSeconds = Metric{Name: "node_time_seconds", Type: Gauge, Unit: "seconds", Kind: Signed, Div: 1e9,
		Help: "System time in seconds since epoch (1970)."}
	timeZoneOffset = Metric{Name: "node_time_zone_offset_seconds", Type: Gauge, Unit: "seconds", Kind: Signed,
		Help: "System time zone offset in seconds."}
	bootTimeSeconds = Metric{Name: "node_boot_time_seconds", Type: Gauge, Unit: "seconds",
		Help: "Node boot time, in unixtime."}
)

// bootTimeEvery is after how many reads the boot time is looked up again even
// though no clock was stepped.
const bootTimeEvery = 60

// wallClock is the time of day and the time since boot.
type wallClock struct {
	wall, boot time.Duration // since 1970, since boot
	zone       string
	offset     int // of the zone, in seconds
}

// clock reports the time of day, the boot time and the clock source.
type clock struct {
	now  func() (wallClock, error)
	stat *file // btime is in /proc/stat, which is too dear to read for it each time

	slots    [2]int // time, boot time
	known    bool
	bootTime uint64
	hasBoot  bool
	offset   time.Duration // wall − boot when the boot time was looked up
	reads    int
	zone     zoneSet
	sources  []*clockSource
}

func newTime(env Env) (Source, error) {
	s := &clock{now: readClocks}
	if f, err := openFile(filepath.Join(env.Procfs, "stat"), 8<<10, true); err == nil {
		s.stat = f
	}
	s.sources = openClockSources(filepath.Join(env.Sysfs, "devices/system/clocksource"))
	return s, nil
}

func readClocks() (wallClock, error) {
	var wall, boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &wall); err != nil {
		return wallClock{}, fmt.Errorf("read the wall clock: %w", err)
	}
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		return wallClock{}, fmt.Errorf("read the time since boot: %w", err)
	}
	c := wallClock{wall: time.Duration(wall.Nano()), boot: time.Duration(boot.Nano())}
	c.zone, c.offset = time.Unix(0, wall.Nano()).Zone()
	return c, nil
}

func (s *clock) Read(out *Out) error {
	c, err := s.now()
	if err != nil {
		return err
	}
	if !s.known {
		s.slots = [2]int{out.Add(&timeSeconds), out.Add(&bootTimeSeconds)}
		s.known = true
	}
	out.Set(s.slots[0], int64(c.wall))
	s.zone.set(out, c.zone, c.offset)
	s.boot(out, c.wall-c.boot)
	for _, cs := range s.sources {
		cs.read(out)
	}
	return nil
}

// boot reports the kernel's boot time. The kernel derives it from the wall clock
// at each read, so it may flicker by a second while NTP slews; a difference of one
// second is therefore not a new boot time.
func (s *clock) boot(out *Out, offset time.Duration) {
	if s.stat == nil {
		return
	}
	if !s.hasBoot || s.reads%bootTimeEvery == 0 || (offset-s.offset).Abs() >= time.Second {
		s.offset = offset
		if text, err := s.stat.readInto(out); err == nil {
			if v, ok := findBtime(text); ok && (!s.hasBoot || v > s.bootTime+1 || v+1 < s.bootTime) {
				s.bootTime, s.hasBoot = v, true
			}
		}
	}
	s.reads++
	if s.hasBoot {
		out.Set(s.slots[1], int64(s.bootTime))
	}
}

// findBtime finds the row btime of /proc/stat.
func findBtime(text []byte) (v uint64, ok bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if rest, is := bytes.CutPrefix(line, []byte("btime ")); is {
			v, _, f := number(rest, 0)
			return v, f == good
		}
	}
	return 0, false
}

func (s *clock) Close() error {
	s.stat.close()
	for _, cs := range s.sources {
		cs.current.close()
		cs.available.close()
	}
	return nil
}

// zoneSet is one series for each zone name the machine went through.
type zoneSet struct {
	names []string
	slots []int
}

func (z *zoneSet) set(out *Out, name string, offset int) {
	found := -1
	for i, n := range z.names {
		if n == name {
			found = z.slots[i]
		} else {
			out.Clear(z.slots[i])
		}
	}
	if found < 0 {
		if len(z.names) == maxInfos {
			return
		}
		found = out.Add(&timeZoneOffset, Label{"time_zone", name})
		z.names, z.slots = append(z.names, name), append(z.slots, found)
	}
	out.Set(found, int64(offset))
}
