package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Page is an open page. It is safe for concurrent use.
type Page struct {
	browser *Browser
	session string

	mu       sync.Mutex
	console  []string
	requests []string
}

// Size is that of a window in CSS pixels.
type Size struct {
	Width, Height int
	Phone         bool // touched, not pointed at
	Dark          bool
}

type object = map[string]any

// Open opens url in a window of a size.
func (b *Browser) Open(ctx context.Context, url string, size Size) (*Page, error) {
	var target struct{ TargetID string }
	if err := b.call(ctx, "", "Target.createTarget", object{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := b.call(ctx, "", "Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{browser: b, session: attached.SessionID}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	scheme := "light"
	if size.Dark {
		scheme = "dark"
	}
	for _, c := range []struct {
		method string
		params object
	}{
		{"Page.enable", nil}, {"Runtime.enable", nil}, {"Log.enable", nil}, {"Network.enable", nil},
		{"Emulation.setDeviceMetricsOverride", object{"width": size.Width, "height": size.Height, "deviceScaleFactor": 1, "mobile": size.Phone}},
		{"Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}},
		{"Page.navigate", object{"url": url}},
	} {
		if err := p.call(ctx, c.method, c.params, nil); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Page) call(ctx context.Context, method string, params, result any) error {
	if params == nil || params.(object) == nil {
		params = object{}
	}
	return p.browser.call(ctx, p.session, method, params, result)
}

// event takes in what the page says by itself.
func (p *Page) event(method string, params json.RawMessage) {
	var v struct {
		Type string
		Args []struct {
			Value       any
			Description string
		}
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry   struct{ Level, Text, URL string }
		Request struct{ URL string }
	}
	if json.Unmarshal(params, &v) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method {
	case "Runtime.consoleAPICalled":
		line := v.Type + ":"
		for _, a := range v.Args {
			line += fmt.Sprintf(" %v%s", a.Value, a.Description)
		}
		p.console = append(p.console, line)
	case "Runtime.exceptionThrown":
		p.console = append(p.console, "exception: "+v.ExceptionDetails.Text+" "+v.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		p.console = append(p.console, v.Entry.Level+": "+v.Entry.Text+" "+v.Entry.URL)
	case "Network.requestWillBeSent":
		p.requests = append(p.requests, v.Request.URL)
	}
}

// Console is what the page's console said so far.
func (p *Page) Console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.console...)
}

// Requests are the addresses that the page asked for so far.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Eval runs an expression in the page, waits if it is a promise, and decodes its value
// into result, which may be nil.
func (p *Page) Eval(ctx context.Context, script string, result any) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := p.call(ctx, "Runtime.evaluate", object{"expression": script, "returnByValue": true, "awaitPromise": true}, &got)
	if err != nil {
		return err
	}
	if e := got.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s %s", script, e.Text, e.Exception.Description)
	}
	if result == nil || len(got.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(got.Result.Value, result)
}

// Wait waits until an expression is true, and otherwise says what the page shows.
func (p *Page) Wait(ctx context.Context, script string) error {
	for {
		var ok bool
		err := p.Eval(ctx, "Boolean("+script+")", &ok)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			var shown string
			p.Eval(late, "location.hash + '\\n' + document.body.innerText", &shown) //nolint:errcheck // the first error tells more
			return fmt.Errorf("never true: %s (%w); the page shows:\n%.2000s", script, err, shown)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Go changes the part of the address behind the #.
func (p *Page) Go(ctx context.Context, hash string) error {
	text, err := json.Marshal(hash)
	if err != nil {
		return err
	}
	return p.Eval(ctx, "location.hash = "+string(text), nil)
}

// Key presses a key as a keyboard would: "Tab", "Enter", "ArrowLeft", "+", "a".
func (p *Page) Key(ctx context.Context, key string) error {
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	down := object{"type": "keyDown", "key": key, "windowsVirtualKeyCode": codes[key]}
	switch {
	case len(key) == 1:
		down["text"] = key
	case key == "Enter":
		down["text"] = "\r"
	}
	if err := p.call(ctx, "Input.dispatchKeyEvent", down, nil); err != nil {
		return err
	}
	return p.call(ctx, "Input.dispatchKeyEvent", object{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// Type types a text into what has the focus.
func (p *Page) Type(ctx context.Context, text string) error {
	return p.call(ctx, "Input.insertText", object{"text": text}, nil)
}

// Drag presses the mouse at one place, moves and lets go at another. Where both are
// the same it is a click.
func (p *Page) Drag(ctx context.Context, x1, y1, x2, y2 float64) error {
	for _, e := range []object{
		{"type": "mouseMoved", "x": x1, "y": y1},
		{"type": "mousePressed", "x": x1, "y": y1, "button": "left", "buttons": 1, "clickCount": 1},
		{"type": "mouseMoved", "x": (x1 + x2) / 2, "y": (y1 + y2) / 2, "button": "left", "buttons": 1},
		{"type": "mouseMoved", "x": x2, "y": y2, "button": "left", "buttons": 1},
		{"type": "mouseReleased", "x": x2, "y": y2, "button": "left", "clickCount": 1},
	} {
		if err := p.call(ctx, "Input.dispatchMouseEvent", e, nil); err != nil {
			return err
		}
	}
	return nil
}

// Shot writes a picture of the window to a file, if its name is not empty.
func (p *Page) Shot(ctx context.Context, file string) error {
	var got struct{ Data string }
	if err := p.call(ctx, "Page.captureScreenshot", object{"format": "png"}, &got); err != nil || file == "" {
		return err
	}
	png, err := base64.StdEncoding.DecodeString(got.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644)
}

// Elsewhere are the requests that do not go to an address that begins with origin.
func (p *Page) Elsewhere(origin string) (out []string) {
	for _, r := range p.Requests() {
		if !strings.HasPrefix(r, origin) && !strings.HasPrefix(r, "data:") && r != "about:blank" {
			out = append(out, r)
		}
	}
	return out
}
