package config

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"
)

// Duration is a time in Prometheus' form: 90d, 36h, 1h30m, 500ms.
type Duration time.Duration

// UnmarshalText reads Prometheus' form; kong calls it.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := model.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a time such as 48h, 14d or 500ms", b)
	}
	*d = Duration(v)
	return nil
}

// String is the time in the largest units that divide it, without weeks: people write
// 14d, and know it again.
func (d Duration) String() string {
	const day = Duration(24 * time.Hour)
	if d > 0 && d%day == 0 && d%(365*day) != 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return model.Duration(d).String()
}
