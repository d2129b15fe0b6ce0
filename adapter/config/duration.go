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

func (d Duration) String() string { return model.Duration(d).String() }
