package collectors

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestCheckOptions(t *testing.T) {
	for _, test := range []struct {
		values map[string]string
		want   string
	}{
		{nil, ""},
		{map[string]string{"netdev.device-exclude": "^veth"}, ""},
		{map[string]string{"netdev.device-exclude": "(", "netdev.x": ""}, "--collector.netdev."},
		{map[string]string{"vmstat.fields": "["}, "--collector.vmstat.fields"},
		{map[string]string{"diskstats.device-include": "a", "diskstats.device-exclude": "b"}, "mutually exclusive"},
		{map[string]string{"diskstats.device-include": "a", "diskstats.device-exclude": ""}, ""},
	} {
		err := CheckOptions(test.values)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q", test.values, err, test.want)
		}
	}
	defaults := map[string]string{}
	for _, o := range Options() {
		if o.Help == "" || defaults[o.Name] != "" {
			t.Errorf("%s has no help or is there twice", o.Name)
		}
		defaults[o.Name] = o.Default
	}
	if err := CheckOptions(defaults); err != nil {
		t.Error(err)
	}
}

// openWith opens a source with options.
func (tr *tree) openWith(name string, options map[string]string) *probe {
	tr.t.Helper()
	if err := CheckOptions(options); err != nil {
		tr.t.Fatal(err)
	}
	env := tr.env()
	env.Options = options
	i := slices.IndexFunc(All(), func(s Spec) bool { return s.Name == name })
	src, err := All()[i].New(env)
	if err != nil {
		tr.t.Fatal(err)
	}
	return newProbe(tr.t, src)
}

// Each filter leaves rows out, and a row that goes and comes stays left out.
func TestFilters(t *testing.T) {
	tr := newTree(t)
	tr.write("proc/net/dev", netdevHead+netdevLine("veth1", 1)+netdevLine("wan", 2))
	tr.write("proc/net/arp", "IP address\n1 2 3 4 5 veth1\n1 2 3 4 5 wan\n")
	tr.write("proc/interrupts", "CPU0\n 1: 5 chip veth1\n 2: 6 chip wan\n")
	tr.write("proc/diskstats", "8 0 veth1 1 2 3 4 5 6 7 8 9 10 11\n8 1 wan 1 2 3 4 5 6 7 8 9 10 11\n")
	tr.write("proc/slabinfo", "slabinfo - version: 2.1\nveth1 1 2 3 4 5 : x\nwan 1 2 3 4 5 : x\n")
	tr.write("proc/vmstat", "veth1 1\nwan 2\n")
	tr.write("proc/net/snmp", "Wan: wan veth1\nWan: 1 2\n")
	tr.write("proc/1/mountinfo", "20 1 8:1 / /veth1 rw - ext4 /dev/a rw\n21 1 8:2 / /wan rw - ext4 /dev/b rw\n")
	for _, d := range []string{"veth1", "wan"} {
		tr.write("sys/class/net/"+d+"/mtu", "1500\n")
		tr.write("sys/class/power_supply/"+d+"/online", "1\n")
		tr.write("sys/class/hwmon/"+d+"/temp1_input", "1\n")
	}
	for _, test := range []struct {
		source  string
		options map[string]string
	}{
		{"netdev", map[string]string{"netdev.device-exclude": "^veth"}},
		{"netdev", map[string]string{"netdev.device-include": "^wan$"}},
		{"arp", map[string]string{"arp.device-exclude": "^veth"}},
		{"interrupts", map[string]string{"interrupts.name-exclude": "^1;chip;veth1$"}},
		{"diskstats", map[string]string{"diskstats.device-include": "^wan$"}},
		{"slabinfo", map[string]string{"slabinfo.slabs-exclude": "veth1"}},
		{"vmstat", map[string]string{"vmstat.fields": "wan"}},
		{"netstat", map[string]string{"netstat.fields": "_wan$"}},
		{"filesystem", map[string]string{"filesystem.mount-points-exclude": "/veth1$"}},
		{"netclass", map[string]string{"netclass.ignored-devices": "^veth"}},
		{"power_supply", map[string]string{"powersupply.ignored-supplies": "^veth"}},
		{"hwmon", map[string]string{"hwmon.chip-exclude": "^veth"}},
		{"hwmon", map[string]string{"hwmon.sensor-include": "^wan;"}},
	} {
		p := tr.openWith(test.source, test.options)
		p.read()
		names := strings.Join(slices.Collect(maps.Keys(p.read())), " ")
		if strings.Contains(names, "veth1") || !strings.Contains(names, "wan") {
			t.Errorf("%s with %v: got %s", test.source, test.options, names)
		}
	}
	p := tr.openWith("netdev", map[string]string{"netdev.device-exclude": "^veth"})
	p.read()
	tr.write("proc/net/dev", netdevHead+netdevLine("wan", 2))
	p.read()
	tr.write("proc/net/dev", netdevHead+netdevLine("veth1", 1)+netdevLine("wan", 2))
	if n := len(p.read()); n != len(netdevMetrics) {
		t.Errorf("got %d series, want %d", n, len(netdevMetrics))
	}
}
