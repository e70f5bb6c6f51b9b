// Command kerneltable writes the table of variants in docs/kernels.md from the rules that the program chooses by.
//
//	go run ./tools/kerneltable
package main
