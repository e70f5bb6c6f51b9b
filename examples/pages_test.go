package examples

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// pages are what a user reads first: their commands are run, and their figures are looked up.
var pages = []string{"README.md", "docs/getting-started.md", "docs/troubleshooting.md", "docs/embedding.md"}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile("../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// command is a command line that a page shows.
type command struct {
	page, line string
	output     []string // what the page shows of its output; "[…]" has parted it
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	isLine   = regexp.MustCompile(`^(\$ |[A-Z_]+=\S+ |(bin/leat|leat|\./build\.sh|echo|source|cd|go|ldd|podman|sudo|git|apt-get|ubuntu-drivers|dnf|pacman|brew)( |$))`)
)

// commandsIn finds the commands of a page: lines of indented blocks and of fences, and code in text and tables. outputs are what
// blocks hold beside commands, each run of lines as one, with those that follow a "$" left to their command.
func commandsIn(page, text string) (commands []command, outputs []string) {
	add := func(line string) *command {
		line = strings.Join(strings.Fields(strings.TrimPrefix(line, "$ ")), " ")
		commands = append(commands, command{page: page, line: strings.TrimPrefix(line, "bin/")})
		return &commands[len(commands)-1]
	}
	var last *command // whose output the block may go on with
	said := ""
	end := func() {
		if said == "" {
			return
		}
		for part := range strings.SplitSeq(said, "[…]") {
			if part = strings.TrimSpace(part); last != nil {
				last.output = append(last.output, part)
			} else {
				outputs = append(outputs, part)
			}
		}
		said = ""
	}
	fence, language := false, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		block, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "```"):
			fence, language = !fence, strings.TrimPrefix(line, "```")
		case fence && language != "": // no shell
		case !indented && !fence:
			end()
			last = nil
			for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
				if isLine.MatchString(span[1]) {
					add(span[1])
				}
			}
		case fence && isLine.MatchString(line), indented && isLine.MatchString(block):
			end()
			last = nil
			line = strings.TrimSpace(line)
			if c := add(line); strings.HasPrefix(line, "$ ") {
				last = c
			}
		default:
			said += " " + strings.TrimSpace(line)
		}
	}
	end()
	return commands, outputs
}

func TestCommandsIn(t *testing.T) {
	text := "Say `leat devices`, not `devices`.\n\n    bin/leat run x\n    $ leat run  y\n    One […]\n    two\n\n" +
		"| `./build.sh demo` | `--flag` |\n\n```\nleat plan z\n```\n```go\nleat := 1\n```\n\n    an output\n    of two lines\n"
	commands, outputs := commandsIn("", text)
	lines := ""
	for _, c := range commands {
		lines += c.line + strings.Join(c.output, "/") + ";"
	}
	if want := "leat devices;leat run x;leat run yOne/two;./build.sh demo;leat plan z;"; lines != want {
		t.Errorf("found %q, want %q", lines, want)
	}
	if found := strings.Join(outputs, "/"); found != "an output of two lines" {
		t.Errorf("found outputs %q", found)
	}
}
