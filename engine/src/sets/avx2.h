// x86-64 with AVX2 and fused multiply-add.
#pragma once
#define NLNET_SET avx2
#define NLNET_BYTES 32
#define NLNET_REGISTERS 16
