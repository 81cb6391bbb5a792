package fleet_test

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
)

// hear observes a heartbeat over Kafka and reports whether it is confirmed.
func hear(f *fleet.Fleet, at time.Duration, counter int64) bool {
	n := beat("n1", "i1", counter)
	ok, _ := f.ObserveKafka(&n, at)
	return ok
}

func hold(f *fleet.Fleet) {
	f.Reserve([]fleet.Claim{claim(n1, 1)}, 0)
	f.Sent([]string{"c1"}, 0)
}

// A heartbeat over Kafka starts the wait anew, whatever the registry shows meanwhile: a standing counter, or no key.
func TestAHeartbeatOverKafkaStartsTheWaitAgain(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]registry.Snapshot{
		"standing": snapshot("r", beat("n1", "i1", 1)), "missing": snapshot("r"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet()
			look(f, 0, snapshot("r", beat("n1", "i1", 1)))
			hold(f)
			last := time.Duration(0)
			for at := time.Second; at <= time.Minute; at += time.Second {
				if !hear(f, at, int64(at/time.Second)+1) {
					t.Fatalf("the heartbeat at %s is not confirmed", at)
				}
				last = at
				if lost := look(f, at+500*time.Millisecond, shown); len(lost) != 0 {
					t.Fatalf("reassigned at %s", at)
				}
				if nodes, _ := f.View(at + stale); len(nodes) != 1 {
					t.Fatalf("it takes no work at %s", at)
				}
			}
			if nodes, _ := f.View(last + stale + 1); len(nodes) != 0 {
				t.Error("it takes work three intervals after its last heartbeat")
			}
			if lost := look(f, last+lostTimeout, shown); len(lost) != 0 {
				t.Error("reassigned before the wait was over")
			}
			if lost := look(f, last+lostTimeout+1, shown); len(lost) != 1 {
				t.Error("not reassigned when the wait was over")
			}
		})
	}
}

// An older heartbeat, a repeated one, and one of an incarnation that is gone are not confirmed.
func TestWhichHeartbeatsOverKafkaAreNotConfirmed(t *testing.T) {
	t.Parallel()
	f := newFleet()
	if !hear(f, 0, 5) {
		t.Fatal("the first heartbeat of an unknown node is not confirmed")
	}
	if hear(f, 1, 5) || hear(f, 1, 4) {
		t.Error("a repeated or older heartbeat is confirmed")
	}
	if !hear(f, 1, 6) {
		t.Error("the next heartbeat is not confirmed")
	}
	hold(f)
	f.Reassign(n1, 0)
	if hear(f, 2, 7) {
		t.Error("a heartbeat of an incarnation that was reassigned is confirmed")
	}
}

// A registry that shows an old counter of a node that speaks over Kafka does not make it look alive, and does not bring
// back what it said.
func TestAnOldCounterInTheRegistrySaysNothing(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	hold(f)
	n := beat("n1", "i1", 9)
	n.Capacity = 7
	f.ObserveKafka(&n, time.Second)
	for at := 2 * time.Second; at < time.Second+lostTimeout; at += time.Second {
		look(f, at, snapshot("r", beat("n1", "i1", 1)))
	}
	if nodes, _ := f.View(2 * time.Second); len(nodes) != 1 || nodes[0].Capacity != 7 {
		t.Errorf("it is seen as %+v", nodes)
	}
	if lost := look(f, time.Second+lostTimeout+1, snapshot("r", beat("n1", "i1", 1))); len(lost) != 1 {
		t.Error("a node that died is not reassigned while its old counter stands in the registry")
	}
}

// While the registry cannot be read nothing is reassigned, and the waits start again when it can.
func TestNothingIsReassignedWithoutTheRegistry(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	hold(f)
	f.RegistryFailed()
	hear(f, time.Second, 2)
	if nodes, _ := f.View(time.Second); len(nodes) != 1 {
		t.Error("a node that is heard over Kafka takes no work")
	}
	if lost := look(f, time.Hour, snapshot("r", beat("n1", "i1", 1))); len(lost) != 0 {
		t.Error("reassigned on the first read after the outage")
	}
	if lost := look(f, time.Hour+lostTimeout+time.Second, snapshot("r", beat("n1", "i1", 1))); len(lost) != 1 {
		t.Error("not reassigned a whole wait later")
	}
}

// An older leader may confirm a node until this one's term is on its partition: the wait begins no earlier.
func TestTheWaitBeginsWhenTheTermIsAnnounced(t *testing.T) {
	t.Parallel()
	f := newFleet()
	first := snapshot("r", beat("n1", "i1", 1))
	f.Observe(first, 0, 0)
	hold(f)
	if _, lost := f.Observe(first, lostTimeout+1, lostTimeout+1); len(lost) != 0 {
		t.Fatal("reassigned before it could know of this leader")
	}
	unannounced := f.Unannounced()
	if len(unannounced) != 1 || unannounced[0].Key != n1 {
		t.Fatalf("unannounced: %v", unannounced)
	}
	f.Announced([]fleet.Key{n1}, lostTimeout)
	if len(f.Unannounced()) != 0 {
		t.Error("it is to be announced again")
	}
	if _, lost := f.Observe(first, 2*lostTimeout, 2*lostTimeout); len(lost) != 0 {
		t.Error("reassigned before the wait was over")
	}
	if _, lost := f.Observe(first, 2*lostTimeout+1, 2*lostTimeout+1); len(lost) != 1 {
		t.Error("not reassigned")
	}
}
