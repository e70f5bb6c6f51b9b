// The same calls as plain C loops: what is left is the driver's own work, and the loader's where C goes through it.
#include <vulkan/vulkan.h>

typedef struct {
	uint64_t device, queue, commands, buffer, layout, set;
	PFN_vkCmdDispatch dispatch;
	PFN_vkCmdPushConstants push;
	PFN_vkCmdPipelineBarrier barrier;
	PFN_vkCmdCopyBuffer copy;
	PFN_vkQueueSubmit submit;
	PFN_vkUpdateDescriptorSets update;
} table;

static void fill_table(table *t) {
	VkDevice d = (VkDevice)t->device;
	t->dispatch = (PFN_vkCmdDispatch)vkGetDeviceProcAddr(d, "vkCmdDispatch");
	t->push = (PFN_vkCmdPushConstants)vkGetDeviceProcAddr(d, "vkCmdPushConstants");
	t->barrier = (PFN_vkCmdPipelineBarrier)vkGetDeviceProcAddr(d, "vkCmdPipelineBarrier");
	t->copy = (PFN_vkCmdCopyBuffer)vkGetDeviceProcAddr(d, "vkCmdCopyBuffer");
	t->submit = (PFN_vkQueueSubmit)vkGetDeviceProcAddr(d, "vkQueueSubmit");
	t->update = (PFN_vkUpdateDescriptorSets)vkGetDeviceProcAddr(d, "vkUpdateDescriptorSets");
}

static void loop_dispatch(const table *t, int n) {
	for (int i = 0; i < n; i++)
		t->dispatch((VkCommandBuffer)t->commands, 1, 1, 1);
}

static void loop_push(const table *t, int n) {
	struct { uint32_t count; float scale; } args = {1000, 3};
	for (int i = 0; i < n; i++)
		t->push((VkCommandBuffer)t->commands, (VkPipelineLayout)t->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof args, &args);
}

static void loop_barrier(const table *t, int n) {
	const VkAccessFlags access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
	for (int i = 0; i < n; i++) {
		VkMemoryBarrier b = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, access, access};
		t->barrier((VkCommandBuffer)t->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &b, 0, NULL, 0, NULL);
	}
}

static void loop_copy(const table *t, int n) {
	for (int i = 0; i < n; i++) {
		VkBufferCopy r = {0, 4096, 256};
		t->copy((VkCommandBuffer)t->commands, (VkBuffer)t->buffer, (VkBuffer)t->buffer, 1, &r);
	}
}

static void loop_submit(const table *t, int n) {
	for (int i = 0; i < n; i++) {
		VkSubmitInfo s = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
		t->submit((VkQueue)t->queue, 1, &s, VK_NULL_HANDLE);
	}
}

static void loop_update(const table *t, int n) {
	for (int i = 0; i < n; i++) {
		VkDescriptorBufferInfo b[3] = {{(VkBuffer)t->buffer, 0, 4096}, {(VkBuffer)t->buffer, 4096, 4096}, {(VkBuffer)t->buffer, 8192, 4096}};
		VkWriteDescriptorSet w = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, (VkDescriptorSet)t->set, 0, 0, 3, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, NULL, b, NULL};
		t->update((VkDevice)t->device, 1, &w, 0, NULL);
	}
}
