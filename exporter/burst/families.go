package burst

// Family is the series that share a name.
type Family struct {
	Name, Help, Unit string
	// Bounds are the upper bounds of the classic buckets, for scrapers that know no
	// others.
	Bounds []float64
	Series []Series
}

// The families, by their place in a snapshot.
const (
	busy = iota
	softirq
	tasks
	receiveBytes
	transmitBytes
	receivePackets
	transmitPackets
	processed
	backlog
	delay
	duration
	wakeup
	familyCount
)

// families has the fixed part of each. Bounds of rates are shares of what links
// carry.
func families() [familyCount]Family {
	ratio := []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1}
	bytes := []float64{0, 1e3, 1e4, 1e5, 1e6, 6e6, 12.5e6, 31e6, 62e6, 100e6, 125e6, 312e6, 1250e6}
	packets := []float64{0, 10, 100, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7}
	few := []float64{0, 1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4}
	seconds := []float64{1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1, 1}
	const coarse = " The kernel counts in steps of 10 ms: shorter bursts are undercounted, and shares of ticks as short as that are all or nothing."
	return [familyCount]Family{
		busy: {Name: "ticktier_cpu_busy_ratio", Unit: "ratio", Bounds: ratio,
			Help: "Share of each tick in which a CPU was neither idle nor waiting for IO." + coarse},
		softirq: {Name: "ticktier_cpu_softirq_ratio", Unit: "ratio", Bounds: ratio,
			Help: "Share of each tick in which a CPU served softirqs." + coarse},
		tasks: {Name: "ticktier_cpu_tasks_ratio", Unit: "ratio", Bounds: ratio,
			Help: "Share of each tick in which a CPU ran tasks, to the nanosecond. Interrupts of an idle CPU are not in it."},
		receiveBytes: {Name: "ticktier_network_receive_bytes_per_second", Bounds: bytes,
			Help: "Bytes per second received by a device, in each tick."},
		transmitBytes: {Name: "ticktier_network_transmit_bytes_per_second", Bounds: bytes,
			Help: "Bytes per second sent by a device, in each tick."},
		receivePackets: {Name: "ticktier_network_receive_packets_per_second", Bounds: packets,
			Help: "Packets per second received by a device, in each tick."},
		transmitPackets: {Name: "ticktier_network_transmit_packets_per_second", Bounds: packets,
			Help: "Packets per second sent by a device, in each tick."},
		processed: {Name: "ticktier_softnet_processed_packets", Unit: "packets", Bounds: few,
			Help: "Packets that a CPU processed in each tick."},
		backlog: {Name: "ticktier_softnet_backlog_packets", Unit: "packets", Bounds: few,
			Help: "Packets that waited in a CPU's backlog at each tick."},
		delay: {Name: "ticktier_exporter_tick_delay_seconds", Unit: "seconds", Bounds: seconds,
			Help: "Time from a tick's slot to the begin of its reads."},
		duration: {Name: "ticktier_exporter_tick_duration_seconds", Unit: "seconds", Bounds: seconds,
			Help: "Time that the reads of a tick took, and its way to the ring."},
		wakeup: {Name: "ticktier_exporter_wakeup_delay_seconds", Unit: "seconds", Bounds: seconds,
			Help: "Time from when the tick thread was to wake until it did."},
	}
}
