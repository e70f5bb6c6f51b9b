// Package chat renders messages into the text that a model was trained to see, with
// the Jinja template in its file, and tells a reply's thinking from its answer.
package chat
