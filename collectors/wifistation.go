package collectors

import (
	"encoding/binary"
	"net"

	"golang.org/x/sys/unix"
)

// wifiStation are the attributes of a station that are exported (enum
// nl80211_sta_info in include/uapi/linux/nl80211.h). One that a driver does not give
// is absent.
var wifiStation = [...]struct {
	attr, older uint16 // older has 32 bits, for kernels that lack attr
	metric      Metric
}{
	{unix.NL80211_STA_INFO_CONNECTED_TIME, 0, wifiMetric("connected_seconds_total", Counter, 0, "The total number of seconds a station has been connected to an access point.")},
	{unix.NL80211_STA_INFO_INACTIVE_TIME, 0, wifiMetric("inactive_seconds", Gauge, 1e3, "The number of seconds since any wireless activity has occurred on a station.")},
	{unix.NL80211_STA_INFO_RX_BITRATE, 0, wifiMetric("receive_bits_per_second", Gauge, 0, "The current WiFi receive bitrate of a station, in bits per second.")},
	{unix.NL80211_STA_INFO_TX_BITRATE, 0, wifiMetric("transmit_bits_per_second", Gauge, 0, "The current WiFi transmit bitrate of a station, in bits per second.")},
	{unix.NL80211_STA_INFO_RX_BYTES64, unix.NL80211_STA_INFO_RX_BYTES, wifiMetric("receive_bytes_total", Counter, 0, "The total number of bytes received by a WiFi station.")},
	{unix.NL80211_STA_INFO_TX_BYTES64, unix.NL80211_STA_INFO_TX_BYTES, wifiMetric("transmit_bytes_total", Counter, 0, "The total number of bytes transmitted by a WiFi station.")},
	{unix.NL80211_STA_INFO_SIGNAL, 0, wifiMetric("signal_dbm", Gauge, 0, "The current WiFi signal strength, in decibel-milliwatts (dBm).")},
	{unix.NL80211_STA_INFO_TX_RETRIES, 0, wifiMetric("transmit_retries_total", Counter, 0, "The total number of times a station has had to retry while sending a packet.")},
	{unix.NL80211_STA_INFO_TX_FAILED, 0, wifiMetric("transmit_failed_total", Counter, 0, "The total number of times a station has failed to send a packet.")},
	{unix.NL80211_STA_INFO_BEACON_LOSS, 0, wifiMetric("beacon_loss_total", Counter, 0, "The total number of times a station has detected a beacon loss.")},
	{unix.NL80211_STA_INFO_TX_PACKETS, 0, wifiMetric("transmitted_packets_total", Counter, 0, "The total number of packets transmitted by a station.")},
	{unix.NL80211_STA_INFO_RX_PACKETS, 0, wifiMetric("received_packets_total", Counter, 0, "The total number of packets received by a station.")},
}

func wifiMetric(name string, typ Type, div float64, help string) Metric {
	return Metric{Name: "node_wifi_station_" + name, Type: typ, Kind: Signed, Div: div, Help: help}
}

// parseStation takes the attributes of a station.
func (s *wifi) parseStation(out *Out, b []byte) {
	mac, info := attribute(b, unix.NL80211_ATTR_MAC), attribute(b, unix.NL80211_ATTR_STA_INFO)
	if len(mac) != macBytes || s.device == nil {
		return
	}
	device := s.device.name[:s.device.size]
	s.key = append(append(s.key[:0], mac...), device...)
	r, state := s.stations.find(s.key)
	if r == nil {
		s.faults.refused(out, state, device)
		return
	}
	for i := range wifiStation {
		m := &wifiStation[i]
		v, ok := stationValue(m.attr, attribute(info, m.attr))
		if !ok && m.older > 0 {
			v, ok = stationValue(m.older, attribute(info, m.older))
		}
		if !ok {
			clearSlots(out, r.slots[i])
			continue
		}
		if r.slots[i] == 0 {
			r.slots[i] = int32(out.Add(&m.metric, Label{"device", label(device)},
				Label{"mac_address", net.HardwareAddr(mac).String()})) + 1
		}
		out.Set(int(r.slots[i]-1), v)
	}
}

// stationValue reads one attribute of a station.
func stationValue(attr uint16, b []byte) (int64, bool) {
	switch attr {
	case unix.NL80211_STA_INFO_SIGNAL:
		if len(b) < 1 {
			return 0, false
		}
		return int64(int8(b[0])), true
	case unix.NL80211_STA_INFO_RX_BITRATE, unix.NL80211_STA_INFO_TX_BITRATE:
		// In 100 kbit/s; the older attribute has 16 bits.
		const unit = 100_000
		if rate, ok := num32(attribute(b, unix.NL80211_RATE_INFO_BITRATE32)); ok {
			return int64(rate) * unit, true
		}
		if b = attribute(b, unix.NL80211_RATE_INFO_BITRATE); len(b) >= 2 {
			return int64(binary.NativeEndian.Uint16(b)) * unit, true
		}
		return 0, false
	case unix.NL80211_STA_INFO_RX_BYTES64, unix.NL80211_STA_INFO_TX_BYTES64:
		if len(b) < 8 {
			return 0, false
		}
		return int64(binary.NativeEndian.Uint64(b)), true
	}
	v, ok := num32(b)
	return int64(v), ok
}
