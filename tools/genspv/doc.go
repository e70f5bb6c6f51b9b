// Genspv compiles the kernels of leat/shaders to SPIR-V with glslc.
//
// It takes the list from the table and writes shaders/spv. With -check it writes nothing and
// fails when a committed file differs from what the sources give, is missing, or has no row.
package main
