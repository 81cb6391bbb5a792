package main

import "testing"

// A node whose process is asked to end gives its tasks away at once. A kill takes the whole wait for a silent node: that is for the chaos
// suite, and to be measured.
func TestBenchRecovery(t *testing.T) {
	d := startDev(t)
	t.Setenv(asProgram, "1") // of the node processes that the bench starts
	t.Setenv("KAFKA_PORT", d.kafkaPort)
	t.Setenv("REDIS_PORT", d.redisPort)
	a := want(t, 0, "bench", "--scenario", "recovery", "--fault", "term", "--tasks", "20", "-o", "json", "--server", d.server)
	if r := decode[recoveryReport](t, a); r.Tasks != 20 || r.Fault != faultTerm || r.Again.Max <= 0 {
		t.Errorf("%+v", r)
	}
}
