package main

import (
	"maps"
	"slices"
)

// guardSwitches take guards out, by name.
var guardSwitches = map[string]func(*guards){
	"compare":   func(g *guards) { g.noCompare = true },
	"term":      func(g *guards) { g.noTerm = true },
	"resend":    func(g *guards) { g.noResend = true },
	"sending":   func(g *guards) { g.trustFromAnswer = true },
	"drift":     func(g *guards) { g.noDrift = true },
	"read-back": func(g *guards) { g.noReadBack = true },
	"unclaim":   func(g *guards) { g.unclaimUnknown = true },
	"adopt":     func(g *guards) { g.noAdopt = true },
	"desired":   func(g *guards) { g.noDesired = true },
	"repeat":    func(g *guards) { g.noRepeat = true },
	"proof":     func(g *guards) { g.noProof = true },
	"alone":     func(g *guards) { g.noAlone = true },
	"replicas":  func(g *guards) { g.noWait = true },
	"permit":    func(g *guards) { g.noPermit = true },
	"listen":    func(g *guards) { g.noListen = true },
	"pause":     func(g *guards) { g.noPause = true },
	"slowing":   func(g *guards) { g.noSlowing = true },
	"barrier":   func(g *guards) { g.noBarrier = true },
}

func guardNames() []string { return slices.Sorted(maps.Keys(guardSwitches)) }
