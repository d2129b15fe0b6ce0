package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"

	"github.com/ticktier/ticktier/adapter/access"
	"github.com/ticktier/ticktier/adapter/config"
	"github.com/ticktier/ticktier/adapter/receive"
)

// writePath is where pushes go. It asks for their sender itself.
const writePath = "/api/v1/write"

// newAccess reads the files about who may do what, and says what is open.
func newAccess(cfg *config.Config, logger *slog.Logger, reg prometheus.Registerer) (*access.Access, error) {
	a, err := access.New(access.Config{
		DeviceTokens: cfg.DevicesTokens, WebTokens: cfg.WebTokens, WebConfig: cfg.WebConfig, Admins: cfg.WebAdmins,
		Logger: logger.With("part", "access"), Registerer: reg,
	})
	if err != nil {
		return nil, err
	}
	switch {
	case a.Identified() && !a.Guarded():
		logger.Warn("pushes need a token, but anyone may read, delete devices and fill in: see --web.config.file and --web.tokens-file")
	case a.Guarded() && !a.Identified():
		logger.Warn("pushes are taken from every user, under any name: see --devices.tokens-file")
	}
	return a, nil
}

// entrance tells the receiver who a push is from; nil is nobody who asks.
func entrance(a *access.Access) receive.Door {
	if a == nil {
		return nil
	}
	return receive.DoorFunc(func(r *http.Request) receive.Entry { return receive.Entry(a.Enter(r)) })
}

// serveOn serves with TLS where there is a configuration for it.
func serveOn(srv *http.Server, ln net.Listener) error {
	if srv.TLSConfig == nil {
		return srv.Serve(ln)
	}
	return srv.ServeTLS(ln, "", "")
}

// serveReload reads files again: those about access first. The ruler answers for the
// rules.
func (a *adapter) serveReload(w http.ResponseWriter, r *http.Request) {
	if err := a.access.Reload(); err != nil {
		_ = a.ruler.Reload() // it logs
		http.Error(w, "a file about access cannot be taken; what it said before holds: see the log", http.StatusInternalServerError)
		return
	}
	a.ruler.ServeHTTP(w, r)
}

// httpFlags are those of commands that ask a running adapter.
type httpFlags struct {
	File string `name:"http.config.file" help:"TLS and authentication for the adapter, in the form that promtool takes (tls_config, basic_auth, authorization, …)." placeholder:"FILE"`
}

// client is one with what the file says.
func (f *httpFlags) client() (*http.Client, error) {
	if f.File == "" {
		return http.DefaultClient, nil
	}
	c, _, err := promconfig.LoadHTTPConfigFile(f.File)
	if err != nil {
		return nil, fmt.Errorf("--http.config.file: %w", err)
	}
	client, err := promconfig.NewClientFromConfig(*c, "ticktier-adapter")
	if err != nil {
		return nil, errors.Join(errors.New("--http.config.file"), err)
	}
	return client, nil
}
