package collectors

import "path/filepath"

var softirqsTotal = Metric{Name: "node_softirqs_functions_total", Type: Counter,
	Help: "Softirq counts per CPU."}

type softirqs struct {
	*file
	matrix matrix
}

// newSoftirqs opens softirqs: one column for each possible CPU, ten rows
// (show_softirqs in fs/proc/softirqs.c). Rows that stay zero are exported: they are
// few, and their names are fixed.
func newSoftirqs(env Env) (Source, error) {
	f, err := openFile(filepath.Join(env.Procfs, "softirqs"), 4<<10, true)
	if err != nil {
		return nil, err
	}
	return &softirqs{file: f, matrix: softirqsMatrix(env, f.path)}, nil
}

func softirqsMatrix(env Env, path string) matrix {
	return matrix{
		path:   path,
		faults: newFaults(env, "softirqs"),
		metric: &softirqsTotal,
		labels: func(name, _ []byte) []Label { return []Label{{"type", label(name)}} },
		rows:   newTable[matrixRow](64),
	}
}

func (s *softirqs) Read(out *Out) error {
	text, err := s.file.readInto(out)
	if err != nil {
		return err
	}
	return s.matrix.parse(out, text)
}
