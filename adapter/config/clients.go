package config

// Clients is how much one client of the query API may use.
type Clients struct {
	ClientBy          string   `name:"query.client-by" help:"What tells clients apart: credentials (the user or the token that a request brings; of one without, its address), address, or forwarded (as credentials, with the last address of X-Forwarded-For; behind a proxy only) (default ${default})." enum:"credentials,address,forwarded" default:"credentials" placeholder:"WHAT"`
	ClientConcurrency int      `name:"query.client-max-concurrency" help:"Most requests of a client at a time; more wait; 0 for no limit (default ${default})." default:"16" placeholder:"N"`
	ClientSamples     int64    `name:"query.client-max-samples" help:"Most samples that a client's requests may read in a minute, on average; 0 for no limit (default ${default})." default:"0" placeholder:"N"`
	ClientSeries      int64    `name:"query.client-max-series" help:"Most series that they may select in a minute, on average; 0 for no limit (default ${default})." default:"0" placeholder:"N"`
	ClientTime        Duration `name:"query.client-max-time" help:"Longest that they may take in a minute, on average, added up; 0 for no limit (default ${default})." default:"0s" placeholder:"TIME"`
	ClientBytes       int64    `name:"query.client-max-response-bytes" help:"Most bytes that the answers to them may have in a minute, on average, before compression; 0 for no limit (default ${default})." default:"0" placeholder:"N"`
}

// validate says what is wrong, by the names of the flags.
func (c *Clients) validate(bad func(string, ...any)) {
	for flag, n := range map[string]int64{
		"--query.client-max-concurrency":    int64(c.ClientConcurrency),
		"--query.client-max-samples":        c.ClientSamples,
		"--query.client-max-series":         c.ClientSeries,
		"--query.client-max-time":           int64(c.ClientTime),
		"--query.client-max-response-bytes": c.ClientBytes,
	} {
		if n < 0 {
			bad("%s: %d is less than 0", flag, n)
		}
	}
}
