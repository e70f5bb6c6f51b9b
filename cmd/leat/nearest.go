package main

import "strings"

// otherNames are what other programs call some commands.
var otherNames = map[string]string{
	"new": "/clear", "reset": "/clear", "forget": "/clear",
	"history": "/show messages", "messages": "/show messages", "info": "/show model", "model": "/show model",
	"settings": "/set", "temp": "/set temp", "temperature": "/set temp", "seed": "/set seed", "thinking": "/set thinking",
	"regen": "/retry", "again": "/retry", "read": "/load", "open": "/load", "write": "/save",
	"resume": "/load", "incognito": "/private", "leave": "/quit", "h": "/help",
}

// nearestCommand is the hint to a command that there is none of.
func nearestCommand(name string) string {
	if other := otherNames[strings.ToLower(name)]; other != "" {
		return "here it is " + other
	}
	if near := completeCommand(strings.ToLower(name)); name != "" && len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	best, least := "", 3 // of letters typed wrongly
	for _, c := range completeCommand("") {
		if d := edits(strings.ToLower(name), c[1:]); d < least && d < len(name) {
			best, least = c, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "/help lists the commands; a message that begins with a slash is typed with a blank in front"
}

// edits is how many letters make b of a: put in, left out, replaced or swapped.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// bareCommand is the command that someone means who types one word of a shell, "" for
// what is meant for the model.
func bareCommand(text string) string {
	switch strings.ToLower(text) {
	case "exit", "quit", "bye", ":q", ":q!", ":wq", "exit()", "quit()":
		return "/quit leaves, as does Ctrl-D"
	case "help", "?":
		return "/help lists the commands"
	}
	return ""
}
