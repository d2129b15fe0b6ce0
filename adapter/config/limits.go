package config

import "time"

// Limits are the flags about how much may come. Zero is no bound.
type Limits struct {
	DeviceSamples  int      `name:"devices.max-samples-per-second" help:"Samples a second of one device, on average over ten seconds; more is answered 429; 0 for no bound (default ${default})." default:"0" placeholder:"N"`
	DeviceSeries   int      `name:"devices.max-series" help:"Series of one device in the last one to two hours; new ones beyond are refused, those it has go on; 0 for no bound (default ${default})." default:"0" placeholder:"N"`
	DeviceLabels   int      `name:"devices.max-labels" help:"Labels of a series, at most 128 (default ${default})." default:"128" placeholder:"N"`
	DeviceAhead    Duration `name:"devices.max-ahead" help:"How far ahead of the adapter's clock a sample may be (default ${default})." default:"10m" placeholder:"TIME"`
	DeviceBehind   Duration `name:"devices.max-behind" help:"How far behind it; 0 for as far as anything is kept (default ${default})." default:"0" placeholder:"TIME"`
	AllSamples     int      `name:"receive.max-samples-per-second" help:"Samples a second of all devices; beyond, those wait that send more than their share; 0 for no bound (default ${default})." default:"0" placeholder:"N"`
	MaxConnections int      `name:"listen.max-connections" help:"Connections that may be open; more are answered 503; 0 for as many as the process may have descriptors for, less a quarter (default ${default})." default:"0" placeholder:"N"`
	ConnectionAge  Duration `name:"listen.max-connection-age" help:"How old a connection may get, a tenth more or less; it is closed after an answer; 0 for no bound (default ${default})." default:"1h" placeholder:"TIME"`
	AllSeries      int      `name:"receive.max-series" help:"Raw series in memory of all devices; new ones beyond are refused; 0 for no bound (default ${default})." default:"0" placeholder:"N"`
}

func (c *Limits) validate(bad func(string, ...any)) {
	for _, n := range []struct {
		flag string
		n    int
	}{
		{"--devices.max-samples-per-second", c.DeviceSamples}, {"--devices.max-series", c.DeviceSeries},
		{"--receive.max-samples-per-second", c.AllSamples}, {"--receive.max-series", c.AllSeries},
		{"--listen.max-connections", c.MaxConnections},
	} {
		if n.n < 0 {
			bad("%s: %d is less than 0", n.flag, n.n)
		}
	}
	if c.DeviceLabels < 1 || c.DeviceLabels > 128 {
		bad("--devices.max-labels: %d is not between 1 and 128", c.DeviceLabels)
	}
	if time.Duration(c.DeviceAhead) < time.Second {
		bad("--devices.max-ahead: %s is less than 1s", c.DeviceAhead)
	}
	if c.ConnectionAge < 0 {
		bad("--listen.max-connection-age: %s is less than 0", c.ConnectionAge)
	}
	if c.DeviceBehind < 0 {
		bad("--devices.max-behind: %s is less than 0", c.DeviceBehind)
	}
}
