package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by build.sh with -ldflags "-X main.version=… -X main.commit=…".
var version, commit string

func init() { commands = append(commands, newVersionCmd) }

type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func newVersionCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  leat version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info := readVersion()
			if asJSON {
				return a.printJSON(info)
			}
			_, err := fmt.Fprintln(a.out, info)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func (v versionInfo) String() string {
	text := "leat " + v.Version
	if v.Commit != "" {
		text += " (" + v.Commit + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", text, v.Go, v.OS, v.Arch)
}

// readVersion prefers what build.sh set, then what the go tool noted (go install, or a
// build in a repository).
func readVersion() versionInfo {
	info := versionInfo{version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if ok && info.Version == "" {
		info.Version = build.Main.Version
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = "devel"
	}
	if ok && info.Commit == "" {
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				info.Commit = setting.Value[:min(12, len(setting.Value))]
			}
		}
	}
	return info
}

// printJSON is how every --json prints: indented, one value, a newline at the end.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
