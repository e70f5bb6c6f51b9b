package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"leat/tools/testdata"
	"leat/vk"
)

func TestMain(m *testing.M) {
	if kernel := os.Getenv(crashKernel); kernel != "" {
		crashIn(kernel)
	}
	testscript.Main(m, map[string]func(){"leat": program, "leat-talk": talkMain})
}

// mesaCache lets a program with a home of its own use the shaders that Mesa has compiled for others.
var mesaCache = func() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "MESA_SHADER_CACHE_DIR="
	}
	return "MESA_SHADER_CACHE_DIR=" + dir
}()

// TestScript runs the program as a user does: each file of testdata/script is a session.
// Conditions: [device] a Vulkan driver is there, [testdata] the larger test data is.
// $TESTDATA names it, $DEMO the demo model as a file.
func TestScript(t *testing.T) {
	require := os.Getenv("LEAT_REQUIRE_DEVICE") == "1"
	data := testdata.Optional(t)
	model, err := filepath.Abs(filepath.Join("demo", "leat-demo-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Vars = append(env.Vars, mesaCache, "HOME="+home, "XDG_CACHE_HOME="+home, "LocalAppData="+home, "TESTDATA="+data, "DEMO="+model)
			return os.MkdirAll(home, 0o755)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "device":
				return require || hasDevice(), nil
			case "testdata":
				return data != "", nil
			}
			return false, errors.New("unknown condition " + cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"flip": cmdFlip, "damage": cmdDamage, "size": cmdSize, "truncate": cmdTruncate,
			"mkgguf": cmdMkgguf, "exits": cmdExits, "fault": cmdFault,
		},
	})
}

func hasDevice() bool {
	instance, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		return false
	}
	return instance.Close() == nil
}

// cmdFlip inverts one byte of a file.
func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	file := ts.MkAbs(args[0])
	data, err := os.ReadFile(file)
	ts.Check(err)
	data[atoi(ts, args[1])] ^= 0xff
	ts.Check(os.WriteFile(file, data, 0o644))
}

// cmdDamage inverts the last byte of each file in a folder.
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: damage FOLDER")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(entries) == 0 {
		ts.Fatalf("%s is empty", args[0])
	}
	for _, e := range entries {
		file := filepath.Join(ts.MkAbs(args[0]), e.Name())
		data, err := os.ReadFile(file)
		ts.Check(err)
		if len(data) == 0 { // it says what it says by being there
			continue
		}
		data[len(data)-1] ^= 0xff
		ts.Check(os.WriteFile(file, data, 0o644))
	}
}

// cmdTruncate cuts a file to a number of bytes.
func cmdTruncate(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: truncate FILE BYTES")
	}
	file := ts.MkAbs(args[0])
	ts.Check(os.Chmod(file, 0o644))
	ts.Check(os.Truncate(file, int64(atoi(ts, args[1]))))
}

// cmdSize fails unless a file has that many bytes.
func cmdSize(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: size FILE BYTES")
	}
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if want := int64(atoi(ts, args[1])); info.Size() != want {
		ts.Fatalf("%s has %d bytes, want %d", args[0], info.Size(), want)
	}
}

func atoi(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}
