package collectors

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

const (
	timeError  = 5      // TIME_ERROR: the clock is not synchronised
	staNano    = 0x2000 // STA_NANO: offset and jitter are in nanoseconds, else microseconds
	ppmScale   = 1e6 * 65536
	microScale = 1e6
	nanoScale  = 1e9
)

func timexMetric(name, help string, t Type) Metric {
	return Metric{Name: "node_timex_" + name, Help: help, Type: t, Kind: Float}
}

var timexMetrics = [...]Metric{
	timexMetric("sync_status", "Is clock synchronized to a reliable server (1 = yes, 0 = no).", Gauge),
	timexMetric("offset_seconds", "Time offset in between local system and reference clock.", Gauge),
	timexMetric("frequency_adjustment_ratio", "Local clock frequency adjustment.", Gauge),
	timexMetric("maxerror_seconds", "Maximum error in seconds.", Gauge),
	timexMetric("estimated_error_seconds", "Estimated error in seconds.", Gauge),
	timexMetric("status", "Value of the status array bits.", Gauge),
	timexMetric("loop_time_constant", "Phase-locked loop time constant.", Gauge),
	timexMetric("tick_seconds", "Seconds between clock ticks.", Gauge),
	timexMetric("pps_frequency_hertz", "Pulse per second frequency.", Gauge),
	timexMetric("pps_jitter_seconds", "Pulse per second jitter.", Gauge),
	timexMetric("pps_shift_seconds", "Pulse per second interval duration.", Gauge),
	timexMetric("pps_stability_hertz", "Pulse per second stability, average of recent frequency changes.", Gauge),
	timexMetric("pps_jitter_total", "Pulse per second count of jitter limit exceeded events.", Counter),
	timexMetric("pps_calibration_total", "Pulse per second count of calibration intervals.", Counter),
	timexMetric("pps_error_total", "Pulse per second count of calibration errors.", Counter),
	timexMetric("pps_stability_exceeded_total", "Pulse per second count of stability limit exceeded events.", Counter),
	timexMetric("tai_offset_seconds", "International Atomic Time (TAI) offset.", Gauge),
}

// timex asks the kernel how its clock is disciplined.
type timex struct {
	slots [len(timexMetrics)]int
	known bool
	tx    unix.Timex
}

func newTimex(Env) (Source, error) { return &timex{}, nil }

func (s *timex) Read(out *Out) error {
	s.tx = unix.Timex{} // no mode bits: only read
	state, err := unix.Adjtimex(&s.tx)
	if err != nil {
		return fmt.Errorf("call adjtimex: %w", err)
	}
	s.set(out, &s.tx, state)
	return nil
}

func (s *timex) set(out *Out, tx *unix.Timex, state int) {
	if !s.known {
		for i := range timexMetrics {
			s.slots[i] = out.Add(&timexMetrics[i])
		}
		s.known = true
	}
	fine := float64(microScale)
	if tx.Status&staNano != 0 {
		fine = nanoScale
	}
	sync := 1.0
	if state == timeError {
		sync = 0
	}
	for i, v := range [len(timexMetrics)]float64{
		sync,
		float64(tx.Offset) / fine,
		1 + float64(tx.Freq)/ppmScale,
		float64(tx.Maxerror) / microScale,
		float64(tx.Esterror) / microScale,
		float64(tx.Status),
		float64(tx.Constant),
		float64(tx.Tick) / microScale,
		float64(tx.Ppsfreq) / ppmScale,
		float64(tx.Jitter) / fine,
		float64(tx.Shift),
		float64(tx.Stabil) / ppmScale,
		float64(tx.Jitcnt),
		float64(tx.Calcnt),
		float64(tx.Errcnt),
		float64(tx.Stbcnt),
		float64(tx.Tai),
	} {
		out.Set(s.slots[i], int64(math.Float64bits(v)))
	}
}

func (s *timex) Close() error { return nil }
