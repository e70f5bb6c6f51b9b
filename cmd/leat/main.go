package main

import "os"

func main() { os.Exit(process(os.Args[1:])) }
