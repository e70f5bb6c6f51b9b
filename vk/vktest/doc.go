// Package vktest opens a device for a test.
//
// Without a driver the test is skipped, saying why, or fails if
// LEAT_REQUIRE_DEVICE=1. With LEAT_VALIDATE=1 the validation layer listens,
// and the test fails on any message. LEAT_ENABLE names features that are off
// by themselves (see vk.Enabled); a device that lacks one fails the test.
package vktest
