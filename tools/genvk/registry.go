package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// registry is what we need of vk.xml, in C names.
type registry struct {
	core       string // newest core version: "1.3"
	header     string // VK_HEADER_VERSION: "239"
	tags       map[string]bool
	types      map[string]*ctype
	flagsOf    map[string]string // VkXFlagBits -> VkXFlags
	groups     map[string]*group // enum type -> its values
	constants  []value           // hardcoded integers: VK_UUID_SIZE
	commands   map[string]*command
	extensions []*extension
}

// ctype is one <type>.
type ctype struct {
	name, category, alias string
	wide                  bool   // 64-bit flags
	dispatchable          bool   // handles
	members               []decl // structs and unions
	overlay               bool   // from our overlay, unknown to the system's C headers
}

// group is the values of one enum type.
type group struct {
	bitmask, wide bool
	values        []value
}

// value is a named integer; alias, if set, names the value it equals.
type value struct {
	name, alias string
	bits        uint64 // two's complement
	typ         string // of API constants: uint32_t, uint64_t
	overlay     bool
}

// command is one <command>.
type command struct {
	name, alias string
	result      string
	params      []decl
	prototype   string
	aliases     []string // older names of the same command
	core        string   // "1.2" if in that core version
	extension   string   // else the extension that brings it
}

// extension is one enabled <extension>.
type extension struct {
	name, constant string // "VK_EXT_debug_utils", "VK_EXT_DEBUG_UTILS_EXTENSION_NAME"
	provides       []string
	overlay        bool
}

// version is the registry's own: "1.3.239".
func (r *registry) version() string { return r.core + "." + r.header }

// load merges the documents, first the registry proper, then the overlay; of
// the latter only what the former lacks.
func load(docs ...io.Reader) (*registry, error) {
	r := &registry{tags: map[string]bool{}, types: map[string]*ctype{}, flagsOf: map[string]string{},
		groups: map[string]*group{}, commands: map[string]*command{}}
	for i, doc := range docs {
		root, err := parseXML(doc)
		if err != nil {
			return nil, err
		}
		for _, step := range []func(*node, bool) error{r.addTags, r.addTypes, r.addEnums, r.addCommands, r.addFeatures, r.addExtensions} {
			if err := step(root, i > 0); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range r.commands {
		if to := r.commands[c.alias]; to != nil {
			to.aliases = append(to.aliases, c.name)
		}
	}
	for _, c := range r.commands {
		slices.Sort(c.aliases)
	}
	return r, nil
}

func (r *registry) addTags(root *node, _ bool) error {
	for _, tags := range root.all("tags") {
		for _, t := range tags.all("tag") {
			r.tags[t.attr["name"]] = true
		}
	}
	return nil
}

func (r *registry) addTypes(root *node, overlay bool) error {
	for _, types := range root.all("types") {
		for _, n := range types.all("type") {
			if !forVulkan(n.attr["api"]) {
				continue
			}
			name := n.attr["name"]
			if name == "" {
				name = n.child("name")
			}
			if name == "VK_HEADER_VERSION" {
				if r.header = numberAtEnd(n.flat()); r.header == "" {
					return fmt.Errorf("VK_HEADER_VERSION has no number")
				}
				continue
			}
			if overlay && r.types[name] != nil {
				continue
			}
			t := &ctype{name: name, category: n.attr["category"], alias: n.attr["alias"], overlay: overlay}
			switch t.category {
			case "bitmask":
				t.wide = n.child("type") == "VkFlags64"
				if bits := n.attr["requires"] + n.attr["bitvalues"]; bits != "" {
					r.flagsOf[bits] = name
				}
			case "handle":
				t.dispatchable = n.child("type") == "VK_DEFINE_HANDLE"
			case "struct", "union":
				for _, m := range n.all("member") {
					if !forVulkan(m.attr["api"]) {
						continue
					}
					d, err := parseDecl(m)
					if err != nil {
						return fmt.Errorf("type %s: %w", name, err)
					}
					t.members = append(t.members, d)
				}
			}
			r.types[name] = t
		}
	}
	return nil
}

var endNumber = regexp.MustCompile(`(\d+)$`)

func numberAtEnd(s string) string { return endNumber.FindString(s) }

func (r *registry) addEnums(root *node, overlay bool) error {
	for _, n := range root.all("enums") {
		name := n.attr["name"]
		if name == "API Constants" || n.attr["type"] == "constants" {
			if err := r.addConstants(n); err != nil {
				return err
			}
			continue
		}
		if overlay && r.groups[name] != nil {
			continue
		}
		g := &group{bitmask: n.attr["type"] == "bitmask", wide: n.attr["bitwidth"] == "64"}
		r.groups[name] = g
		for _, e := range n.all("enum") {
			if err := g.add(e, 0, overlay); err != nil {
				return fmt.Errorf("enum %s: %w", name, err)
			}
		}
	}
	return nil
}

// addConstants keeps the integers; the lone float (VK_LOD_CLAMP_NONE) is for graphics.
func (r *registry) addConstants(n *node) error {
	for _, e := range n.all("enum") {
		v := value{name: e.attr["name"], alias: e.attr["alias"], typ: e.attr["type"]}
		if v.typ == "float" {
			continue
		}
		if v.alias == "" {
			var err error
			if v.bits, err = parseInt(e.attr["value"], v.typ == "uint64_t"); err != nil {
				return fmt.Errorf("constant %s: %w", v.name, err)
			}
		}
		r.constants = append(r.constants, v)
	}
	return nil
}

// add appends one <enum>; extension is the number of the extension it stands in.
func (g *group) add(e *node, extension int, overlay bool) error {
	if !forVulkan(e.attr["api"]) {
		return nil
	}
	v := value{name: e.attr["name"], alias: e.attr["alias"], overlay: overlay}
	if v.alias == "" {
		var err error
		if v.bits, err = enumBits(e, extension); err != nil {
			return fmt.Errorf("value %s: %w", v.name, err)
		}
	}
	for _, have := range g.values {
		if have.name == v.name {
			return nil // a promoted value stands in its extension and in a core version
		}
	}
	g.values = append(g.values, v)
	return nil
}

// enumBits computes the number: given, as a bit, or as an offset into the
// thousand values an extension owns from 1 000 000 000 on.
func enumBits(e *node, extension int) (uint64, error) {
	if s := e.attr["value"]; s != "" {
		return parseInt(s, true)
	}
	if s := e.attr["bitpos"]; s != "" {
		n, err := strconv.ParseUint(s, 10, 6)
		return 1 << n, err
	}
	offset, err := strconv.ParseInt(e.attr["offset"], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("has neither value, bitpos nor offset: %w", err)
	}
	if s := e.attr["extnumber"]; s != "" {
		if extension, err = strconv.Atoi(s); err != nil {
			return 0, err
		}
	}
	if extension == 0 {
		return 0, fmt.Errorf("has an offset but no extension number")
	}
	n := 1_000_000_000 + int64(extension-1)*1000 + offset
	if e.attr["dir"] == "-" {
		n = -n
	}
	return uint64(n), nil
}

// parseInt reads a C integer: 16, -3, 0x7F, 32U, (~0U), (~0ULL).
func parseInt(s string, wide bool) (uint64, error) {
	t := strings.Trim(s, "()")
	t, invert := strings.CutPrefix(t, "~")
	n, err := strconv.ParseInt(strings.TrimRight(t, "ULul"), 0, 64)
	if err != nil {
		return 0, fmt.Errorf("number %q: %w", s, err)
	}
	bits := uint64(n)
	if invert {
		bits = ^bits
		if !wide {
			bits = uint64(uint32(bits))
		}
	}
	return bits, nil
}

func (r *registry) addCommands(root *node, overlay bool) error {
	for _, list := range root.all("commands") {
		for _, n := range list.all("command") {
			if !forVulkan(n.attr["api"]) {
				continue
			}
			if alias := n.attr["alias"]; alias != "" {
				name := n.attr["name"]
				r.commands[name] = &command{name: name, alias: alias}
				continue
			}
			c := &command{}
			for _, p := range n.all("proto") {
				c.name, c.result = p.child("name"), p.child("type")
				c.prototype = p.flat()
			}
			var params []string
			for _, p := range n.all("param") {
				if !forVulkan(p.attr["api"]) {
					continue
				}
				d, err := parseDecl(p)
				if err != nil {
					return fmt.Errorf("command %s: %w", c.name, err)
				}
				c.params, params = append(c.params, d), append(params, d.c)
			}
			c.prototype += "(" + strings.Join(params, ", ") + ")"
			if !overlay || r.commands[c.name] == nil {
				r.commands[c.name] = c
			}
		}
	}
	return nil
}

func (r *registry) addFeatures(root *node, overlay bool) error {
	for _, f := range root.all("feature") {
		if !forVulkan(f.attr["api"]) {
			continue
		}
		number := f.attr["number"]
		r.core = number // they stand in order
		for _, req := range f.all("require") {
			for _, n := range req.all("command") {
				if c := r.commands[n.attr["name"]]; c != nil && c.core == "" {
					c.core = number
				}
			}
			if err := r.extend(req, 0, overlay); err != nil {
				return fmt.Errorf("version %s: %w", number, err)
			}
		}
	}
	return nil
}

func (r *registry) addExtensions(root *node, overlay bool) error {
	for _, list := range root.all("extensions") {
		for _, n := range list.all("extension") {
			if !forVulkan(n.attr["supported"]) || n.attr["supported"] == "" {
				continue
			}
			x := &extension{name: n.attr["name"], overlay: overlay}
			if overlay && slices.ContainsFunc(r.extensions, func(have *extension) bool { return have.name == x.name }) {
				continue // the registry has caught up
			}
			number, err := strconv.Atoi(n.attr["number"])
			if err != nil {
				return fmt.Errorf("extension %s: %w", x.name, err)
			}
			provisional := n.attr["provisional"] == "true" // its values vanish from later headers
			for _, req := range n.all("require") {
				if !forVulkan(req.attr["api"]) {
					continue
				}
				if provisional {
					x.note(req, r)
					continue
				}
				if err := r.extend(req, number, overlay); err != nil {
					return fmt.Errorf("extension %s: %w", x.name, err)
				}
				x.note(req, r)
			}
			r.extensions = append(r.extensions, x)
		}
	}
	return nil
}

// note records what req brings: types, commands and the name's own constant.
func (x *extension) note(req *node, r *registry) {
	for _, n := range req.all("") {
		name := n.attr["name"]
		switch {
		case n.tag == "type" || n.tag == "command":
			x.provides = append(x.provides, name)
			if c := r.commands[name]; c != nil && c.extension == "" {
				c.extension = x.name
			}
		case n.tag == "enum" && n.attr["value"] == `"`+x.name+`"`:
			x.constant = name
		}
	}
}

// extend adds the values that req hangs on existing enums.
func (r *registry) extend(req *node, extension int, overlay bool) error {
	for _, e := range req.all("enum") {
		to := e.attr["extends"]
		if to == "" {
			continue
		}
		g := r.groups[to]
		if g == nil {
			return fmt.Errorf("%s extends the unknown enum %s", e.attr["name"], to)
		}
		if err := g.add(e, extension, overlay); err != nil {
			return err
		}
	}
	return nil
}

// canon follows type aliases to the type that has the members.
func (r *registry) canon(name string) (*ctype, error) {
	for range 8 {
		t := r.types[name]
		if t == nil {
			return nil, fmt.Errorf("unknown type %s", name)
		}
		if t.alias == "" {
			return t, nil
		}
		name = t.alias
	}
	return nil, fmt.Errorf("type %s: its aliases never end", name)
}
