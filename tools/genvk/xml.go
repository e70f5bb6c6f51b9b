package main

import (
	"encoding/xml"
	"io"
	"strings"
)

// node is an XML element, or a piece of text when tag is empty. The registry
// mixes C text with elements inside one declaration, so order must survive.
type node struct {
	tag  string
	attr map[string]string
	kids []*node
	text string
}

// parseXML reads one document and returns its root element.
func parseXML(r io.Reader) (*node, error) {
	dec := xml.NewDecoder(r)
	doc := &node{}
	stack := []*node{doc}
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch t := tok.(type) {
		case xml.StartElement:
			n := &node{tag: t.Name.Local, attr: map[string]string{}}
			for _, a := range t.Attr {
				n.attr[a.Name.Local] = a.Value
			}
			top.kids = append(top.kids, n)
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.kids = append(top.kids, &node{text: string(t)})
		}
	}
	if root := doc.all(""); len(root) > 0 {
		return root[0], nil
	}
	return nil, io.ErrUnexpectedEOF
}

// all returns the child elements called tag; every one if tag is "".
func (n *node) all(tag string) []*node {
	var out []*node
	for _, k := range n.kids {
		if k.tag != "" && (tag == "" || k.tag == tag) {
			out = append(out, k)
		}
	}
	return out
}

// child returns the text of the first child called tag, or "".
func (n *node) child(tag string) string {
	for _, k := range n.all(tag) {
		return k.flat()
	}
	return ""
}

// flat returns all text inside n, comments left out, as one line of C.
func (n *node) flat() string {
	var b strings.Builder
	var walk func(*node)
	walk = func(n *node) {
		b.WriteString(n.text)
		for _, k := range n.kids {
			if k.tag != "comment" {
				walk(k)
			}
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// forVulkan reports whether an api or supported attribute includes desktop
// Vulkan: the registry also lists other profiles (vulkansc) side by side.
func forVulkan(api string) bool {
	if api == "" {
		return true
	}
	for _, a := range strings.Split(api, ",") {
		if a == "vulkan" || a == "vulkanbase" {
			return true
		}
	}
	return false
}
