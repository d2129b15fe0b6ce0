package collectors

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

var (
	bridgePortInfo = Metric{Name: "node_bridge_port_info", Type: Gauge,
		Help: "A port of a bridge."}
	bridgePortState = Metric{Name: "node_bridge_port_state", Type: Gauge,
		Help: "State of a port: 0 disabled, 1 listening, 2 learning, 3 forwarding, 4 blocking."}
	bridgePortCost = Metric{Name: "node_bridge_port_cost", Type: Gauge,
		Help: "Cost of a path through the port, for the spanning tree."}
	bridgeLearned = Metric{Name: "node_bridge_port_learned_addresses", Type: Gauge,
		Help: "Addresses that were seen behind the port and are not yet forgotten."}
)

// Attributes of a port (enum in include/uapi/linux/if_link.h); x/sys has no names for
// them.
const (
	brportState = 1
	brportCost  = 3
	ndmsgBytes  = 12
	// ntfSelf marks an address that the interface itself holds, not its bridge.
	ntfSelf = 2
)

type bridgeRow struct {
	index   int32
	info    int32 // slots + 1
	state   int32
	cost    int32
	learned int32
	count   int64
}

// bridge reads what bridges have learned, and the state of their ports. node_exporter
// has no such source.
type bridge struct {
	nl     *netlink
	links  linkNamer
	faults faults
	rows   *table[bridgeRow]
	key    []byte
	ports  []*bridgeRow // of this read

	out  *Out // during a read
	link func(uint16, []byte)
	fdb  func(uint16, []byte)
}

func newBridge(env Env) (Source, error) {
	if !env.ContainerNetwork && sysctlNet(env) == netnsContainer {
		return nil, errContainerNet
	}
	nl, err := openNetlink(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	s := &bridge{nl: nl, faults: newFaults(env, "bridge"), rows: newTable[bridgeRow](maxInterfaces)}
	if err := s.links.open(); err != nil {
		nl.close()
		return nil, err
	}
	s.link = func(typ uint16, body []byte) {
		if typ == unix.RTM_NEWLINK {
			s.port(s.out, body)
		}
	}
	s.fdb = func(typ uint16, body []byte) {
		if typ == unix.RTM_NEWNEIGH {
			s.address(body)
		}
	}
	return s, nil
}

// Read asks for the ports, then for the addresses.
func (s *bridge) Read(out *Out) error {
	s.out = out
	s.ports = s.ports[:0]
	s.nl.begin(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	s.nl.out = append(s.nl.out, unix.AF_BRIDGE)
	s.nl.zeros(unix.SizeofIfInfomsg - 1)
	s.rows.begin()
	err := s.nl.ask(out, s.link)
	s.rows.end(func(r *bridgeRow) { r.clear(out) })
	if err != nil || len(s.ports) == 0 {
		return err
	}
	// A struct ifinfomsg, as the kernel expects of those who ask for one bridge or all.
	s.nl.begin(unix.RTM_GETNEIGH, unix.NLM_F_DUMP)
	s.nl.out = append(s.nl.out, unix.AF_BRIDGE)
	s.nl.zeros(unix.SizeofIfInfomsg - 1)
	if err := s.nl.ask(out, s.fdb); err != nil {
		return err
	}
	for _, r := range s.ports {
		out.Set(int(r.learned-1), r.count)
	}
	return nil
}

// port takes a struct ifinfomsg with its attributes.
func (s *bridge) port(out *Out, b []byte) {
	if len(b) < unix.SizeofIfInfomsg {
		s.faults.badRow(out, nil)
		return
	}
	index := int32(binary.NativeEndian.Uint32(b[4:]))
	attrs := b[unix.SizeofIfInfomsg:]
	device := cString(attribute(attrs, unix.IFLA_IFNAME))
	master, ok := num32(attribute(attrs, unix.IFLA_MASTER))
	info := attribute(attrs, unix.IFLA_PROTINFO)
	state := attribute(info, brportState)
	if len(device) == 0 || !ok || len(state) == 0 {
		return // the bridge itself
	}
	s.key = append(append(s.key[:0], device...), 0)
	if s.key = append(s.key, s.links.name(int32(master))...); s.key[len(s.key)-1] == 0 {
		return // the bridge has just gone
	}
	r, found := s.rows.find(s.key)
	if r == nil {
		s.faults.refused(out, found, device)
		return
	}
	if found == rowNew {
		d, br := Label{"device", label(device)}, Label{"bridge", label(s.key[len(device)+1:])}
		r.info, r.state = int32(out.Add(&bridgePortInfo, br, d))+1, int32(out.Add(&bridgePortState, d))+1
		r.cost, r.learned = int32(out.Add(&bridgePortCost, d))+1, int32(out.Add(&bridgeLearned, d))+1
	}
	r.index, r.count = index, 0
	s.ports = append(s.ports, r)
	out.Set(int(r.info-1), 1)
	out.Set(int(r.state-1), int64(state[0]))
	if cost, ok := num32(attribute(info, brportCost)); ok {
		out.Set(int(r.cost-1), int64(cost))
	}
}

// address takes a struct ndmsg: an address, and the port it is behind. The port's own
// are permanent.
func (s *bridge) address(b []byte) {
	if len(b) < ndmsgBytes {
		return
	}
	index := int32(binary.NativeEndian.Uint32(b[4:]))
	state, flags := binary.NativeEndian.Uint16(b[8:]), b[10]
	if state&unix.NUD_PERMANENT != 0 || flags&ntfSelf != 0 {
		return
	}
	for _, r := range s.ports {
		if r.index == index {
			r.count++
			return
		}
	}
}

func (r *bridgeRow) clear(out *Out) { clearSlots(out, r.info, r.state, r.cost, r.learned) }

func (s *bridge) Close() error {
	s.nl.close()
	s.links.close()
	return nil
}
