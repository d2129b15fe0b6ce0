package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is one line of the process table.
type process struct {
	pid, parent int
	name        string
	zombie      bool
}

func (p process) String() string { return fmt.Sprintf("%s (%d)", p.name, p.pid) }

// processTable reads what runs now. A process that ends meanwhile is left out.
func processTable() []process {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	var table []process
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The name is in brackets and may hold anything, so the last bracket counts.
		line := string(text)
		open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
		fields := strings.Fields(line[end+1:])
		if open < 0 || end < open || len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(line[:open]))
		parent, _ := strconv.Atoi(fields[1])
		table = append(table, process{pid: pid, parent: parent, name: line[open+1 : end], zombie: fields[0] == "Z"})
	}
	return table
}

// children returns the direct children of pid that still run.
func children(pid int) []process {
	var out []process
	for _, p := range processTable() {
		if p.parent == pid && !p.zombie {
			out = append(out, p)
		}
	}
	return out
}

// descendants returns everything that pid started, and they in turn.
func descendants(pid int) []process {
	var out []process
	for _, p := range children(pid) {
		out = append(out, p)
		out = append(out, descendants(p.pid)...)
	}
	return out
}

// running returns those of ps that still run under the same name.
func running(ps []process) []process {
	now := make(map[int]process)
	for _, p := range processTable() {
		now[p.pid] = p
	}
	var out []process
	for _, p := range ps {
		if q, ok := now[p.pid]; ok && q.name == p.name && !q.zombie {
			out = append(out, p)
		}
	}
	return out
}
