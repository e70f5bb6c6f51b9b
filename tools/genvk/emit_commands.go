package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// table is the set of commands that are looked up, and called, together.
type table struct {
	recv, prefix, list string // Go names: *DeviceFuncs, devCmdDispatch, deviceCommands
	commands           []*command
}

// tables sorts the commands by what they are looked up with.
func (s *selection) tables() []*table {
	loader := &table{recv: "Loader", prefix: "gbl", list: "globalCommands"}
	instance := &table{recv: "InstanceFuncs", prefix: "ins", list: "instanceCommands"}
	device := &table{recv: "DeviceFuncs", prefix: "dev", list: "deviceCommands"}
	for _, c := range s.commands {
		t := loader
		if len(c.params) > 0 {
			switch c.params[0].typ {
			case "VkInstance", "VkPhysicalDevice":
				t = instance
			case "VkDevice", "VkQueue", "VkCommandBuffer":
				t = device
			}
		}
		t.commands = append(t.commands, c)
	}
	return []*table{loader, instance, device}
}

// writeCommands writes the tables and one method per command.
func writeCommands(b *bytes.Buffer, s *selection, names *nameSet) error {
	tables := s.tables()
	imports := `import "unsafe"`
	if slices.ContainsFunc(s.commands, (*command).hasFloat) {
		imports = "import (\n\"unsafe\"\n\n\"github.com/ebitengine/purego\"\n)"
	}
	longest := 2 // vkGet*ProcAddr, written by hand
	for _, c := range s.commands {
		longest = max(longest, len(c.params))
	}
	fmt.Fprintf(b, "%s\n\nconst maxArgs = %d\n\n", imports, longest)
	for _, t := range tables {
		fmt.Fprint(b, "const (\n")
		for i, c := range t.commands {
			fmt.Fprint(b, t.index(c))
			if i == 0 {
				fmt.Fprint(b, " = iota")
			}
			fmt.Fprintln(b)
		}
		fmt.Fprintf(b, "%sCount\n)\n\nvar %s = [%sCount]command{\n", t.prefix, t.list, t.prefix)
		for _, c := range t.commands {
			fmt.Fprintf(b, "%s: {name: %q", t.index(c), c.name)
			if len(c.aliases) > 0 {
				fmt.Fprintf(b, ", aliases: []string{%s}", quoted(c.aliases))
			}
			if !c.optional() {
				fmt.Fprint(b, ", required: true")
			}
			fmt.Fprint(b, "},\n")
		}
		fmt.Fprint(b, "}\n\n")
	}
	for _, t := range tables {
		for _, c := range t.commands {
			if err := names.take("("+t.recv+")."+c.goName(), c.name); err != nil {
				return err
			}
			if err := writeMethod(b, s, t, c); err != nil {
				return fmt.Errorf("command %s: %w", c.name, err)
			}
		}
	}
	return nil
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}

func (c *command) goName() string        { return strings.TrimPrefix(c.name, "vk") }
func (t *table) index(c *command) string { return t.prefix + c.goName() }
func (c *command) hasFloat() bool        { return slices.ContainsFunc(c.params, decl.isFloat) }
func (d decl) isFloat() bool {
	return d.stars == 0 && len(d.dims) == 0 && (d.typ == "float" || d.typ == "double")
}
func (d decl) isPointer() bool { return d.stars > 0 || len(d.dims) > 0 }

// optional reports whether a device of Vulkan 1.2, our minimum, may lack c.
// vkEnumerateInstanceVersion is missing from 1.0 loaders, and that is its news.
func (c *command) optional() bool {
	return c.core != "1.0" && c.core != "1.1" && c.core != "1.2" || c.name == "vkEnumerateInstanceVersion"
}

// writeMethod writes the binding of one command under its C prototype.
func writeMethod(b *bytes.Buffer, s *selection, t *table, c *command) error {
	if err := s.checkStack(c); err != nil {
		return err
	}
	var params []string
	for _, p := range c.params {
		g, err := s.goParam(p)
		if err != nil {
			return err
		}
		params = append(params, goParamName(p.name)+" "+g)
	}
	result := ""
	if c.result != "void" {
		var err error
		if result, err = s.named(c.result); err != nil {
			return err
		}
	}
	fmt.Fprintf(b, "// %s is\n//\n//\t%s\n", c.goName(), c.prototype)
	if c.optional() {
		from := c.extension
		if c.core != "" {
			from = "Vulkan " + c.core
		}
		fmt.Fprintf(b, "//\n// From %s; see Has.\n", from)
	}
	fmt.Fprintf(b, "func (f *%s) %s(%s) %s {\n", t.recv, c.goName(), strings.Join(params, ", "), result)
	if c.hasFloat() {
		return writeFloatBody(b, t, c, params, result)
	}
	fmt.Fprint(b, "c := newCall()\n")
	for i, p := range c.params {
		name := goParamName(p.name)
		if p.isPointer() {
			fmt.Fprintf(b, "c.ptr(%d, unsafe.Pointer(%s))\n", i, name)
		} else {
			fmt.Fprintf(b, "c.words[%d] = uintptr(%s)\n", i, name)
		}
	}
	do := fmt.Sprintf("(f.fn[%s], %d)", t.index(c), len(c.params))
	switch result {
	case "":
		fmt.Fprintf(b, "c.do%s\n", do)
	case "Result":
		fmt.Fprintf(b, "return c.result%s\n", do)
	default:
		fmt.Fprintf(b, "return %s(c.do%s)\n", result, do)
	}
	fmt.Fprint(b, "}\n\n")
	return nil
}

// writeFloatBody goes through purego.RegisterFunc: SyscallN cannot mix integer
// and float arguments. It allocates; no hot command has a float.
func writeFloatBody(b *bytes.Buffer, t *table, c *command, params []string, result string) error {
	if result != "" {
		return fmt.Errorf("a float argument and a result: not handled")
	}
	var args []string
	for _, p := range c.params {
		if p.isPointer() {
			return fmt.Errorf("a float and a pointer argument: not handled")
		}
		args = append(args, goParamName(p.name))
	}
	fmt.Fprintf(b, "p := f.fn[%s]\nif p == 0 {\nreturn\n}\n", t.index(c))
	fmt.Fprintf(b, "var call func(%s)\npurego.RegisterFunc(&call, p)\ncall(%s)\n}\n\n", strings.Join(params, ", "), strings.Join(args, ", "))
	return nil
}

// checkStack refuses a command whose arguments beyond the eighth would pack
// differently on Apple's arm64, which aligns each to its own size: SyscallN
// gives every argument a slot of eight bytes.
func (s *selection) checkStack(c *command) error {
	off := 0
	for i, p := range c.params {
		if i < 8 {
			continue
		}
		size, align := 8, 8
		if !p.isPointer() {
			var err error
			if size, align, err = s.size(p); err != nil {
				return err
			}
		}
		off = (off + align - 1) / align * align
		if off != (i-8)*8 {
			return fmt.Errorf("argument %q lies at another place on Apple arm64 (%d)", p.name, off)
		}
		off += size
	}
	return nil
}
