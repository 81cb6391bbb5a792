package main

import (
	"strconv"

	"github.com/skalds-go/skalds/node"
)

// lockFile is a node's file in SKALD_STATE_DIR, on the machine of that node: it outlives the processes that hold the lock on it.
type lockFile struct {
	content []byte
	holder  *process
	boots   int // of the machine
}

// openFile is the file as one process has it.
type openFile struct {
	*lockFile
	process *process
	guards  *guards
}

var _ node.StateFile = (*openFile)(nil)

// file gives the file of a node's id.
func (cl *cluster) file(id string, p *process) *openFile {
	f, ok := cl.files[id]
	if !ok {
		f = &lockFile{}
		cl.files[id] = f
	}
	return &openFile{f, p, &cl.guards}
}

// TryLock implements [node.StateFile].
func (f *openFile) TryLock() bool {
	if f.holder != nil && f.holder != f.process && !f.holder.dead && !f.guards.noProof {
		return false
	}
	f.holder = f.process
	return true
}

// Read implements [node.StateFile].
func (f *openFile) Read() []byte { return f.content }

// Write implements [node.StateFile].
func (f *openFile) Write(b []byte) { f.content = b }

// Boot implements [node.StateFile].
func (f *openFile) Boot() string { return strconv.Itoa(f.boots) }
