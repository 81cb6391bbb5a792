package main

import (
	"strconv"

	nodesession "github.com/skalds-go/skalds/node/session"
)

// lockFile is a node's file in SKALD_STATE_DIR, on the machine of that node: it outlives the processes that hold the
// lock on it.
type lockFile struct {
	content []byte
	holder  *process
	boots   int // of the machine
}

// openFile is the file as one process has opened it.
type openFile struct {
	*lockFile
	process *process
	guards  *guards
}

var _ nodesession.LockFile = (*openFile)(nil)

// file returns the file of a node's id.
func (cl *cluster) file(id string, p *process) *openFile {
	f, ok := cl.files[id]
	if !ok {
		f = &lockFile{}
		cl.files[id] = f
	}
	return &openFile{f, p, &cl.guards}
}

// TryLock implements [nodesession.LockFile].
func (f *openFile) TryLock() (bool, error) {
	if f.holder != nil && f.holder != f.process && !f.holder.dead && !f.guards.noProof {
		return false, nil
	}
	f.holder = f.process
	return true, nil
}

// Read implements [nodesession.LockFile].
func (f *openFile) Read() ([]byte, error) { return f.content, nil }

// Write implements [nodesession.LockFile].
func (f *openFile) Write(b []byte) error {
	f.content = b
	return nil
}

// Close implements [nodesession.LockFile].
func (f *openFile) Close() error { return nil }

// Boot implements [nodesession.LockFile].
func (f *openFile) Boot() string { return strconv.Itoa(f.boots) }
