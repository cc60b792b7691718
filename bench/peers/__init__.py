"""Other programs that the benchmarks measure beside Playhead."""
