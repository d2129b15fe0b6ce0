package collectors

import "golang.org/x/sys/unix"

// perfEvent is one thing that the kernel counts for us (perf_event_open(2)).
type perfEvent struct {
	typ    uint32
	config uint64
	metric Metric
}

// perfGroups are the events by groups: a group is counted at the same time and read
// with one system call, so that ratios within it, such as instructions per cycle, are
// exact. What does not fit into the machine's counters at once takes turns.
var perfGroups = [...]struct {
	name   string
	events []perfEvent
}{
	{"software", []perfEvent{
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS, perfMetric("page_faults", "Number of page faults")},
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CONTEXT_SWITCHES, perfMetric("context_switches", "Number of context switches")},
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_MIGRATIONS, perfMetric("cpu_migrations", "Number of CPU process migrations")},
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS_MIN, perfMetric("minor_faults", "Number of minor page faults")},
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ, perfMetric("major_faults", "Number of major page faults")},
	}},
	{"core", []perfEvent{
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, perfMetric("cpucycles", "Number of CPU cycles (frequency scaled)")},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS, perfMetric("instructions", "Number of CPU instructions")},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_INSTRUCTIONS, perfMetric("branch_instructions", "Number of CPU branch instructions")},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES, perfMetric("branch_misses", "Number of CPU branch misses")},
	}},
	{"memory", []perfEvent{
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_REFERENCES, perfMetric("cache_refs", "Number of cache references (non frequency scaled)")},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES, perfMetric("cache_misses", "Number of cache misses")},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BUS_CYCLES, perfMetric("bus_cycles", "Number of bus cycles")},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_REF_CPU_CYCLES, perfMetric("ref_cpucycles", "Number of CPU cycles")},
	}},
	{"stalls", []perfEvent{
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, perfMetric("stalled_cycles_frontend", "Number of stalled frontend CPU cycles")},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_STALLED_CYCLES_BACKEND, perfMetric("stalled_cycles_backend", "Number of stalled backend CPU cycles")},
	}},
	{"l1", []perfEvent{
		perfCache(unix.PERF_COUNT_HW_CACHE_L1D, cacheRead, cacheHit, "cache_l1d_read_hits", "Number L1 data cache read hits"),
		perfCache(unix.PERF_COUNT_HW_CACHE_L1D, cacheRead, cacheMiss, "cache_l1d_read_misses", "Number L1 data cache read misses"),
		perfCache(unix.PERF_COUNT_HW_CACHE_L1D, cacheWrite, cacheHit, "cache_l1d_write_hits", "Number L1 data cache write hits"),
		perfCache(unix.PERF_COUNT_HW_CACHE_L1I, cacheRead, cacheMiss, "cache_l1_instr_read_misses", "Number instruction L1 instruction read misses"),
	}},
	{"ll", []perfEvent{
		perfCache(unix.PERF_COUNT_HW_CACHE_LL, cacheRead, cacheHit, "cache_ll_read_hits", "Number last level read hits"),
		perfCache(unix.PERF_COUNT_HW_CACHE_LL, cacheRead, cacheMiss, "cache_ll_read_misses", "Number last level read misses"),
		perfCache(unix.PERF_COUNT_HW_CACHE_LL, cacheWrite, cacheHit, "cache_ll_write_hits", "Number last level write hits"),
		perfCache(unix.PERF_COUNT_HW_CACHE_LL, cacheWrite, cacheMiss, "cache_ll_write_misses", "Number last level write misses"),
	}},
	{"tlb", []perfEvent{
		perfCache(unix.PERF_COUNT_HW_CACHE_DTLB, cacheRead, cacheHit, "cache_tlb_data_read_hits", "Number of data TLB read hits"),
		perfCache(unix.PERF_COUNT_HW_CACHE_DTLB, cacheRead, cacheMiss, "cache_tlb_data_read_misses", "Number of data TLB read misses"),
		perfCache(unix.PERF_COUNT_HW_CACHE_DTLB, cacheWrite, cacheHit, "cache_tlb_data_write_hits", "Number of data TLB write hits"),
		perfCache(unix.PERF_COUNT_HW_CACHE_DTLB, cacheWrite, cacheMiss, "cache_tlb_data_write_misses", "Number of data TLB write misses"),
	}},
	{"front", []perfEvent{
		perfCache(unix.PERF_COUNT_HW_CACHE_ITLB, cacheRead, cacheHit, "cache_tlb_instr_read_hits", "Number instruction TLB read hits"),
		perfCache(unix.PERF_COUNT_HW_CACHE_ITLB, cacheRead, cacheMiss, "cache_tlb_instr_read_misses", "Number instruction TLB read misses"),
		perfCache(unix.PERF_COUNT_HW_CACHE_BPU, cacheRead, cacheHit, "cache_bpu_read_hits", "Number BPU read hits"),
		perfCache(unix.PERF_COUNT_HW_CACHE_BPU, cacheRead, cacheMiss, "cache_bpu_read_misses", "Number BPU read misses"),
	}},
}

// What a cache is asked for (perf_event_open(2), PERF_TYPE_HW_CACHE).
const (
	cacheRead  = unix.PERF_COUNT_HW_CACHE_OP_READ << 8
	cacheWrite = unix.PERF_COUNT_HW_CACHE_OP_WRITE << 8
	cacheHit   = unix.PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16
	cacheMiss  = unix.PERF_COUNT_HW_CACHE_RESULT_MISS << 16
)

func perfMetric(name, help string) Metric {
	return Metric{Name: "node_perf_" + name + "_total", Type: Counter, Help: help}
}

func perfCache(cache, op, result uint64, name, help string) perfEvent {
	return perfEvent{unix.PERF_TYPE_HW_CACHE, cache | op | result, perfMetric(name, help)}
}
