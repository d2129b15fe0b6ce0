package collectors

import (
	"slices"
	"testing"
)

func TestBesideTicks(t *testing.T) {
	const (
		root  = "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
		proc  = "23 22 0:20 / /proc rw - proc proc rw\n"
		sys   = "24 22 0:21 / /sys rw - sysfs sysfs rw\n"
		lxcfs = "67 23 0:40 /proc/stat /proc/stat rw,nosuid - fuse.lxcfs lxcfs rw\n"
	)
	specs := func() []*Spec {
		return []*Spec{{Name: "stat", Files: []string{"proc/stat"}}, {Name: "vmstat", Files: []string{"proc/vmstat"}},
			{Name: "cpu", Files: []string{"sys/devices/system/cpu/cpu*/online"}}, {Name: "os", Files: []string{"etc/os-release"}},
			{Name: "hwmon", Files: []string{"sys/class/hwmon/*/*"}, Blocking: true}, {Name: "timex"}}
	}
	here := Env{Procfs: "/proc", Sysfs: "/sys", Rootfs: "/"}
	for _, c := range []struct {
		name, mounts string
		env          Env
		want         []string
	}{
		{"an ordinary machine", root + proc + sys, here, nil},
		{"lxcfs", root + proc + sys + lxcfs, here, []string{"stat"}},
		{"lxcfs for all of sysfs' CPUs", root + proc + sys + "68 24 0:40 / /sys/devices/system/cpu rw - fuse.lxcfs lxcfs rw\n", here, []string{"cpu"}},
		{"below a pattern", root + proc + sys + "68 24 0:40 / /sys/devices/system/cpu/cpu0/online rw - fuse lxcfs rw\n", here, []string{"cpu"}},
		{"elsewhere", root + proc + sys + "68 24 0:40 / /sys/devices/system/cpus rw - fuse x rw\n69 23 0:41 / /proc/st rw - fuse x rw\n", here, nil},
		{"a root by NFS", "22 1 0:19 / / rw - nfs4 server:/ rw\n" + proc + sys, here, []string{"os"}},
		{"another over it", root + proc + sys + lxcfs + "70 67 0:20 /stat /proc/stat rw - proc proc rw\n", here, nil},
		{"a captured tree on a share", root + proc + sys + "71 22 0:50 / /mnt/a\\040b rw - cifs //x rw\n",
			Env{Procfs: "/mnt/a b/proc", Sysfs: "/sys", Rootfs: "/"}, []string{"stat", "vmstat"}},
		{"nothing to be seen", "rubbish\n", here, nil},
	} {
		list := specs()
		got := besideTicks([]byte(c.mounts), c.env, list)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		for _, s := range list {
			if s.Blocking != (s.Name == "hwmon" || slices.Contains(c.want, s.Name)) {
				t.Errorf("%s: %s: blocking is %v", c.name, s.Name, s.Blocking)
			}
		}
	}
}
