package collectors

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNetclass(t *testing.T) {
	tr := newTree(t)
	for name, text := range map[string]string{"operstate": "up\n", "flags": "0x1003\n", "speed": "1000\n", "mtu": "x\n",
		"address": "02:00:00:00:00:01\n", "ifalias": "to \xff\n", "statistics/rx_nohandler": "7\n"} {
		tr.write("sys/class/net/wan/"+name, text)
	}
	tr.write("sys/class/net/bonding_masters", "bond0\n")
	p := tr.open("netclass")
	want(t, p.read(), "", map[string]float64{
		`node_network_up{device="wan"}`: 1, `node_network_flags{device="wan"}`: 0x1003,
		`node_network_speed_bytes{device="wan"}`: 125e6, `node_network_receive_nohandler_total{device="wan"}`: 7,
		`node_network_info{address="02:00:00:00:00:01",adminstate="up",device="wan",ifalias="to �",operstate="up"}`: 1})
	tr.write("sys/class/net/wan/operstate", "down\n")
	tr.write("sys/class/net/wan/flags", "0x1002\n")
	tr.write("sys/class/net/wan/speed", "-1\n")
	tr.write("sys/class/net/lan/operstate", "unknown\n")
	got := p.read()
	want(t, got, "info", map[string]float64{
		`node_network_info{address="02:00:00:00:00:01",adminstate="down",device="wan",ifalias="to �",operstate="down"}`: 1,
		`node_network_info{adminstate="unknown",device="lan",operstate="unknown"}`:                                      1})
	want(t, got, "speed", map[string]float64{`node_network_speed_bytes{device="wan"}`: -125000})
	if err := os.RemoveAll(filepath.Join(tr.dir, "sys/class/net/wan")); err != nil {
		t.Fatal(err)
	}
	want(t, p.read(), "", map[string]float64{`node_network_up{device="lan"}`: 0,
		`node_network_info{adminstate="unknown",device="lan",operstate="unknown"}`: 1})
}

func TestCpufreq(t *testing.T) {
	tr := newTree(t)
	tr.write("sys/devices/system/cpu/cpu0/online", "1\n")
	if _, err := newCpufreq(tr.env()); err == nil {
		t.Error("no frequency and no error")
	}
	tr.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1400000\n")
	tr.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "ondemand\n")
	tr.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors", "ondemand performance \n")
	tr.write("sys/devices/system/cpu/cpufreq/policy0/x", "\n")
	p := tr.open("cpufreq")
	want(t, p.read(), "", map[string]float64{`node_cpu_scaling_frequency_hertz{cpu="0"}`: 1.4e9,
		`node_cpu_scaling_governor{cpu="0",governor="ondemand"}`: 1, `node_cpu_scaling_governor{cpu="0",governor="performance"}`: 0})
	tr.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
	tr.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "<unknown>\n")
	want(t, p.read(), "", map[string]float64{
		`node_cpu_scaling_governor{cpu="0",governor="ondemand"}`: 0, `node_cpu_scaling_governor{cpu="0",governor="performance"}`: 1})
}

func TestThermal(t *testing.T) {
	tr := newTree(t)
	tr.write("sys/class/thermal/thermal_zone0/type", "cpu\n")
	tr.write("sys/class/thermal/thermal_zone0/temp", "-1500\n")
	tr.write("sys/class/thermal/cooling_device3/type", "fan\n")
	tr.write("sys/class/thermal/cooling_device3/cur_state", "2\n")
	p := tr.open("thermal_zone")
	want(t, p.read(), "", map[string]float64{`node_thermal_zone_temp{type="cpu",zone="0"}`: -1.5,
		`node_cooling_device_cur_state{name="3",type="fan"}`: 2})
	slots := p.schema.Len()
	if err := os.RemoveAll(filepath.Join(tr.dir, "sys/class/thermal/cooling_device3")); err != nil {
		t.Fatal(err)
	}
	tr.write("sys/class/thermal/thermal_zone0/temp", "")
	want(t, p.read(), "", map[string]float64{})
	tr.write("sys/class/thermal/cooling_device3/type", "fan\n")
	tr.write("sys/class/thermal/cooling_device3/cur_state", "1\n")
	want(t, p.read(), "", map[string]float64{`node_cooling_device_cur_state{name="3",type="fan"}`: 1})
	if p.schema.Len() != slots {
		t.Errorf("got %d slots, want %d", p.schema.Len(), slots)
	}
}

// A sensor keeps its series when monitors come and go and their numbers change.
func TestHwmon(t *testing.T) {
	tr := newTree(t)
	tr.write("sys/class/hwmon/hwmon0/name", "nvme\n")
	tr.write("sys/class/hwmon/hwmon0/temp1_input", "30000\n")
	tr.write("sys/class/hwmon/hwmon1/name", "CPU-Thermal\n")
	tr.write("sys/class/hwmon/hwmon1/temp1_input", "40000\n")
	tr.write("sys/class/hwmon/hwmon1/temp99999999999999999999_input", "1\n")
	tr.write("sys/class/hwmon/hwmon1/1temp", "1\n")
	tr.write("sys/class/hwmon/hwmon1/temp1input", "1\n")
	p := tr.open("hwmon")
	temp := func(chip string) string { return `node_hwmon_temp_celsius{chip="` + chip + `",sensor="temp1"}` }
	want(t, p.read(), "celsius", map[string]float64{temp("nvme"): 30, temp("cpu_thermal"): 40})
	slots := p.schema.Len()
	tr.write("sys/class/hwmon/hwmon1/temp1_input", "") // the sensor does not answer
	want(t, p.read(), "celsius", map[string]float64{temp("nvme"): 30})
	if err := os.RemoveAll(filepath.Join(tr.dir, "sys/class/hwmon/hwmon1")); err != nil {
		t.Fatal(err)
	}
	tr.write("sys/class/hwmon/hwmon7/name", "CPU-Thermal\n")
	tr.write("sys/class/hwmon/hwmon7/temp1_input", "41000\n")
	want(t, p.read(), "celsius", map[string]float64{temp("nvme"): 30, temp("cpu_thermal"): 41})
	if p.schema.Len() != slots {
		t.Errorf("got %d slots, want %d", p.schema.Len(), slots)
	}
}

func TestOSRelease(t *testing.T) {
	tr := newTree(t)
	if _, err := newOSRelease(tr.env()); err == nil {
		t.Error("no file and no error")
	}
	tr.write("usr/lib/os-release", "NAME='A \"b\"'\nID=x\nVERSION_ID=\"24.04.1\"\nVERSION=\"a\\\"b\\$c\"\nrubbish\n#ID=y\n")
	p := tr.open("os")
	want(t, p.read(), "", map[string]float64{`node_os_version{id="x",name="A \"b\""}`: 24.04,
		`node_os_info{id="x",name="A \"b\"",version="a\"b$c",version_id="24.04.1"}`: 1})
	tr.write("usr/lib/os-release", "ID=z\nVERSION_ID=rolling\nSUPPORT_END=2030-01-02\n")
	want(t, p.read(), "", map[string]float64{`node_os_info{id="z",version_id="rolling"}`: 1,
		"node_os_support_end_timestamp_seconds": 1893542400})
}

func TestDMI(t *testing.T) {
	tr := newTree(t)
	if _, err := newDMI(tr.env()); err == nil {
		t.Error("no tables and no error")
	}
	tr.write("sys/class/dmi/id/sys_vendor", "Ven\xffdor \n")
	tr.write("sys/class/dmi/id/board_name", "Board\n")
	p := tr.open("dmi")
	p.read()
	p.out.ClearAll()
	want(t, p.read(), "", map[string]float64{`node_dmi_info{board_name="Board",system_vendor="Ven�dor"}`: 1})
}

func TestParseAny(t *testing.T) {
	for _, test := range []struct {
		text string
		v    int64
		ok   bool
	}{{"0x1003", 0x1003, true}, {"0X1f", 31, true}, {"0x", 0, false}, {"0x1g", 0, false}, {"-5", -5, true},
		{"0xffffffffffffffff", -1, false}, {"12 3", 0, false}, {"", 0, false}, {"0", 0, true}} {
		v, ok := parseAny([]byte(test.text))
		if ok != test.ok || ok && v != test.v {
			t.Errorf("%q: got %d, %v", test.text, v, ok)
		}
	}
}
