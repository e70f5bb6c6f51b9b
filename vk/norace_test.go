//go:build !race

package vk_test

const raceOn = false
