//go:build nopprof

package expose

import (
	"errors"
	"net/http"
)

func profiles(*http.ServeMux) error {
	return errors.New("--debug.pprof: this program has no profiles, they take a build without the tag nopprof")
}
