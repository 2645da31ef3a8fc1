"""Builds osu_latency and osu_bw of the OSU micro-benchmarks, unchanged, for suite crosscheck. Their source is not part
of this repository; docs/crosscheck.md says where it is."""
