package main

import (
	"fmt"
	"go/constant"
	"go/types"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/packages"

	// The packages compared are those this module builds with.
	_ "leat/vk/internal/raw"
)

const (
	ourPath       = "leat/vk/internal/raw"
	gokiPath      = "github.com/goki/vulkan"
	vulkanGoPath  = "github.com/vulkan-go/vulkan"
	commandPrefix = "_Cfunc_callVk"    // how both call a Vulkan command
	structPrefix  = "_Ctype_struct_Vk" // and what they pass
)

// facts are what a binding says about the C API.
type facts struct {
	path      string
	version   string
	constants map[string]constant.Value // by Go name
	layouts   map[string]layout         // by C name without Vk
	names     map[string]bool           // Go names of structs
	commands  map[string]bool           // C names without vk
}

// layout is a struct as memory has it.
type layout struct {
	size   int64
	fields map[string]field // by Go's spelling of the name: SType
}

type field struct{ offset, size int64 }

func loadFacts() (ours *facts, theirs []*facts, err error) {
	mode := packages.NeedName | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes |
		packages.NeedImports | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedModule
	loaded, err := packages.Load(&packages.Config{Mode: mode}, ourPath, gokiPath, vulkanGoPath)
	if err != nil {
		return nil, nil, fmt.Errorf("load the bindings: %w", err)
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, nil, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
		f := read(p.Types, p.TypesSizes)
		if p.Module != nil {
			f.version = p.Module.Version
		}
		if p.PkgPath == ourPath {
			ours = f
		} else {
			theirs = append(theirs, f)
		}
	}
	if ours == nil || len(theirs) != 2 {
		return nil, nil, fmt.Errorf("load the bindings: found %d packages, want 3", len(loaded))
	}
	return ours, theirs, nil
}

// read takes the facts from a package's names.
func read(p *types.Package, sizes types.Sizes) *facts {
	f := &facts{path: p.Path(), constants: map[string]constant.Value{}, layouts: map[string]layout{},
		names: map[string]bool{}, commands: map[string]bool{}}
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Const:
			if o.Exported() {
				f.constants[name] = o.Val()
			}
		case *types.Func:
			if command, ok := strings.CutPrefix(name, commandPrefix); ok {
				f.commands[command] = true
			}
		case *types.TypeName:
			f.readType(name, o, sizes)
		}
	}
	return f
}

func (f *facts) readType(name string, o *types.TypeName, sizes types.Sizes) {
	if f.path == ourPath && strings.HasSuffix(name, "Loader") || strings.HasSuffix(name, "Funcs") {
		for m := range o.Type().(*types.Named).Methods() {
			f.commands[m.Name()] = m.Exported()
		}
		return
	}
	s, ok := o.Type().Underlying().(*types.Struct)
	if !ok {
		return
	}
	c, isC := strings.CutPrefix(name, structPrefix)
	switch {
	case isC:
		f.layouts[c] = layoutOf(s, sizes)
	case o.Exported():
		f.names[name] = true
		if f.path == ourPath {
			f.layouts[name] = layoutOf(s, sizes)
		}
	}
}

func layoutOf(s *types.Struct, sizes types.Sizes) layout {
	var fields []*types.Var
	for v := range s.Fields() {
		fields = append(fields, v)
	}
	l := layout{size: sizes.Sizeof(s), fields: map[string]field{}}
	for i, offset := range sizes.Offsetsof(fields) {
		if name := fields[i].Name(); name != "_" {
			l.fields[goName(name)] = field{offset, sizes.Sizeof(fields[i].Type())}
		}
	}
	return l
}

// goName is a C field's name as Go exports it: sType, or cgo's _type, is SType, Type.
func goName(c string) string {
	c = strings.TrimPrefix(c, "_")
	first, n := utf8.DecodeRuneInString(c)
	return string(unicode.ToUpper(first)) + c[n:]
}
