// x86-64 as every such CPU has it.
#pragma once
#define NLNET_SET sse2
#define NLNET_BYTES 16      // of a vector
#define NLNET_REGISTERS 16  // vectors that the CPU can hold
