#version 450
// Takes the push constants of add.comp and no descriptors: for package vk, which has none.
layout(local_size_x = 1) in;
layout(push_constant) uniform Args { uint count; float scale; };

void main() {}
