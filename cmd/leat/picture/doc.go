// Package picture draws what leat measured as SVG.
//
// [Speeds] is tok/s against VRAM, [Timeline] what each part of the machine did during one
// token, [Experts] how often a mixture's experts were used, [Rates] how often a cache of them
// had what was asked for. The pictures are white, so that they are legible on any page, and their text is
// text.
package picture
