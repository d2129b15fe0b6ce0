package receive

import (
	"mime"
	"net/http"
	"strings"
)

// What the endpoint accepts, as told to who sends something else.
const (
	mediaType  = "application/x-protobuf"
	message1   = "prometheus.WriteRequest"
	message2   = "io.prometheus.write.v2.Request"
	encoding   = "snappy"
	acceptable = mediaType + ";proto=" + message2 + ", " + mediaType + ";proto=" + message1
)

// negotiate reads the headers that say what the body is. problem is what the sender
// is told with 415; the type is judged before the encoding.
func negotiate(h http.Header) (p protocol, problem string) {
	types := h.Values("Content-Type")
	if len(types) != 1 {
		return protoNone, "the request must have one Content-Type; accepted: " + acceptable
	}
	p = messageOf(types[0])
	if p == protoNone {
		return protoNone, "the Content-Type " + quote([]byte(types[0])) + " is not accepted; accepted: " + acceptable
	}
	encodings := h.Values("Content-Encoding")
	if len(encodings) != 1 || !strings.EqualFold(strings.TrimSpace(encodings[0]), encoding) {
		return p, "the Content-Encoding " + quote([]byte(strings.Join(encodings, ", "))) +
			" is not accepted; accepted: " + encoding + " (block format)"
	}
	return p, ""
}

// messageOf parses a Content-Type as RFC 9110 section 8.3.1 has it: type and parameter
// names in any case, white space around semicolons, values bare or quoted. Without a
// proto parameter it is 1.0.
func messageOf(contentType string) protocol {
	switch contentType {
	case mediaType, mediaType + ";proto=" + message1:
		return proto1
	case mediaType + ";proto=" + message2:
		return proto2
	}
	typ, params, err := mime.ParseMediaType(contentType)
	if err != nil || typ != mediaType {
		return protoNone
	}
	switch message, ok := params["proto"]; {
	case !ok, message == message1:
		return proto1
	case message == message2:
		return proto2
	}
	return protoNone
}
