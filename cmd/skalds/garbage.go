package main

import "os"

// floorBytes is how much is allocated between two runs of the garbage collector, at least. Without it a process that keeps little collects all
// the time: with 10 MB alive, each 10 MB.
const floorBytes = 64 << 20

// floor is what the collector counts as alive, and never touches: the memory is the system's until it is written to.
var floor []byte

// setGarbageFloor has the collector run less often than a small heap makes it. A large heap is as large as without it, but for floorBytes.
// Whoever has set the collector's own variables has chosen.
func setGarbageFloor() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		floor = make([]byte, floorBytes)
	}
}
