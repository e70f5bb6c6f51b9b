// Package demo carries a small trained model inside the program.
//
// It is 4.6 MiB, so that a first try needs no download. README.md says where it comes from.
package demo
