package collectors

// powerFields are the attributes of class/power_supply/NAME
// (Documentation/ABI/testing/sysfs-class-power) by what the kernel's number is
// divided by; a name after the slash is the metric's where it differs.
var powerFields = []struct {
	div   float64
	files [][2]string
}{
	{0, [][2]string{{"authentic"}, {"calibrate"}, {"capacity"}, {"capacity_alert_max"}, {"capacity_alert_min"},
		{"cycle_count", "cyclecount"}, {"online"}, {"present"}, {"time_to_empty_now", "time_to_empty_seconds"},
		{"time_to_full_now", "time_to_full_seconds"}}},
	{1e6, [][2]string{{"current_boot"}, {"current_max"}, {"current_now", "current_ampere"}, {"energy_empty"},
		{"energy_empty_design"}, {"energy_full"}, {"energy_full_design"}, {"energy_now", "energy_watthour"},
		{"voltage_boot"}, {"voltage_max"}, {"voltage_max_design"}, {"voltage_min"}, {"voltage_min_design"},
		{"voltage_now", "voltage_volt"}, {"voltage_ocv"}, {"charge_control_limit"}, {"charge_control_limit_max"},
		{"charge_counter"}, {"charge_empty"}, {"charge_empty_design"}, {"charge_full"}, {"charge_full_design"},
		{"charge_now", "charge_ampere"}, {"charge_term_current"}, {"constant_charge_current"},
		{"constant_charge_current_max"}, {"constant_charge_voltage"}, {"constant_charge_voltage_max"},
		{"precharge_current"}, {"input_current_limit"}, {"power_now", "power_watt"}}},
	{10, [][2]string{{"temp", "temp_celsius"}, {"temp_alert_max", "temp_alert_max_celsius"},
		{"temp_alert_min", "temp_alert_min_celsius"}, {"temp_ambient", "temp_ambient_celsius"},
		{"temp_ambient_max", "temp_ambient_max_celsius"}, {"temp_ambient_min", "temp_ambient_min_celsius"},
		{"temp_max", "temp_max_celsius"}, {"temp_min", "temp_min_celsius"}}},
}

func newPowerSupply(env Env) (Source, error) {
	c := &class{dir: "class/power_supply", label: "power_supply", ignored: "powersupply.ignored-supplies",
		info: &Metric{Name: "node_power_supply_info", Type: Gauge,
			Help: "info of /sys/class/power_supply/<power_supply>."},
		texts: []string{"capacity_level", "charge_type", "health", "manufacturer", "model_name", "serial_number",
			"status", "technology", "type", "usb_type", "scope"}}
	for _, f := range powerFields {
		for _, file := range f.files {
			name := firstOf(file[1], file[0])
			c.nums = append(c.nums, classNum{file[0], &Metric{Name: "node_power_supply_" + name, Type: Gauge,
				Kind: Signed, Div: f.div, Help: name + " value of /sys/class/power_supply/<power_supply>."}})
		}
	}
	return newClassSource(env, c)
}
