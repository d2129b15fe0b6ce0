package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestIndex(t *testing.T) {
	w := get(Handler(func() []string { return []string{"router-1", `<img src=x onerror="alert(1)">`} }), http.MethodGet, "/")
	body := w.Body.String()
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
	if !strings.Contains(body, "router-1") || !strings.Contains(body, "2 devices") {
		t.Errorf("the devices are not named:\n%s", body)
	}
	if strings.Contains(body, "<img src=x") || !strings.Contains(body, "&lt;img") {
		t.Errorf("a name is markup:\n%s", body)
	}
}

func TestEmptyIndex(t *testing.T) {
	for name, h := range map[string]http.Handler{"nil": Handler(nil), "none": Handler(func() []string { return nil })} {
		w := get(h, http.MethodGet, "/")
		if w.Code != 200 || !strings.Contains(w.Body.String(), "0 devices") {
			t.Errorf("%s: status %d:\n%s", name, w.Code, w.Body)
		}
	}
}

func TestManyDevices(t *testing.T) {
	body := get(Handler(func() (names []string) {
		for i := range maxNames + 7 {
			names = append(names, fmt.Sprint("r", i))
		}
		return names
	}), http.MethodGet, "/").Body.String()
	if n := strings.Count(body, `class="card"`); n != maxNames || !strings.Contains(body, "and 7 more") {
		t.Errorf("%d devices are listed", n)
	}
}

// comments of a script, as far as they hold addresses.
var comments = regexp.MustCompile(`(?m)(^\*|//|/\*).*https://.*$`)

// TestSelfContained: everything the page loads is served here, and its policy allows
// nothing from elsewhere.
func TestSelfContained(t *testing.T) {
	h := Handler(nil)
	queue, seen := []string{"/"}, map[string]bool{}
	refs := regexp.MustCompile(`(?:src|href)="(assets/[^"]+)"|from "\./([^"]+)"`)
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		w := get(h, http.MethodGet, path)
		if w.Code != 200 {
			t.Errorf("%s: status %d", path, w.Code)
		}
		csp := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: the type may be guessed", path)
		}
		body := w.Body.String()
		if path == "/assets/uPlot.js" {
			body = comments.ReplaceAllString(body, "") // it names sources there
		}
		for _, bad := range []string{"https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "<style", "onclick="} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: has %s", path, bad)
			}
		}
		for _, m := range refs.FindAllStringSubmatch(body, -1) {
			if m[1] != "" {
				queue = append(queue, "/"+m[1])
			} else {
				queue = append(queue, "/assets/"+m[2])
			}
		}
	}
	if len(seen) < 6 {
		t.Errorf("only %v were found", seen)
	}
}

func TestAssets(t *testing.T) {
	h := Handler(nil)
	for path, typ := range map[string]string{
		"/assets/main.js": "text/javascript; charset=utf-8", "/assets/page.css": "text/css; charset=utf-8", "/assets/icon.svg": "image/svg+xml", "/assets/uPlot.LICENSE.txt": "text/plain; charset=utf-8",
	} {
		w := get(h, http.MethodGet, path)
		if w.Code != 200 || w.Header().Get("Content-Type") != typ || w.Body.Len() == 0 {
			t.Errorf("%s: status %d, type %q", path, w.Code, w.Header().Get("Content-Type"))
		}
		if w := get(h, http.MethodGet, path, "If-None-Match", w.Header().Get("ETag")); w.Code != 304 {
			t.Errorf("%s with its ETag: status %d", path, w.Code)
		}
		if w := get(h, http.MethodHead, path); w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("HEAD %s: status %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
}

func TestRefusals(t *testing.T) {
	h := Handler(nil)
	for _, path := range []string{"/nothing", "/assets/", "/assets/index.html", "/assets/../page.go", "/static/main.js", "/assets/main.js/"} {
		if w := get(h, http.MethodGet, path); w.Code != 404 {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
	if w := get(h, http.MethodPost, "/"); w.Code != 405 || w.Header().Get("Allow") == "" {
		t.Errorf("POST: status %d", w.Code)
	}
}
