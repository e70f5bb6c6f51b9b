// Package pace says how long the device should rest before its next work, so that it
// stays at or below a temperature instead of running into its own throttle.
//
// [Controller] and [Drift] are pure: readings and durations go in, a share of time comes
// out. [Pacer] gives them a clock, a [Sensor] and a timer. Unstable: the API follows
// what engine needs.
package pace
