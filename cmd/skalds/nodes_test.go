package main

import (
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
)

func TestNodesDrain(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	state := func(want string) {
		t.Helper()
		for begin := time.Now(); time.Since(begin) < patience; {
			if n := decode[client.Node](t, call(t, "nodes", "show", "node-1", "-o", "json", "--server", d.server)); string(n.State) == want {
				return
			}
		}
		t.Fatalf("the node never was %s", want)
	}
	if a := want(t, 0, "nodes", "drain", "node-1", "--server", d.server); a.out != "node-1: draining\n" {
		t.Errorf("the answer is %q", a.out)
	}
	state("draining")
	want(t, 0, "task", "submit", "demo.echo", "--id", "t", "--server", d.server)
	if a := want(t, 0, "nodes", "undrain", "node-1", "-o", "name", "--server", d.server); a.out != "node-1\n" {
		t.Errorf("the answer is %q", a.out)
	}
	state("online")
	want(t, 0, "task", "wait", "t", "--server", d.server)
}

func TestNodesShow(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1", "--capacity", "3")
	a := want(t, 0, "nodes", "show", "node-1", "--server", d.server)
	if !strings.Contains(a.out, "room for 3, and 12 queued") || !strings.Contains(a.out, "demo.echo") {
		t.Errorf("it shows\n%s", a.out)
	}
	if n := decode[client.Node](t, want(t, 0, "nodes", "show", "node-1", "-o", "json", "--server", d.server)); n.Capacity != 3 {
		t.Errorf("as JSON it is %+v", n)
	}
	if a := want(t, 0, "nodes", "list", "-o", "name", "--server", d.server); a.out != "node-1\n" {
		t.Errorf("the names are %q", a.out)
	}
}
