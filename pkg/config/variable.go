package config

import "slices"

// Variable is one environment variable that a Skalds process reads.
type Variable struct {
	// Name is the variable's name.
	Name string
	// Default is what an unset variable stands for; empty for none, and where
	// the default follows another variable.
	Default string
	// Follows is the variable whose value is the default, or that many times the
	// value, as in "4 x NODE_CAPACITY"; empty for none.
	Follows string
	// Of is the variable that this one is another way to set: an alias or the
	// name of a file that holds the value. Empty for all others.
	Of string
	// Processes are the processes that read it: controller, node, dev, client.
	Processes []string
	// Range is the lowest and the highest value, "1..65535"; empty for none.
	Range string
	// Secret says that the value is never shown.
	Secret bool
}

// Variables returns every variable of every process, each once, in the order of
// the structs.
func Variables() []Variable {
	var all []Variable
	add := func(v Variable, process string) {
		i := slices.IndexFunc(all, func(known Variable) bool { return known.Name == v.Name })
		if i < 0 {
			i = len(all)
			all = append(all, v)
		}
		if !slices.Contains(all[i].Processes, process) {
			all[i].Processes = append(all[i].Processes, process)
		}
	}
	for _, process := range []struct {
		name   string
		fields []field
	}{{"controller", fields(&Controller{})}, {"node", fields(&Node{})}, {"dev", new(Dev).fields()}, {"client", fields(&Client{})}} {
		for _, f := range process.fields {
			add(Variable{
				Name: f.variable, Default: f.fallback, Follows: f.followed(), Range: f.limits, Secret: f.secret(),
			}, process.name)
			if f.alias != "" {
				add(Variable{Name: f.alias, Of: f.variable, Range: f.limits}, process.name)
			}
			if f.secret() {
				add(Variable{Name: f.variable + "_FILE", Of: f.variable}, process.name)
			}
		}
	}
	return all
}
