package config

const (
	// MaxScrapeSeries keeps what there may be within the slots of a frame.
	MaxScrapeSeries = 100_000
	// MaxScrapeBytes keeps a mistyped size from being taken.
	MaxScrapeBytes = 256 << 20
	// MinScrapeSpoolBytes is the smallest spool of which a quarter is for what was
	// scraped.
	MinScrapeSpoolBytes = 4 * MinSpoolBytes
)

// checkScrape checks what scraping needs, but for the targets themselves.
func (c *Config) checkScrape(bad func(string, ...any)) {
	c.ScrapeURL = split(c.ScrapeURL, isURL)
	if len(c.ScrapeURL) == 0 {
		return
	}
	if c.ScrapeMaxSeries < 1 || c.ScrapeMaxSeries > MaxScrapeSeries {
		bad("--scrape.max-series: %d is not between 1 and %d", c.ScrapeMaxSeries, MaxScrapeSeries)
	}
	if c.ScrapeMaxBytes < 1<<10 || c.ScrapeMaxBytes > MaxScrapeBytes {
		bad("--scrape.max-bytes: %s is not between %s and %s", c.ScrapeMaxBytes, Bytes(1<<10), Bytes(MaxScrapeBytes))
	}
	if c.ScrapeRingMaxBytes < MinRingBytes || c.ScrapeRingMaxBytes > MaxRingBytes {
		bad("--scrape.ring-max-bytes: %s is not between %s and %s", c.ScrapeRingMaxBytes, Bytes(MinRingBytes), Bytes(MaxRingBytes))
	}
	if len(c.RemoteWriteURL) == 0 {
		bad("--scrape.url: there is no --remote-write.url, and what is scraped is only pushed")
	}
	if c.SpoolDir != "" && c.SpoolMaxBytes < MinScrapeSpoolBytes {
		bad("--spool.max-bytes: %s is less than the %s that it takes with --scrape.url", c.SpoolMaxBytes, Bytes(MinScrapeSpoolBytes))
	}
}
