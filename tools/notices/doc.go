// Command notices collects the licences of everything that the program is linked from.
//
//	go run ./tools/notices -o THIRD_PARTY_LICENSES.txt linux/amd64 windows/amd64
//
// A module without a licence file is an error: it could not be passed on.
package main
