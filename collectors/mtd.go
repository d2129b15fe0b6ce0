package collectors

import "bytes"

// newMTD reads class/mtd: the flash that a router boots from and its wear
// (Documentation/ABI/testing/sysfs-class-mtd). The nodes mtdNro are the same again.
func newMTD(env Env) (Source, error) {
	num := func(file, name, help string, t Type) classNum {
		return classNum{file, &Metric{Name: "node_mtd_" + name, Type: t, Kind: Signed, Help: help}}
	}
	return newClassSource(env, &class{dir: "class/mtd", label: "device",
		info: &Metric{Name: "node_mtd_info", Type: Gauge,
			Help: "Non-numeric data from /sys/class/mtd/<device>, value is always 1."},
		texts: []string{"name", "type"},
		nums: []classNum{
			num("size", "size_bytes", "Size of the partition in bytes.", Gauge),
			num("erasesize", "erase_size_bytes", "Size of an erase block in bytes.", Gauge),
			num("bad_blocks", "bad_blocks", "Number of bad blocks.", Gauge),
			num("bbt_blocks", "bad_block_table_blocks", "Number of blocks that hold the table of bad blocks.", Gauge),
			num("corrected_bits", "corrected_bits_total", "Number of bits that were corrected.", Counter),
			num("ecc_failures", "ecc_failures_total", "Number of reads that could not be corrected.", Counter),
			num("bitflip_threshold", "bitflip_threshold",
				"Number of bit flips in a step from which on a block is to be refreshed.", Gauge),
		},
		skip: func(name []byte) bool { return bytes.HasSuffix(name, []byte("ro")) },
	})
}
