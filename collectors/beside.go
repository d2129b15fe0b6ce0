package collectors

import (
	"path/filepath"
	"slices"
	"strings"
)

// servedTypes are file systems whose files are served by a program or over a network:
// a read waits for the server, and for ever where that is dead. LXC containers have
// /proc/stat and others of lxcfs.
var servedTypes = []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "lustre", "glusterfs", "ocfs2", "gfs2", "autofs"}

func served(fstype string) bool {
	return strings.HasPrefix(fstype, "fuse") || slices.Contains(servedTypes, fstype)
}

// seenMount is a mount of the tree that this process sees.
type seenMount struct {
	point  string
	served bool
}

// BesideTicks marks those specs as blocking whose files may keep a reader waiting
// because of where they are mounted, and returns their names. It looks at the mounts
// without touching any.
func BesideTicks(env Env, specs []*Spec) []string {
	text, err := ReadFile(filepath.Join(selfDir, "mountinfo"))
	if err != nil {
		return nil
	}
	return besideTicks(text, env, specs)
}

func besideTicks(mountinfo []byte, env Env, specs []*Spec) (marked []string) {
	var mounts []seenMount
	for len(mountinfo) > 0 {
		var line []byte
		line, mountinfo, _ = cutLine(mountinfo)
		if m, ok := parseMount(line); ok {
			mounts = append(mounts, seenMount{string(unescape(m.mountpoint)), served(string(m.fstype))})
		}
	}
	for _, spec := range specs {
		if spec.Blocking {
			continue
		}
		if slices.ContainsFunc(spec.Files, func(file string) bool { return onServed(mounts, env.path(file)) }) {
			spec.Blocking = true
			marked = append(marked, spec.Name)
		}
	}
	return marked
}

// path is where a file of Spec.Files is.
func (env *Env) path(file string) string {
	if rest, ok := strings.CutPrefix(file, "proc/"); ok {
		return filepath.Join(env.Procfs, rest)
	}
	if rest, ok := strings.CutPrefix(file, "sys/"); ok {
		return filepath.Join(env.Sysfs, rest)
	}
	return filepath.Join(env.Rootfs, file)
}

// onServed tells whether a file, or one of those that a pattern is for, lies on a
// served mount. Of the mounts over a path the deepest is the one that is seen, and of
// several in one place the last.
func onServed(mounts []seenMount, path string) bool {
	path, pattern := cutPattern(path)
	over, is := -1, false
	for _, m := range mounts {
		switch {
		case m.point == "/" || path == m.point || strings.HasPrefix(path, m.point+"/"):
			if len(m.point) >= over {
				over, is = len(m.point), m.served
			}
		case pattern && m.served && strings.HasPrefix(m.point, path):
			return true
		}
	}
	return is
}

// cutPattern returns what stands before the first * of a pattern.
func cutPattern(path string) (before string, pattern bool) {
	before, _, pattern = strings.Cut(path, "*")
	return before, pattern
}
