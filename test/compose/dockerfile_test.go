package compose_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instructions returns the lines of the Dockerfile without comments, those that
// a backslash continues as one.
func instructions(t *testing.T) []string {
	t.Helper()
	var all []string
	content := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(content) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, strings.Join(strings.Fields(line), " "))
		}
	}
	return all
}

// with returns what follows the word in each instruction of that kind.
func with(all []string, word string) []string {
	var found []string
	for _, line := range all {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			found = append(found, rest)
		}
	}
	return found
}

func TestDockerfileImages(t *testing.T) {
	t.Parallel()
	all := instructions(t)
	from := with(all, "FROM")
	if len(from) != 2 || from[1] != "scratch" {
		t.Fatalf("the stages are %q, want a build and scratch", from)
	}
	builder, _, _ := strings.Cut(from[0], " ")
	if !pinned.MatchString(builder) {
		t.Errorf("the image %q has no full version", builder)
	}
	goVersion := regexp.MustCompile(`(?m)^go ([0-9.]+)$`).FindStringSubmatch(read(t, "go.mod"))
	if goVersion == nil || !strings.HasPrefix(builder, "golang:"+goVersion[1]+"-") {
		t.Errorf("it builds with %s, go.mod wants %v", builder, goVersion)
	}
	if workflow := read(t, ".github/workflows/ci.yml"); !strings.Contains(workflow, "container: "+builder+"\n") {
		t.Errorf("the workflow does not run in %s", builder)
	}
}

func TestDockerfileFinalStage(t *testing.T) {
	t.Parallel()
	all := instructions(t)
	final := all[slices.Index(all, "FROM scratch")+1:]
	for word, want := range map[string]string{"USER": "65532:65532", "ENTRYPOINT": `["/skalds"]`} {
		if got := with(final, word); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", word, got, want)
		}
	}
	if len(with(final, "RUN")) > 0 {
		t.Error("the last stage has no shell to run anything")
	}
	for _, line := range with(final, "COPY") {
		if !strings.HasPrefix(line, "--from=build ") {
			t.Errorf("COPY %s does not come from the build", line)
		}
	}
}

func TestDockerfileBuild(t *testing.T) {
	t.Parallel()
	build := ""
	for _, line := range with(instructions(t), "RUN") {
		if strings.Contains(line, "go build ") {
			build = line
		}
	}
	for _, part := range []string{
		"--mount=type=cache,target=/go/pkg/mod", "--mount=type=cache,target=/go/build",
		"CGO_ENABLED=0", "-trimpath", "-X main.version=${VERSION}", "-o /skalds ./cmd/skalds",
	} {
		if !strings.Contains(build, part) {
			t.Errorf("%s is not in %q", part, build)
		}
	}
}

// What the Dockerfile takes from the repository is there, and .dockerignore
// does not keep it out.
func TestDockerfileSources(t *testing.T) {
	t.Parallel()
	sources := []string{"cmd/skalds", "controller", "node", "pkg", "events"} // of ./cmd/skalds, by COPY . .
	for _, line := range with(instructions(t), "COPY") {
		if !strings.HasPrefix(line, "--from=") {
			words := strings.Fields(line)
			sources = append(sources, words[:len(words)-1]...)
		}
	}
	var ignored []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			ignored = append(ignored, line)
		}
	}
	for _, source := range sources {
		if _, err := os.Stat(filepath.Join(root(t), source)); err != nil {
			t.Errorf("the Dockerfile needs %s: %v", source, err)
		}
		for _, pattern := range ignored {
			top, _, _ := strings.Cut(source, "/")
			if match, err := filepath.Match(pattern, top); err != nil || match {
				t.Errorf(".dockerignore keeps out %s by %q, %v", source, pattern, err)
			}
		}
	}
	for _, secret := range []string{".env", ".git"} {
		if !slices.Contains(ignored, secret) {
			t.Errorf(".dockerignore lets %s into the build", secret)
		}
	}
}
