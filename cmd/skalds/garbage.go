package main

import "os"

// floorBytes is how much is allocated between two runs of the garbage collector, at least. Without it a process that
// keeps little collects all the time: with 10 MB alive, each 10 MB.
const floorBytes = 64 << 20

// garbageFloor returns memory that the collector counts as alive while the process works (runtime.KeepAlive), so that
// it runs less often than a small heap makes it; a large heap is as large as without it, but for floorBytes. It is
// never touched, so the system never gives the memory. Whoever has set the collector's own variables has chosen: then
// there is none.
func garbageFloor() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, floorBytes)
}
