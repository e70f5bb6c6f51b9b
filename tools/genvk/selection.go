package main

import (
	"fmt"
	"slices"
	"strings"
)

// selection is the part of the registry that the binding offers.
type selection struct {
	reg      *registry
	list     allowList
	types    []*ctype // canonical, in order of discovery
	have     map[string]bool
	commands []*command
}

// choose selects what list names and all that this reaches.
func choose(reg *registry, list allowList) (*selection, error) {
	s := &selection{reg: reg, list: list, have: map[string]bool{}}
	for _, name := range append([]string{"VkResult", "VkStructureType"}, list.structs...) {
		if _, err := s.add(name); err != nil {
			return nil, err
		}
	}
	for _, name := range list.commands {
		c := reg.commands[name]
		if c == nil {
			return nil, fmt.Errorf("unknown command %s", name)
		}
		if c.alias != "" {
			return nil, fmt.Errorf("command %s is an alias: list %s", name, c.alias)
		}
		if err := s.reach(c); err != nil {
			return nil, fmt.Errorf("command %s: %w", name, err)
		}
		s.commands = append(s.commands, c)
	}
	byName := func(a, b *ctype) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(s.types, byName)
	slices.SortFunc(s.commands, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	return s, nil
}

func (s *selection) reach(c *command) error {
	for _, p := range c.params {
		if _, err := s.goParam(p); err != nil {
			return err
		}
	}
	if c.result == "void" {
		return nil
	}
	_, err := s.named(c.result)
	return err
}

// add selects the type called name, and its members' types, and returns it.
func (s *selection) add(name string) (*ctype, error) {
	t, err := s.reg.canon(name)
	if err != nil {
		return nil, err
	}
	if s.have[t.name] {
		return t, nil
	}
	s.have[t.name] = true
	switch t.category {
	case "struct", "union":
		for _, m := range t.members {
			if _, err := s.goType(m); err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		}
	case "enum":
		if flags := s.reg.flagsOf[t.name]; flags != "" {
			if _, err := s.add(flags); err != nil {
				return nil, err
			}
		}
	case "bitmask":
		for bits, flags := range s.reg.flagsOf {
			if flags == t.name && s.reg.types[bits] != nil {
				if _, err := s.add(bits); err != nil {
					return nil, err
				}
			}
		}
	case "handle":
	default:
		return nil, fmt.Errorf("type %s of category %q has no place in a Go binding", t.name, t.category)
	}
	s.types = append(s.types, t)
	return t, nil
}

// of returns the selected types of one category.
func (s *selection) of(category string) []*ctype {
	var out []*ctype
	for _, t := range s.types {
		if t.category == category {
			out = append(out, t)
		}
	}
	return out
}

// extensions returns those that bring something selected, and the listed ones.
func (s *selection) extensions() []*extension {
	var out []*extension
	for _, x := range s.reg.extensions {
		brings := slices.ContainsFunc(x.provides, func(name string) bool {
			return s.have[name] || slices.ContainsFunc(s.commands, func(c *command) bool { return c.name == name })
		})
		if x.constant != "" && (brings || slices.Contains(s.list.extensions, x.name)) {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b *extension) int { return strings.Compare(a.name, b.name) })
	return out
}

// size returns bytes and alignment of d in C on our 64-bit platforms.
func (s *selection) size(d decl) (size, align int, err error) {
	if d.stars > 0 || strings.HasPrefix(d.typ, "PFN_") {
		size, align = 8, 8
	} else if size, align, err = s.sizeOfType(d.typ); err != nil {
		return 0, 0, err
	}
	for _, n := range d.dims {
		count, err := s.length(n)
		if err != nil {
			return 0, 0, err
		}
		size *= count
	}
	return size, align, nil
}

var goSizes = map[string]int{"uint8": 1, "int8": 1, "byte": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4,
	"float32": 4, "Bool32": 4, "uint64": 8, "int64": 8, "float64": 8, "uintptr": 8}

func (s *selection) sizeOfType(name string) (size, align int, err error) {
	if n, ok := goSizes[basic[name]]; ok {
		return n, n, nil
	}
	t, err := s.reg.canon(name)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case t.category == "handle" || t.category == "bitmask" && t.wide:
		return 8, 8, nil
	case t.category == "enum" || t.category == "bitmask":
		if g := s.reg.groups[t.name]; g != nil && g.wide {
			return 8, 8, nil
		}
		return 4, 4, nil
	}
	off := 0
	align = 1
	for _, m := range t.members {
		n, a, err := s.size(m)
		if err != nil {
			return 0, 0, err
		}
		align = max(align, a)
		if t.category == "union" {
			size = max(size, n)
			continue
		}
		off = (off+a-1)/a*a + n
		size = off
	}
	return (size + align - 1) / align * align, align, nil
}

// length resolves an array length: a number or a constant.
func (s *selection) length(n string) (int, error) {
	if !strings.HasPrefix(n, "VK_") {
		v, err := parseInt(n, true)
		return int(v), err
	}
	for _, c := range s.reg.constants {
		if c.name == n {
			if c.alias != "" {
				return s.length(c.alias)
			}
			return int(c.bits), nil
		}
	}
	return 0, fmt.Errorf("unknown array length %s", n)
}
