package access

import (
	"net/http"
	"slices"
	"strings"
)

const basicChallenge = `Basic realm="ticktier", charset="UTF-8"`

// bearer is the token in a request's header, and whether there is one.
func bearer(r *http.Request) (string, bool) {
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(secret), ok && strings.EqualFold(scheme, "Bearer")
}

// judge says why a request has not that right, "" where it has. Readers are known by
// name and password, or by a token.
func (a *Access) judge(r *http.Request, need Right) State {
	if a.web != nil {
		if c := a.web.now.Load(); len(c.users) > 0 {
			if user, password, ok := r.BasicAuth(); ok {
				switch {
				case !c.password(user, password):
					return StateUnknown
				case need == RightAdmin && !slices.Contains(a.cfg.Admins, user):
					return stateForbidden
				}
				return ""
			}
		}
	}
	if a.readers == nil {
		if r.Header.Get("Authorization") != "" {
			return StateUnknown
		}
		return stateNone
	}
	t, state := identify(a.readers.now.Load(), r, a.cfg.Now())
	switch {
	case state == stateNone && r.Header.Get("Authorization") != "":
		return StateUnknown
	case state != StateValid:
		return state
	case !t.may(need):
		return stateForbidden
	}
	return ""
}

// Handler lets who may read at everything but the paths that are open: those check for
// themselves, or are for everybody. A path must be written as it is here, so that
// nothing else is reached by another spelling of it.
func (a *Access) Handler(next http.Handler, open ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.web != nil {
			c := a.web.now.Load()
			for name, value := range c.headers {
				w.Header().Set(name, value)
			}
			if c.limiter != nil && !slices.Contains(open, r.URL.EscapedPath()) && !c.limiter.Allow() {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "too many requests", http.StatusTooManyRequests)
				return
			}
		}
		if !slices.Contains(open, r.URL.EscapedPath()) && !a.pass(w, r, RightRead) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Admin lets who may administer at next.
func (a *Access) Admin(next http.Handler) http.Handler {
	var origin http.CrossOriginProtection // browsers send passwords for other sites' forms too
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.pass(w, r, RightAdmin) {
			return
		}
		if a.Guarded() && origin.Check(r) != nil {
			http.Error(w, "asked for by another site", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// pass answers where a request has not the right.
func (a *Access) pass(w http.ResponseWriter, r *http.Request, need Right) bool {
	if !a.Guarded() {
		return true
	}
	why := a.judge(r, need)
	if why == "" {
		return true
	}
	e := a.deny(need, why)
	if e.Status == http.StatusUnauthorized {
		if why == stateNone {
			e.Text = "a name and a password, or a token, are needed"
		}
		if a.web != nil && len(a.web.now.Load().users) > 0 {
			w.Header().Add("WWW-Authenticate", basicChallenge)
		}
		if a.readers != nil {
			w.Header().Add("WWW-Authenticate", e.Challenge)
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, e.Text, e.Status)
	return false
}
