// Package config reads the configuration of a Skalds process from its
// environment: one struct per process ([Controller], [Node], [Dev], [Client]),
// each with a Load function, and a Validate method for a program that fills one in itself.
//
// Invariants:
//
//   - The environment variable, the default and the range of a field stand in
//     its tags and nowhere else; .env.example is tested against them.
//   - A variable that is set to the empty string counts as not set.
//   - Every problem of a configuration is in one [Error], so that a person
//     repairs it in one go. Each names the variable, what it holds and what is
//     wanted; a secret is shown as ***.
//   - A secret NAME may stand in the file that NAME_FILE names instead.
//   - Words that choose from a list are read without regard to case.
//   - A struct that a Load function returned is complete and valid: no reader
//     of it fills in a default again.
//
// The tags of a field are envconfig (the variable), default, range (lowest and
// highest value, inclusive), syntax (a rule for text), words (all allowed words), alias (an older name of
// the variable), follows (the variable whose value is the default), times (how many
// times that value) and dev (the default in `skalds dev`; - for what `skalds dev` gives by itself).
//
// The Load functions read the process's environment and the files it names;
// they keep nothing and start nothing. The structs hold no references that a
// process changes, so they may be copied and shared.
package config
