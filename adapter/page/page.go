package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// policy lets the page load what the adapter itself serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// maxNames bounds the list in the document itself; scripts show the rest.
const maxNames = 1000

// mediaTypes are those of the assets, by extension. The machine's own table is not
// asked: it may lack them.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// asset is a file of the page.
type asset struct {
	body []byte
	etag string
	typ  string
}

// handler serves the page. It is safe for concurrent use.
type handler struct {
	index   *template.Template
	assets  map[string]asset // by path below /
	devices func() []string
}

// Handler serves the page on / and its assets on /assets/; anything else is not
// found. devices, which may be nil, returns the names of the devices known, in order.
func Handler(devices func() []string) http.Handler {
	if devices == nil {
		devices = func() []string { return nil }
	}
	h := &handler{assets: map[string]asset{}, devices: devices}
	h.index = template.Must(template.ParseFS(static, "static/index.html"))
	files, err := fs.Glob(static, "static/*.*")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	for _, name := range files {
		typ, ok := mediaTypes[path.Ext(name)]
		if !ok {
			continue // the document itself
		}
		body, err := static.ReadFile(name)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		sum := sha256.Sum256(body)
		h.assets["assets/"+path.Base(name)] = asset{body: body, etag: `"` + hex.EncodeToString(sum[:8]) + `"`, typ: typ}
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "the method is not allowed; use GET", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/" {
		h.serveIndex(w)
		return
	}
	a, ok := h.assets[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.Error(w, "there is no such page; the devices are on /", http.StatusNotFound)
		return
	}
	head.Set("Content-Type", a.typ)
	head.Set("ETag", a.etag)
	head.Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}

// serveIndex renders the document with the devices known now.
func (h *handler) serveIndex(w http.ResponseWriter) {
	names := h.devices()
	data := struct {
		Names []string
		More  int
	}{Names: names[:min(len(names), maxNames)], More: max(0, len(names)-maxNames)}
	var b bytes.Buffer
	if err := h.index.Execute(&b, data); err != nil {
		http.Error(w, fmt.Sprintf("rendering the page: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(b.Bytes()) //nolint:errcheck // the browser is gone
}
