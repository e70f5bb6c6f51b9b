// Package rawside is leat's own binding, set up for the probe.
package rawside
