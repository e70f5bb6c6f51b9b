package main

import (
	"go/constant"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestFactsAgree(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
	ours, theirs, err := loadFacts()
	if err != nil {
		t.Fatal(err)
	}
	for _, their := range theirs {
		c := compare(ours, their)
		for _, what := range c.wrong {
			t.Error(what)
		}
		if c.constants < 500 || c.structs < 80 || c.fields < 500 {
			t.Errorf("%s: compared %d constants, %d structs, %d fields only", their.path, c.constants, c.structs, c.fields)
		}
		if their.path == vulkanGoPath && len(c.excused) != len(excuses) {
			t.Errorf("%d of %d excuses are needed", len(c.excused), len(excuses))
		}
	}
}

func TestCompare(t *testing.T) {
	ours := func() *facts {
		return &facts{path: ourPath,
			constants: map[string]constant.Value{
				"ErrorOutOfDateKHR": constant.MakeInt64(-1000001004), "ObjectTypeBuffer": constant.MakeInt64(9), "OnlyOurs": constant.MakeInt64(1),
				"TwoNV": constant.MakeInt64(1), "TwoKHR": constant.MakeInt64(2), "EXTNameExtensionName": constant.MakeString("VK_EXT_name"),
			},
			layouts: map[string]layout{"BufferCopy": {16, map[string]field{"SrcOffset": {0, 8}, "Size": {8, 8}}}},
		}
	}
	agreeing := func() *facts {
		return &facts{path: "theirs",
			constants: map[string]constant.Value{
				"ErrorOutOfDate": constant.MakeInt64(-1000001004), "ObjectTypeBuffer": constant.MakeInt64(9), "Two": constant.MakeInt64(1),
				"ExtNameExtensionName": constant.MakeString("VK_EXT_name\x00"),
			},
			layouts: maps.Clone(ours().layouts),
		}
	}
	for name, c := range map[string]struct {
		change func(f *facts)
		want   string
	}{
		"agree":          {func(*facts) {}, ""},
		"value":          {func(f *facts) { f.constants["ObjectTypeBuffer"] = constant.MakeInt64(8) }, "constant ObjectTypeBuffer is 9, and 8"},
		"value, no tag":  {func(f *facts) { f.constants["ErrorOutOfDate"] = constant.MakeInt64(1) }, "constant ErrorOutOfDateKHR"},
		"text":           {func(f *facts) { f.constants["ExtNameExtensionName"] = constant.MakeString("VK_EXT_nam") }, "EXTNameExtensionName"},
		"size":           {func(f *facts) { f.layouts["BufferCopy"] = layout{24, f.layouts["BufferCopy"].fields} }, "VkBufferCopy has 16 bytes, and 24"},
		"offset":         {withFields(map[string]field{"SrcOffset": {0, 8}, "Size": {4, 8}}), "VkBufferCopy.Size is 8 bytes at 8, and 8 bytes at 4"},
		"field size":     {withFields(map[string]field{"SrcOffset": {0, 8}, "Size": {8, 4}}), "VkBufferCopy.Size is 8 bytes at 8, and 4 bytes at 8"},
		"field too many": {withFields(map[string]field{"SrcOffset": {0, 8}}), "VkBufferCopy.Size is not in theirs"},
		"field missing":  {withFields(map[string]field{"SrcOffset": {0, 8}, "Size": {8, 8}, "X": {8, 8}}), "VkBufferCopy.X of theirs is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			their := agreeing()
			c.change(their)
			got := strings.Join(compare(ours(), their).wrong, "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func withFields(fields map[string]field) func(f *facts) {
	return func(f *facts) { f.layouts["BufferCopy"] = layout{f.layouts["BufferCopy"].size, fields} }
}

func TestDispatch(t *testing.T) {
	if testing.Short() {
		t.Skip("builds four programs")
	}
	all := programs()
	if err := build(t.TempDir(), all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		t.Run(p.dir, func(t *testing.T) {
			r, err := p.report("-dispatch")
			switch {
			case err != nil && os.Getenv("LEAT_REQUIRE_DEVICE") == "1":
				t.Fatal(err)
			case err != nil:
				t.Skip(err)
			}
			if what := judge(r); what != "" {
				t.Error(what)
			}
		})
	}
}

// The two old bindings get the same program.
func TestSameProgram(t *testing.T) {
	for _, file := range []string{"binding.go", "calls.go"} {
		goki, err := os.ReadFile("bygoki/" + file)
		if err != nil {
			t.Fatal(err)
		}
		vulkanGo, err := os.ReadFile("byvulkango/" + file)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer(gokiPath, vulkanGoPath, `layer = "goki"`, `layer = "vulkan-go"`).Replace(string(goki))
		if string(vulkanGo) != want {
			t.Errorf("byvulkango/%s is not bygoki/%s with the other import", file, file)
		}
	}
}
