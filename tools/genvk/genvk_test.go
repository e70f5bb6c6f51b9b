package main

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/tools/gensum"
)

//go:embed testdata/small.xml
var small string

func smallFiles(t *testing.T, list allowList) map[string]string {
	t.Helper()
	reg, err := load(strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(reg, list)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		out[f.name] = squeeze(string(f.text))
	}
	return out
}

// squeeze makes gofmt's alignment irrelevant.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestGenerate(t *testing.T) {
	files := smallFiles(t, allowList{commands: []string{"vkUse", "vkWeigh", "vkPack"}, structs: []string{"VkUseFlags"}, stringers: []string{"VkResult"}})
	cases := []struct{ name, file, want string }{
		{"header version", "gen_enums.go", "// From vk.xml of Vulkan 1.2.7."},
		{"alias of a type", "gen_commands.go", "type_ *Info) Result"},
		{"alias of a command", "gen_commands.go", `devUse: {name: "vkUse", aliases: []string{"vkUseKHR"}, required: true}`},
		{"prototype", "gen_commands.go", "VkResult vkUse(VkDevice device, const VkInfoKHR* type) func (f *DeviceFuncs) Use("},
		{"pointer argument", "gen_commands.go", "c.ptr(1, unsafe.Pointer(type_)) return c.result(f.fn[devUse], 2)"},
		{"float argument", "gen_commands.go", "var call func(device Device, weight float32) purego.RegisterFunc(&call, p)"},
		{"optional command", "gen_commands.go", "From VK_EXT_more; see Has."},
		{"handle of the driver", "gen_handles.go", "type Device uintptr"},
		{"dimensions and pointers", "gen_structs.go", "PpNames **byte Label [LabelSize]byte Matrix [3][4]float32 Word Word Type uintptr }"},
		{"member for Vulkan only", "gen_structs.go", "PNext unsafe.Pointer ForAll uint32 Use Use2Flags"},
		{"bit-fields share a word", "gen_structs.go", "type Packed struct { Bits0 uint32 // index:24 mask:8 Address uint64 }"},
		{"union", "gen_structs.go", "type Word [2]uint64"},
		{"32-bit flags", "gen_enums.go", "type UseFlags uint32"},
		{"bits are their flags", "gen_enums.go", "type UseFlagBits = UseFlags const ( UseTopBit UseFlags = 0x80000000 )"},
		{"64-bit flags", "gen_enums.go", "type Use2Flags uint64"},
		{"64-bit value", "gen_enums.go", "Use2Far8BitKHR Use2Flags = 0x10000000000"},
		{"negative value", "gen_enums.go", "ErrorX Result = -3"},
		{"value of an extension", "gen_enums.go", "ErrorMoreEXT Result = -1000011002"},
		{"value of another extension's number", "gen_enums.go", "Pending Result = 1000002001"},
		{"alias of a value", "gen_enums.go", "PendingEXT Result = 1000002001"},
		{"name of a value", "gen_enums.go", `case -1000011002: return "VK_ERROR_MORE_EXT"`},
		{"array length", "gen_consts.go", "LabelSize = 5"},
		{"inverted 64-bit constant", "gen_consts.go", "All uint64 = 0xffffffffffffffff"},
		{"inverted 32-bit constant", "gen_consts.go", "Most uint32 = 0xfffffffe"},
		{"extension name", "gen_consts.go", `EXTMoreExtensionName = "VK_EXT_more"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(files[c.file], c.want) {
				t.Errorf("%s lacks %q:\n%s", c.file, c.want, files[c.file])
			}
		})
	}
	for name, text := range files {
		for _, foreign := range []string{"ForCars", "Cars", "VK_OFF", "Thing"} {
			if strings.Contains(text, foreign) {
				t.Errorf("%s contains %s, which is for another profile, disabled, provisional or not reached", name, foreign)
			}
		}
	}
}

func TestGenerateErrors(t *testing.T) {
	cases := []struct {
		name, command, want string
	}{
		{"unknown command", "vkNone", "unknown command vkNone"},
		{"alias listed", "vkUseKHR", "list vkUse"},
		{"union with a pointer", "vkBad", "is a pointer"},
		{"arguments that Apple arm64 packs", "vkTight", `argument "j"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reg, err := load(strings.NewReader(small))
			if err != nil {
				t.Fatal(err)
			}
			_, err = generate(reg, allowList{commands: []string{c.command}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestSameGoName(t *testing.T) {
	bad := strings.Replace(small, `<enum value="4" name="VK_STRUCTURE_TYPE_INFO"/>`,
		`<enum value="4" name="VK_STRUCTURE_TYPE_INFO"/><enum value="7" name="VK_SUC_CESS"/><enum value="8" name="VK_SUC_CESS_"/>`, 1)
	reg, err := load(strings.NewReader(bad))
	if err != nil {
		t.Fatal(err)
	}
	_, err = generate(reg, allowList{})
	if err == nil || !strings.Contains(err.Error(), "would both be SucCess") {
		t.Errorf("error %v, want one about two names that become SucCess", err)
	}
}

// TestOverlayYields: what the registry has itself, it keeps.
func TestOverlayYields(t *testing.T) {
	over := `<registry><types><type category="struct" name="VkInfo"><member><type>int</type> <name>x</name></member></type></types>
<enums name="VkResult" type="enum"><enum value="1" name="VK_OVER"/></enums>
<extensions><extension name="VK_EXT_more" number="12" supported="vulkan"><require><enum extends="VkResult" offset="9" name="VK_NINE"/></require></extension></extensions></registry>`
	reg, err := load(strings.NewReader(small), strings.NewReader(over))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(reg.types["VkInfo"].members); n < 5 {
		t.Errorf("the overlay replaced VkInfo: %d members", n)
	}
	for _, v := range reg.groups["VkResult"].values {
		if v.name == "VK_OVER" || v.name == "VK_NINE" {
			t.Errorf("the overlay changed VkResult: %s", v.name)
		}
	}
}

func TestGoConst(t *testing.T) {
	reg := &registry{tags: map[string]bool{"EXT": true, "NV": true}}
	for c, want := range map[string]string{
		"VK_BUFFER_USAGE_TRANSFER_SRC_BIT":                        "BufferUsageTransferSrcBit",
		"VK_QUERY_RESULT_64_BIT":                                  "QueryResult64Bit",
		"VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES": "StructureTypePhysicalDevice8BitStorageFeatures",
		"VK_EXT_DEBUG_UTILS_EXTENSION_NAME":                       "EXTDebugUtilsExtensionName",
		"VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT":                 "StructureTypeDebugUtilsLabelEXT",
		"VK_DRIVER_ID_NVIDIA_PROPRIETARY":                         "DriverIdNvidiaProprietary",
	} {
		if got := reg.goConst(c); got != want {
			t.Errorf("goConst(%s) = %s, want %s", c, got, want)
		}
	}
}

// TestCompare: -check names the file that differs, is missing or left over.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"gen_same.go": "a\nb\n", "gen_other.go": "a\nx\n", "gen_old.go": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := []file{{"gen_same.go", []byte("a\nb\n")}, {"gen_other.go", []byte("a\nb\n")}, {"gen_new.go", nil}}
	stale, err := staleFiles(dir, files)
	if err != nil {
		t.Fatal(err)
	}
	err = compare(dir, files, stale)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"gen_other.go differs from what the registry gives (line 2)", "gen_new.go is missing", "gen_old.go is no longer generated"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "gen_same.go") {
		t.Errorf("error names the file that is as it should be:\n%v", err)
	}
	if err := compare(dir, files[:1], nil); err != nil {
		t.Errorf("compare of an equal file: %v", err)
	}
}

// Without a registry, sums tell a file that this generator did not make: changed, left over, or made by another state of it.
func TestCheckSums(t *testing.T) {
	if err := checkSums("../../vk/internal/raw"); err != nil {
		t.Errorf("the committed files: %v", err)
	}
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"changed":   {func(dir string) error { return os.WriteFile(filepath.Join(dir, "gen_b.go"), []byte("y"), 0o600) }, "gen_b.go is not what"},
		"missing":   {func(dir string) error { return os.Remove(filepath.Join(dir, "gen_a.go")) }, "gen_a.go: no such file"},
		"left over": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "gen_c.go"), nil, 0o600) }, "gen_c.go has no line"},
		"no sums":   {func(dir string) error { return os.Remove(sumsPath(dir)) }, "gen_a.go has no line"},
		"generator": {func(dir string) error {
			return gensum.Write(sumsPath(dir), map[string]gensum.Sum{"gen_a.go": {From: "0", Made: gensum.Hash([]byte("x"))}})
		}, "gen_a.go was made by another state"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := []file{{"gen_a.go", []byte("x")}, {"gen_b.go", []byte("x")}}
			for _, f := range files {
				if err := os.WriteFile(filepath.Join(dir, f.name), f.text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := writeSums(dir, files); err != nil {
				t.Fatal(err)
			}
			if err := checkSums(dir); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			if err := checkSums(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
		})
	}
}

// TestCommitted: the committed binding is what the installed registry gives.
// Without that registry, or with another version of it, there is no telling.
func TestCommitted(t *testing.T) {
	const xmlPath = "/usr/share/vulkan/registry/vk.xml"
	err := run(xmlPath, "../../vk/internal/raw", true)
	var other *versionError
	if (errors.Is(err, fs.ErrNotExist) || errors.As(err, &other)) && os.Getenv("LEAT_REQUIRE_TOOLS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestSameVersion(t *testing.T) {
	dir := t.TempDir()
	text := "// Code generated by tools/genvk. DO NOT EDIT.\n// From vk.xml of Vulkan 1.3.239.\n"
	if err := os.WriteFile(filepath.Join(dir, "gen_consts.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sameVersion(dir, "1.3.239"); err != nil {
		t.Errorf("the same version: %v", err)
	}
	var other *versionError
	if err := sameVersion(dir, "1.4.309"); !errors.As(err, &other) || other.committed != "1.3.239" || other.registry != "1.4.309" {
		t.Errorf("another version: %v, want a *versionError that names both", err)
	}
}
