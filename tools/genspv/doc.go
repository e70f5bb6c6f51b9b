// Genspv compiles the kernels of leat/shaders to SPIR-V with glslc.
//
// It takes the list from the table, writes shaders/spv, and keeps in shaders/spv.sum what each file was made from: it compiles
// only what changed since. With -check it writes nothing and fails when a file or its sum is not what the sources ask for, which
// needs no compiler. With -all it compiles every kernel, and -check -all compares the results with the committed files.
package main
