"""Files of ours: bundles of header and arrays with checksums, written atomically, read without trust."""
