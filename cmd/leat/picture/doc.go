// Package picture draws what leat measured as SVG.
//
// [Speeds] is tok/s against VRAM, [Timeline] what each part of the machine did during one
// token. The pictures are white, so that they are legible on any page, and their text is
// text.
package picture
