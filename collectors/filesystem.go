package collectors

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mountsExclude and typesExclude are node_exporter's own defaults.
	mountsExclude = "^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)"
	typesExclude  = "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|" +
		"mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|erofs|sysfs|tracefs)$"
	// maxMounts bounds the mounts that are asked, and with them the goroutines.
	maxMounts = 512
	// mountPatience is how long the mounts of one read may take together.
	mountPatience = time.Second
	// mountStuck is the error label of a mount that does not answer.
	mountStuck = "mountpoint timeout"
)

// Places in the metrics of a mount.
const (
	fsSize = iota
	fsFree
	fsAvail
	fsFiles
	fsFilesFree
	fsReadonly
	fsError
	fsMetrics
)

var (
	filesystemMetrics = [fsMetrics]Metric{
		fsSize:      {Name: "node_filesystem_size_bytes", Type: Gauge, Unit: "bytes", Help: "Filesystem size in bytes."},
		fsFree:      {Name: "node_filesystem_free_bytes", Type: Gauge, Unit: "bytes", Help: "Filesystem free space in bytes."},
		fsAvail:     {Name: "node_filesystem_avail_bytes", Type: Gauge, Unit: "bytes", Help: "Filesystem space available to non-root users in bytes."},
		fsFiles:     {Name: "node_filesystem_files", Type: Gauge, Help: "Filesystem total file nodes."},
		fsFilesFree: {Name: "node_filesystem_files_free", Type: Gauge, Help: "Filesystem total free file nodes."},
		fsReadonly:  {Name: "node_filesystem_readonly", Type: Gauge, Help: "Filesystem read-only status."},
		fsError:     {Name: "node_filesystem_device_error", Type: Gauge, Help: "Whether an error occurred while getting statistics for the given device."},
	}
	filesystemMount = Metric{Name: "node_filesystem_mount_info", Type: Gauge, Help: "Filesystem mount information."}
)

// filesystem asks every mount for its size. A mount that does not answer, a dead NFS
// server's, is reported as an error and left alone until it does; it holds the one
// goroutine that every mount has.
type filesystem struct {
	*file
	faults        faults
	root          string
	mounts, types filter
	rows          *table[mountRow]
	key           []byte
	patience      *time.Timer
	statfs        func(path []byte, st *unix.Statfs_t) error
}

func newFilesystem(env Env) (Source, error) {
	// Where /proc is mounted with hidepid, process 1 is not to be seen.
	f, err := openFile(filepath.Join(env.Procfs, "1/mountinfo"), 16<<10, false)
	if err != nil {
		if f, err = openFile(filepath.Join(env.Procfs, "self/mountinfo"), 16<<10, false); err != nil {
			return nil, err
		}
	}
	root := env.Rootfs
	if root == "" {
		root = "/"
	}
	s := &filesystem{file: f, faults: newFaults(env, "filesystem"), root: root,
		mounts: env.filter("filesystem.mount-points", mountsExclude), types: env.filter("filesystem.fs-types", typesExclude),
		rows: newTable[mountRow](4 * maxMounts), patience: time.NewTimer(time.Hour), statfs: statfs}
	s.patience.Stop()
	return s, nil
}

func (s *filesystem) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	s.parse(out, text)
	s.patience.Reset(mountPatience)
	patient := true
	for _, i := range s.rows.order {
		r := &s.rows.rows[i].row
		if r.worker == nil {
			continue
		}
		patient = r.wait(s.patience.C, patient)
		r.report(out)
		if bad := r.err != nil; bad != r.said {
			r.said = bad
			s.faults.mount(r)
		}
	}
	s.patience.Stop()
	return nil
}

// parse asks the mounts that are to be seen. A mount that lies over another of the
// same name is the one that answers, whichever row it is.
func (s *filesystem) parse(out *Out, text []byte) {
	s.rows.begin()
	asked := 0
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if len(line) == 0 {
			continue
		}
		m, ok := parseMount(line)
		if !ok {
			s.faults.badRow(out, line)
			continue
		}
		s.key = m.appendKey(s.key[:0])
		r, state := s.rows.find(s.key)
		if r == nil {
			if state == rowOver {
				s.faults.overflow(out, line)
			}
			continue
		}
		if state == rowNew {
			r.init(m, s.root)
			r.ignored = s.mounts.ignores(r.mountpoint) || s.types.ignores(r.fstype)
		}
		if r.ignored {
			continue
		}
		if asked++; asked > maxMounts {
			s.faults.overflow(out, line)
			continue
		}
		if n := [2]uint64{m.major, m.minor}; n != r.number {
			r.info.clear(out)
			r.number = n
		}
		r.readonly = m.readonly
		r.ask(s.statfs)
	}
	s.rows.end(func(r *mountRow) { r.gone(out) })
}

// mount names a mount in the log that does not answer, or does again.
func (f *faults) mount(r *mountRow) {
	if r.err != nil {
		f.log.Warn("mount cannot be asked for its size", "collector", f.name, "mountpoint", r.mountpoint, "fstype", r.fstype, "err", r.err)
		return
	}
	f.log.Info("mount can be asked for its size again", "collector", f.name, "mountpoint", r.mountpoint)
}

func (s *filesystem) Close() error {
	for _, e := range s.rows.rows {
		e.row.stop()
	}
	s.file.close()
	return nil
}

// stripRoot is a mount point as the machine itself sees it.
func stripRoot(root, path string) string {
	if root == "/" {
		return path
	}
	if path = strings.TrimPrefix(path, strings.TrimSuffix(root, "/")); path == "" {
		return "/"
	}
	return path
}

// errMountStuck is the error of a mount that does not answer.
var errMountStuck = errors.New(mountStuck)

// errorLabel is what goes into the label device_error.
func errorLabel(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() // a constant text: this is asked for at every read
}
