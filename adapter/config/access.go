package config

// Access are the flags about who may do what. The files hold the secrets' hashes.
type Access struct {
	DevicesTokens string   `name:"devices.tokens-file" help:"File with the devices' tokens (ticktier-adapter tokens makes it): pushes need one then, and get its labels. Read again when it changes." placeholder:"FILE"`
	WebConfig     string   `name:"web.config.file" help:"TLS, users and headers in the form of exporter-toolkit. With users, everything but pushes and /-/healthy and /-/ready needs one. Read again when it changes." placeholder:"FILE"`
	WebTokens     string   `name:"web.tokens-file" help:"File with tokens for reading and administering, beside the users or instead of them." placeholder:"FILE"`
	WebAdmins     []string `name:"web.admin-users" help:"Users that may administer too: delete devices, fill in, make snapshots, reload; separated by commas." placeholder:"USER"`
}

func (c *Access) validate(bad func(string, ...any)) {
	if len(c.WebAdmins) > 0 && c.WebConfig == "" {
		bad("--web.admin-users: there are no users without --web.config.file")
	}
}
