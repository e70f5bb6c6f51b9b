// Bygoki puts github.com/goki/vulkan through the probe.
package main
