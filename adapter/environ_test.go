package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestUnknownVariables(t *testing.T) {
	t.Setenv("TICKTIER_ADAPTER_DATA_DIRR", "x")
	t.Setenv("TICKTIER_ADAPTER_DATA_DIR", t.TempDir())
	t.Setenv("TICKTIER_ADAPTER_RETENTION_5M", "14d")
	var out bytes.Buffer
	if code := run(t.Context(), []string{"--check-config"}, &out, &out); code != 0 || strings.Count(out.String(), "changes nothing") != 1 ||
		!strings.Contains(out.String(), "TICKTIER_ADAPTER_DATA_DIRR ") {
		t.Errorf("%d: %s", code, &out)
	}
}
