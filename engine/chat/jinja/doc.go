// Package jinja runs chat templates, bounded.
//
// It is the part of Jinja 3.1 that a template inside a model file can use, with Hugging
// Face's settings (trim_blocks, lstrip_blocks, break and continue, generation blocks,
// its tojson, raise_exception and strftime_now): everything but inheritance, imports,
// HTML and translations. A template is a program by a stranger, so every step, every
// byte made and every level of nesting is counted before it is spent, and there is
// nothing that it could reach but its data.
package jinja
