package collectors

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestTime(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/stat", "cpu 1 2\nbtime 1000\n")
	tr.write("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n")
	tr.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
	p := tr.open("time")
	now := wallClock{wall: 1500500 * time.Millisecond, boot: 500500 * time.Millisecond, zone: "CET", offset: 3600}
	p.src.(*clock).now = func() (wallClock, error) { return now, nil }
	want(t, p.read(), "", map[string]float64{
		"node_time_seconds": 1500.5, "node_boot_time_seconds": 1000,
		`node_time_zone_offset_seconds{time_zone="CET"}`:                      3600,
		`node_time_clocksource_available_info{clocksource="hpet",device="0"}`: 1,
		`node_time_clocksource_available_info{clocksource="tsc",device="0"}`:  1,
		`node_time_clocksource_current_info{clocksource="tsc",device="0"}`:    1,
	})

	// The kernel's figure flickers by a second: ours does not.
	tr.write("proc/stat", "btime 1001\n")
	for range 2 * bootTimeEvery {
		want(t, p.read(), "boot", map[string]float64{"node_boot_time_seconds": 1000})
	}
	// The clock is set: so is the boot time. Summer comes, and the TSC is unstable.
	tr.write("proc/stat", "btime 5000\n")
	tr.write("sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet \n")
	tr.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")
	now.wall += 4000 * time.Second
	now.zone, now.offset = "CEST", 7200
	got := p.read()
	want(t, got, "boot", map[string]float64{"node_boot_time_seconds": 5000})
	want(t, got, "zone", map[string]float64{`node_time_zone_offset_seconds{time_zone="CEST"}`: 7200})
	want(t, got, "clocksource", map[string]float64{
		`node_time_clocksource_available_info{clocksource="hpet",device="0"}`: 1,
		`node_time_clocksource_current_info{clocksource="hpet",device="0"}`:   1})
}

func TestTimeWithoutStat(t *testing.T) {
	got := newTree(t).open("time").read()
	want(t, got, "boot", map[string]float64{})
	if len(got) != 2 {
		t.Errorf("got %v, want the time and the zone", got)
	}
}

func TestUname(t *testing.T) {
	p := newProbe(t, &uname{})
	set := func(host string) map[string]float64 {
		var u unix.Utsname
		copy(u.Sysname[:], "Linux")
		copy(u.Nodename[:], host)
		copy(u.Domainname[:], "(none)")
		p.src.(*uname).set(p.out, &u)
		return p.present()
	}
	one := map[string]float64{`node_uname_info{domainname="(none)",nodename="one",sysname="Linux"}`: 1}
	want(t, set("one"), "", one)
	want(t, set("two"), "", map[string]float64{`node_uname_info{domainname="(none)",nodename="two",sysname="Linux"}`: 1})
	p.out.ClearAll()
	want(t, set("two"), "nodename=\"two\"", map[string]float64{`node_uname_info{domainname="(none)",nodename="two",sysname="Linux"}`: 1})
	want(t, set("one"), "", one)
	if got := p.schema.Len(); got != 2 {
		t.Errorf("got %d slots, want 2", got)
	}
	for i := range 3 * maxInfos {
		set(string(rune('A' + i)))
	}
	if got := p.schema.Len(); got != maxInfos {
		t.Errorf("got %d slots, want the cap %d", got, maxInfos)
	}
}
