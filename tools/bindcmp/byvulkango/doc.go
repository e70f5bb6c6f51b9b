// Byvulkango puts github.com/vulkan-go/vulkan through the probe.
package main
